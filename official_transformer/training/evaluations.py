"""Evaluations during a run, and the decisions that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import keras
from absl import logging

from official_transformer.errors import Interrupted
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.directory import (
  MEASUREMENTS_FILE,
  ModelDirectory,
)
from official_transformer.model_directory.measurements import (
  OFFICIAL_BLEU,
  Measurements,
)
from official_transformer.training.failures import failures_are_logged
from official_transformer.training.interruption import Interruption
from official_transformer.training.reporting.summaries import SummaryWriter
from official_transformer.training.saving import Saver

Measure = Callable[[int], Mapping[str, float]]
_HEADING = ("source", "reference", "translation")


class Evaluation(NamedTuple):
  """Scores and the file of a translated test set.

  Attributes:
    scores: scores by name.
    samples: rows of source, reference and translation.
    pictures: names, and pictures in PNG's format, such as of attention.
  """

  scores: Mapping[str, float]
  samples: Sequence[tuple[str, str, str]] = ()
  pictures: Sequence[tuple[str, bytes]] = ()


Evaluate = Callable[[Transformer, int], Evaluation]


class ScoredSet(NamedTuple):
  """A test set that is translated and scored during a run.

  Attributes:
    evaluate: does it, with the model and the number of finished updates.
    identity: distinguishes its scores from those of others.
  """

  evaluate: Evaluate
  identity: str


def open_measurements(
  directory: ModelDirectory,
  measured_on: Mapping[str, str | None],
  step: int,
  is_written: bool,
) -> Measurements:
  """Returns a model's results so far, and warns of those on other data.

  Args:
    directory: the model directory.
    measured_on: as of `Measurements`; None for what is not measured.
    step: finished updates; later results are forgotten.
    is_written: as of `Measurements`.
  """
  path = directory.join(MEASUREMENTS_FILE)
  given = {kind: name for kind, name in measured_on.items() if name}
  measurements = Measurements(path, given, is_written)
  measurements.forget_after(step)
  others = measurements.steps_on_other_data()
  if is_written and others:
    logging.warning(
      "%s: %d of %d evaluations, the last after step %d, were on other data "
      "(test set, --bleu_tokenize, development data or --validation_steps); "
      "best and --early_stopping_patience leave them out",
      *(path, len(others), len(measurements.steps()), others[-1]),
    )
  return measurements


def measure(
  step: int,
  validate: Callable[[], Mapping[str, float]] | None,
  evaluate: Callable[[], Evaluation] | None,
  summaries: SummaryWriter | None,
  weights: Sequence[keras.Variable] = (),
) -> dict[str, float]:
  """Returns the results of an evaluation, without measurements that failed.

  Args:
    step: finished updates.
    validate: takes the loss on development data.
    evaluate: translates a test set and scores that.
    summaries: writes measurements for TensorBoard.
    weights: whose histograms it shows, if it is to.
  """
  values: dict[str, float] = {}
  found = Evaluation({})
  if validate:
    with failures_are_logged(f"the validation after step {step}"):
      values |= {f"validation/{k}": v for k, v in validate().items()}
  if evaluate:
    with failures_are_logged(f"the evaluation after step {step}"):
      found = evaluate()
      values |= {f"evaluation/{k}": v for k, v in found.scores.items()}
  if summaries:
    with failures_are_logged(f"TensorBoard's record of step {step}"):
      summaries.write_scalars(values, step)
      if found.samples:
        rows = [_HEADING, *found.samples]
        summaries.write_table("translations", rows, step)
      for name, picture in found.pictures:
        summaries.write_picture(name, picture, step)
      for weight in weights if summaries.with_histograms else ():
        summaries.write_histogram(f"weights/{weight.path}", weight, step)
      summaries.flush()
  return values


class Evaluations:
  """Measures, keeps the best, and finds reasons to end the run.

  Attributes:
    measure: function of the number of finished updates; returns measurements by
      name.
    measurements: stores the results.
    saver: keeps the best weights, and has the run's settings.
    interruption: can interrupt an evaluation.
  """

  def __init__(
    self,
    measure: Measure,
    measurements: Measurements,
    saver: Saver,
    interruption: Interruption,
  ) -> None:
    self.measure = measure
    self.measurements = measurements
    self.saver = saver
    self.interruption = interruption

  def has_measured(self, step: int) -> bool:
    """Returns whether a step's evaluation has been done."""
    return step in self.measurements

  def run(self, step: int) -> None:
    """Measures, and saves the best weights; a failure does not end the run.

    All is saved before, so that nothing it does can cost the steps.
    """
    try:
      with self.interruption.breaks_off():
        values = self.measure(step)
    except Interrupted:
      logging.warning(
        "the evaluation after step %d is interrupted; a resumed run repeats it",
        step,
      )
      return
    if not values:
      return
    logging.info(
      "step %d: %s",
      step,
      ", ".join(f"{name} {value:.4f}" for name, value in values.items()),
    )
    with failures_are_logged(f"keeping the measurements of step {step}"):
      # Recorded last: until then, the evaluation is made again.
      name = self.measurements.improved_by(values, self._rival(step))
      if name and self.saver.enabled:
        self.saver.save_best(step)
        logging.info("step %d is the best so far by %s", step, name)
      self.measurements.record(step, values)

  def _rival(self, step: int) -> int | None:
    """Returns the best step so far; a repeated evaluation has no rival."""
    best = self.saver.best_step()
    return None if best == step else best

  def reason_to_stop(self, step: int) -> str | None:
    """Returns why a step's measurements end the run, if they do."""
    if step not in self.measurements:
      return None
    settings = self.saver.settings
    measured = self.measurements[step]
    score = measured.get(OFFICIAL_BLEU, -1.0)
    threshold = settings.stop_threshold
    if threshold is not None and score >= threshold:
      return (
        f"{OFFICIAL_BLEU} {score:.4f} has reached "
        f"--stop_threshold={threshold:g}"
      )
    rule = settings.early_stopping
    if rule is None or rule.measure not in measured:
      return None
    best, since = self.measurements.best_and_since(rule.measure)
    if since < rule.patience:
      return None
    value = self.measurements[best][rule.measure]
    return (
      f"no better {rule.measure} than {value:.4f}, of step {best}, in {since} "
      "evaluations (--early_stopping_patience); see --checkpoint=best"
    )
