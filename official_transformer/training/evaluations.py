"""What happens between two updates: saving, measuring, stopping."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
from absl import logging

from official_transformer.distribution.strategy import Distribution
from official_transformer.errors import Interrupted, RunError
from official_transformer.model_directory.measurements import BLEU, Measurements
from official_transformer.training.checkpoints import CheckpointManager
from official_transformer.training.interruption import Interruption
from official_transformer.training.reporting.progress import ProgressReport
from official_transformer.training.settings import TrainingSettings

Measure = Callable[[int], Mapping[str, float]]


class Milestones(keras.callbacks.Callback):
  """Saves and measures after some updates of the whole run, and ends it.

  Attributes:
    settings: of the run.
    checkpoints: saves the model.
    measurements: keeps what milestones measure.
    measure: takes the number of finished updates; returns what it measured,
      by name.
    distribution: who takes part; the chief alone saves and measures.
    interruption: knows of signals.
    progress: is told how long all this takes.
    step: updates made so far.
    stopped_by: the number of the signal that ended the run, if one did.
  """

  def __init__(
    self,
    settings: TrainingSettings,
    checkpoints: CheckpointManager,
    measurements: Measurements,
    measure: Measure,
    distribution: Distribution,
    interruption: Interruption,
    progress: ProgressReport,
    step: int,
  ) -> None:
    super().__init__()
    self.settings = settings
    self.checkpoints = checkpoints
    self.measurements = measurements
    self.measure = measure
    self.distribution = distribution
    self.interruption = interruption
    self.progress = progress
    self.step = step
    self.stopped_by: int | None = None
    self._streak: Any = 0
    self._saved_step, self._saved_interim = step, False
    self._saved_at = time.monotonic()

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts the clock of interim checkpoints."""
    self._saved_at = time.monotonic()

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Does what follows the update, and sees whether there was a signal."""
    self.step += int(logs.get("steps", 1))
    self.interruption.nothing_to_lose = False
    self._streak = logs["streak"]
    is_milestone = self.settings.is_milestone(self.step)
    is_kept = self.settings.is_saved(self.step)
    if is_kept or self._is_interim_due():
      with self.progress.paused():
        self.save(interim=not is_kept)
        if is_milestone:
          self._measure()
    if is_milestone and self._is_the_end():
      self.model.stop_training = True
    self.stopped_by = self.distribution.any_signal(self.interruption.signal)
    if self.stopped_by is not None:
      self.model.stop_training = True

  def catch_up(self) -> bool:
    """Measures what a milestone, at which a run was ended, has not.

    Returns:
      Whether the run is to end at once.
    """
    if self.step and self.settings.is_milestone(self.step):
      if self.distribution.is_chief and self.step not in self.measurements:
        self._measure()
      return self._is_the_end()
    return False

  def save(self, interim: bool = False, must: bool = False) -> None:
    """Saves the model, where that is wanted and has not been done.

    Where that fails, training goes on: the next time it may not. Where weights
    are not finite, updates will not be either, and end it.

    Args:
      interim: whether the checkpoint only serves to go on from.
      must: whether a failure ends the run.

    Raises:
      RunError: where it is the last chance, and weights are not finite.
      OSError: where it is, and the system refuses.
    """
    settings, step = self.settings, self.step
    if not settings.with_checkpoints or not self.distribution.is_chief:
      return
    # What was saved as interim, in a streak of skipped updates, may turn out to
    # be the last.
    if self._saved_step == step and (interim or not self._saved_interim):
      return
    is_last = must or step >= settings.train_steps
    # As long as updates are skipped, no earlier checkpoint is given up.
    interim = interim or (not is_last and int(self._streak) > 0)
    try:
      self.checkpoints.save(step, settings.seed, interim)
      self._saved_step, self._saved_interim = step, interim
    except (OSError, RunError) as error:
      if is_last:
        raise
      logging.error(
        "no checkpoint after step %d: %s; training goes on, and the next one "
        "is tried in its turn",
        step,
        error,
      )
    self._saved_at = time.monotonic()

  def _is_interim_due(self) -> bool:
    seconds = self.settings.save_checkpoints_secs
    return 0 < seconds <= time.monotonic() - self._saved_at

  def _measure(self) -> None:
    """Measures, and keeps the best; no failure of it ends the run.

    All is saved before, so that nothing it does can cost the steps.
    """
    if not self.distribution.is_chief:
      return
    step = self.step
    try:
      with self.interruption.breaks_off():
        values = self.measure(step)
    except Interrupted:
      logging.warning(
        "what is measured after step %d is broken off; it is done when the run "
        "goes on",
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
      # Recorded last: until then, the milestone is taken again.
      name = self.measurements.best_by(step, values)
      if name and self.settings.with_checkpoints:
        self.checkpoints.save_best(step)
        logging.info("step %d is the best so far by %s", step, name)
      self.measurements.record(step, values)

  def _is_the_end(self) -> bool:
    """Tells whether measurements end the run, to all alike."""
    settings = self.settings
    if settings.stop_threshold is None and settings.early_stopping is None:
      return False
    reason = self._reason_to_stop() if self.distribution.is_chief else None
    if reason:
      logging.info("stopping: %s", reason)
    return bool(self.distribution.value_of_chief(int(reason is not None)))

  def _reason_to_stop(self) -> str | None:
    """Returns what measurements say for ending the run here, if anything."""
    if self.step not in self.measurements:
      return None
    threshold = self.settings.stop_threshold
    measured = self.measurements[self.step]
    score = measured.get(BLEU, -1.0)
    if threshold is not None and score >= threshold:
      return f"{BLEU} {score:.4f} has reached --stop_threshold={threshold:g}"
    rule = self.settings.early_stopping
    if rule is None or rule.measure not in measured:
      return None
    best, since = self.measurements.best_and_since(rule.measure)
    if since < rule.patience:
      return None
    value = self.measurements[best][rule.measure]
    return (
      f"no better {rule.measure} than {value:.4f}, of step {best}, in {since} "
      "milestones (--early_stopping_patience); see --checkpoint=best"
    )


@contextlib.contextmanager
def failures_are_logged(what: str) -> Iterator[None]:
  """Logs an exception of the body, which goes no further; signals pass.

  Args:
    what: is said to have failed.
  """
  try:
    yield
  except Exception as error:
    reason = str(error).split("\n")[0]
    kind = type(error).__name__
    logging.error("%s failed (%s: %s); training goes on", what, kind, reason)
