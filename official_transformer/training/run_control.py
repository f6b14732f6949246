"""Saving, evaluating and stopping between two updates."""

from __future__ import annotations

from typing import Any

import keras
from absl import logging

from official_transformer.training.evaluations import Evaluations
from official_transformer.training.interruption import Interruption
from official_transformer.training.reporting.progress import ProgressReport
from official_transformer.training.saving import Saver
from official_transformer.training.signal_exchange import SignalExchange
from official_transformer.training.strategy import Distribution


class RunControl(keras.callbacks.Callback):
  """Saves and evaluates after some updates of the whole run, and ends it.

  Only the chief saves and evaluates; all processes learn the consequences.

  Attributes:
    saver: saves the model.
    evaluations: measure it.
    distribution: the processes of the run.
    interruption: knows of signals.
    progress: gets the durations of evaluations and checkpoints.
    settings: settings of the run.
    step: updates made so far.
    stopped_by: the number of the signal that ended the run, if one did.
  """

  def __init__(
    self,
    saver: Saver,
    evaluations: Evaluations,
    distribution: Distribution,
    interruption: Interruption,
    progress: ProgressReport,
  ) -> None:
    super().__init__()
    self.saver = saver
    self.evaluations = evaluations
    self.distribution = distribution
    self.interruption = interruption
    self.progress = progress
    self.settings = saver.settings
    self.step = progress.step
    self.stopped_by: int | None = None
    self._signals = SignalExchange(distribution, self.step)
    self._streak: Any = 0

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts the clock of interim checkpoints."""
    self.saver.start_clock()

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Saves, evaluates and stops after an update, if it is time."""
    self.step += int(logs.get("steps", 1))
    self.interruption.nothing_to_lose = False
    self._streak = logs["streak"]
    self.saver.confirm(self.step, self._streak)
    is_evaluated = self.settings.is_evaluated(self.step)
    is_kept = self.settings.is_saved(self.step)
    if is_kept or self.saver.is_interim_due():
      with self.progress.paused():
        self.saver.save(self.step, self._streak, interim=not is_kept)
        if is_evaluated and self.distribution.is_chief:
          self.evaluations.run(self.step)
    if is_evaluated and self._is_the_end():
      self.model.stop_training = True
    # An evaluation that a signal has broken off is made when the run goes on,
    # from this step.
    self.stopped_by = self._signals.received(
      self.step, self.interruption.signal, must=is_evaluated
    )
    if self.stopped_by is not None:
      self.model.stop_training = True

  def catch_up(self) -> bool:
    """Makes the evaluation at which the run was ended, if it is missing.

    Returns:
      Whether the run is to end at once.
    """
    if not self.step or not self.settings.is_evaluated(self.step):
      return False
    is_missing = not self.evaluations.has_measured(self.step)
    if self.distribution.is_chief and is_missing:
      self.evaluations.run(self.step)
    return self._is_the_end()

  def save_last(self, interim: bool = False) -> None:
    """Saves the model as the run leaves it.

    Args:
      interim: whether the checkpoint only serves to go on from.

    Raises:
      RunError: if weights are not finite.
      OSError: if the system refuses.
    """
    self.saver.save(self.step, self._streak, interim, must=True)

  def _is_the_end(self) -> bool:
    """Returns whether measurements end the run, to all alike."""
    settings = self.settings
    if settings.stop_threshold is None and settings.early_stopping is None:
      return False
    reason = None
    if self.distribution.is_chief:
      reason = self.evaluations.reason_to_stop(self.step)
    if reason:
      logging.info("stopping: %s", reason)
    return bool(self.distribution.broadcast(int(reason is not None)))
