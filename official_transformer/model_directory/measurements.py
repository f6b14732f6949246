"""measurements.jsonl, the results of a model's evaluations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from absl import logging

from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text
from official_transformer.storage.typed_json import DAMAGE

VALIDATION_LOSS = "validation/loss"
# sacreBLEU's, by the tokenization that suits the language.
BLEU = "evaluation/sacrebleu_BLEU"
# The measure of the official model's --stop_threshold. It counts a clause of
# Chinese without punctuation as one word.
OFFICIAL_BLEU = "evaluation/bleu_uncased"

# Measures that evaluations are compared by, in order of preference; 1 if more
# is better.
_SIGNS = {BLEU: 1, OFFICIAL_BLEU: 1, VALIDATION_LOSS: -1}

# Key of a line for the identities of the data that were measured on.
_MEASURED_ON = "measured_on"


class Measurements:
  """One JSON object an evaluation, in the order of their steps.

  Evaluations on other data than this run's are kept, but are not compared with
  this run's.

  Attributes:
    path: the file; it need not exist.
    measured_on: identity of the data that this run measures on, by the first
      part of a measure's name, `validation` or `evaluation`. Evaluations that
      do not name their data, as in early versions, are compared with all.
    is_written: whether the file is to be written.
  """

  def __init__(
    self,
    path: str,
    measured_on: Mapping[str, str] | None = None,
    is_written: bool = True,
  ) -> None:
    self.path = path
    self.measured_on = dict(measured_on or {})
    self.is_written = is_written
    self._by_step: dict[int, dict[str, float]] = {}
    self._measured_on: dict[int, dict[str, str]] = {}
    if not file_system.exists(path):
      return
    try:
      with file_system.open_file(path) as lines:
        for line in lines:
          values = json.loads(line)
          step = int(values.pop("step"))
          self._measured_on[step] = dict(values.pop(_MEASURED_ON, None) or {})
          self._by_step[step] = {
            # JSON has no number that is not finite.
            k: math.nan if v is None else float(v)
            for k, v in values.items()
          }
    except DAMAGE as error:
      logging.error("%s is damaged (%r): a new one is written", path, error)
      self._by_step, self._measured_on = {}, {}

  def __contains__(self, step: int) -> bool:
    """Returns whether a step has been measured, on this run's data."""
    return step in self._by_step and self._is_comparable(step)

  def __getitem__(self, step: int) -> Mapping[str, float]:
    """Returns the results of a step's evaluation on this run's data."""
    return {
      name: value
      for name, value in self._by_step[step].items()
      if self._was_measured_on_the_same(step, name.partition("/")[0])
    }

  def steps(self) -> list[int]:
    """Returns the steps whose evaluations have measured something."""
    return sorted(self._by_step)

  def record(self, step: int, values: Mapping[str, float]) -> None:
    """Keeps the results of an evaluation, instead of earlier ones of its step.

    Raises:
      OSError: if the system refuses; the file is unchanged.
    """
    self._by_step[step] = {k: float(v) for k, v in values.items()}
    self._measured_on[step] = self.measured_on
    self._write()

  def forget_after(self, step: int) -> None:
    """Drops evaluations of later steps, which will be repeated.

    Raises:
      OSError: if the system refuses; the file is unchanged.
    """
    later = [n for n in self._by_step if n > step]
    for number in later:
      del self._by_step[number], self._measured_on[number]
    if later:
      self._write()

  def steps_on_other_data(self) -> list[int]:
    """Returns the steps whose evaluations are not compared with this run's."""
    return [step for step in self.steps() if not self._is_comparable(step)]

  def improved_by(
    self, values: Mapping[str, float], rival: int | None
  ) -> str | None:
    """Returns the measure by which values are better than another step's.

    Args:
      values: measured values, by name.
      rival: the step that was the best so far, if any. Its evaluation does not
        count if it was on other data.

    Returns:
      `BLEU` if either has it, else `OFFICIAL_BLEU` or `VALIDATION_LOSS`; None
      if the values are no better.
    """
    before = self[rival] if rival in self._by_step else {}
    for name, sign in _SIGNS.items():
      old = before.get(name, math.nan)
      if name in values:
        new = values[name]
        is_better = math.isnan(old) or sign * new > sign * old
        return name if is_better and math.isfinite(new) else None
      if math.isfinite(old):
        return None
    return None

  def best_and_since(self, name: str) -> tuple[int, int]:
    """Returns the best step by `name`, and how many were measured after it.

    Of equally good ones, the first is the best. Values that are not finite are
    the worst.

    Args:
      name: `BLEU` or `VALIDATION_LOSS`, which some evaluation on this run's
        data has measured.
    """
    by_step = {step: self[step] for step in self.steps()}
    scores = {
      step: _SIGNS[name] * values[name]
      for step, values in by_step.items()
      if name in values
    }
    finite = [v if math.isfinite(v) else -math.inf for v in scores.values()]
    best = finite.index(max(finite))
    return list(scores)[best], len(finite) - 1 - best

  def _is_comparable(self, step: int) -> bool:
    return all(
      self._was_measured_on_the_same(step, kind) for kind in self.measured_on
    )

  def _was_measured_on_the_same(self, step: int, kind: str) -> bool:
    now = self.measured_on.get(kind)
    return now is None or self._measured_on[step].get(kind, now) == now

  def _write(self) -> None:
    if not self.is_written:
      return
    lines = []
    for step in self.steps():
      line: dict[str, Any] = {"step": step, **_as_json(self._by_step[step])}
      if self._measured_on[step]:
        line[_MEASURED_ON] = self._measured_on[step]
      lines.append(json.dumps(line) + "\n")
    write_text(self.path, "".join(lines))


def _as_json(values: Mapping[str, float]) -> dict[str, float | None]:
  """Returns values, with null for values that are not finite."""
  return {k: v if math.isfinite(v) else None for k, v in values.items()}
