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

# Key of a line for the identities of what was measured on.
_TEST_SETS = "test_sets"


class Measurements:
  """One JSON object an evaluation, in the order of their steps.

  Evaluations on different test sets are not compared with each other.

  Attributes:
    path: the file; it need not exist.
    test_sets: identity of what this run measures on, by the kind of measure:
      `validation` and `evaluation`. Those of early versions have none, and are
      compared with all.
    is_kept: whether the file is written.
  """

  def __init__(
    self,
    path: str,
    test_sets: Mapping[str, str] | None = None,
    is_kept: bool = True,
  ) -> None:
    self.path = path
    self.test_sets = dict(test_sets or {})
    self.is_kept = is_kept
    self._by_step: dict[int, dict[str, float]] = {}
    self._test_sets: dict[int, dict[str, str]] = {}
    if not file_system.exists(path):
      return
    try:
      with file_system.open_file(path) as lines:
        for line in lines:
          values = json.loads(line)
          step = int(values.pop("step"))
          self._test_sets[step] = dict(values.pop(_TEST_SETS, {}))
          self._by_step[step] = {
            # JSON has no number that is not finite.
            k: math.nan if v is None else float(v)
            for k, v in values.items()
          }
    except DAMAGE as error:
      logging.error("%s is damaged (%r): a new one is written", path, error)
      self._by_step, self._test_sets = {}, {}

  def __contains__(self, step: int) -> bool:
    """Returns whether a step's evaluation has measured something."""
    return step in self._by_step

  def __getitem__(self, step: int) -> Mapping[str, float]:
    """Returns the results of a step's evaluation."""
    return self._by_step[step]

  def steps(self) -> list[int]:
    """Returns the steps whose evaluations have measured something."""
    return sorted(self._by_step)

  def record(self, step: int, values: Mapping[str, float]) -> None:
    """Keeps the results of an evaluation, instead of earlier ones of its step.

    Raises:
      OSError: if the system refuses; the file is unchanged.
    """
    self._by_step[step] = {k: float(v) for k, v in values.items()}
    self._test_sets[step] = self.test_sets
    self._write()

  def forget_after(self, step: int) -> None:
    """Drops evaluations of later steps, which will be repeated.

    Raises:
      OSError: if the system refuses; the file is unchanged.
    """
    later = [n for n in self._by_step if n > step]
    for number in later:
      del self._by_step[number], self._test_sets[number]
    if later:
      self._write()

  def others(self) -> list[int]:
    """Returns the steps that were measured on another test set than now."""
    return [
      step
      for step in self.steps()
      if not all(self._is_comparable(step, name) for name in self[step])
    ]

  def best_by(self, step: int, values: Mapping[str, float]) -> str | None:
    """Returns the measure by which an evaluation is the best so far, if it is.

    Args:
      step: step of the evaluation; earlier measurements of this step do not
        count.
      values: measured values, by name.

    Returns:
      `BLEU` if any evaluation has measured that, else `OFFICIAL_BLEU` or
      `VALIDATION_LOSS`; None if another is as good.
    """
    for name, sign in _SIGNS.items():
      found = [self[n][name] for n in self._steps_with(name) if n != step]
      rivals = [sign * value for value in found if math.isfinite(value)]
      if name in values:
        is_best = all(sign * values[name] > rival for rival in rivals)
        return name if is_best and math.isfinite(values[name]) else None
      if rivals:
        return None
    return None

  def best_and_since(self, name: str) -> tuple[int, int]:
    """Returns the best step by `name`, and how many were measured after it.

    Of equally good ones, the first is the best. Values that are not finite are
    the worst.

    Args:
      name: `BLEU` or `VALIDATION_LOSS`, which some evaluation has measured.
    """
    steps = self._steps_with(name)
    values = [_SIGNS[name] * self._by_step[n][name] for n in steps]
    values = [v if math.isfinite(v) else -math.inf for v in values]
    best = values.index(max(values))
    return steps[best], len(steps) - 1 - best

  def _steps_with(self, name: str) -> list[int]:
    """Returns the steps with a measure, on the test set of now."""
    return [
      step
      for step in self.steps()
      if name in self[step] and self._is_comparable(step, name)
    ]

  def _is_comparable(self, step: int, name: str) -> bool:
    """Returns whether a measure was taken on the test set of now."""
    kind = name.partition("/")[0]
    now = self.test_sets.get(kind)
    return now is None or self._test_sets[step].get(kind, now) == now

  def _write(self) -> None:
    if not self.is_kept:
      return
    lines = []
    for step in self.steps():
      line: dict[str, Any] = {"step": step, **_as_json(self[step])}
      if self._test_sets[step]:
        line[_TEST_SETS] = self._test_sets[step]
      lines.append(json.dumps(line) + "\n")
    write_text(self.path, "".join(lines))


def _as_json(values: Mapping[str, float]) -> dict[str, float | None]:
  """Returns values, with null for values that are not finite."""
  return {k: v if math.isfinite(v) else None for k, v in values.items()}
