"""measurements.jsonl, the results of a model's evaluations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

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


class Measurements:
  """One JSON object an evaluation, in the order of their steps.

  Attributes:
    path: the file; it need not exist.
  """

  def __init__(self, path: str) -> None:
    self.path = path
    self._by_step: dict[int, dict[str, float]] = {}
    if not file_system.exists(path):
      return
    try:
      with file_system.open_file(path) as lines:
        for line in lines:
          values = json.loads(line)
          step = int(values.pop("step"))
          self._by_step[step] = {
            # JSON has no number that is not finite.
            k: math.nan if v is None else float(v)
            for k, v in values.items()
          }
    except DAMAGE as error:
      logging.error("%s is damaged (%r): a new one is written", path, error)
      self._by_step = {}

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
    self._write()

  def forget_after(self, step: int) -> None:
    """Drops evaluations of later steps, which will be repeated.

    Raises:
      OSError: if the system refuses; the file is unchanged.
    """
    later = [n for n in self._by_step if n > step]
    for number in later:
      del self._by_step[number]
    if later:
      self._write()

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
    others = [v for n, v in self._by_step.items() if n != step]
    for name, sign in _SIGNS.items():
      found = [other[name] for other in others if name in other]
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
    steps = [n for n in sorted(self._by_step) if name in self._by_step[n]]
    values = [_SIGNS[name] * self._by_step[n][name] for n in steps]
    values = [v if math.isfinite(v) else -math.inf for v in values]
    best = values.index(max(values))
    return steps[best], len(steps) - 1 - best

  def _write(self) -> None:
    lines = [
      json.dumps({"step": n, **_as_json(self._by_step[n])}) + "\n"
      for n in sorted(self._by_step)
    ]
    write_text(self.path, "".join(lines))


def _as_json(values: Mapping[str, float]) -> dict[str, float | None]:
  """Returns values, with null for values that are not finite."""
  return {k: v if math.isfinite(v) else None for k, v in values.items()}
