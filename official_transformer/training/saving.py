"""Saving a run's model, and failures of saving."""

from __future__ import annotations

import time
from typing import Any

from absl import logging

from official_transformer.errors import RunError
from official_transformer.model_directory.directory import BEST
from official_transformer.training.checkpoints import CheckpointManager
from official_transformer.training.failures import failures_are_logged
from official_transformer.training.settings import TrainingSettings


class Saver:
  """Saves a run's checkpoints in their turn, each step once.

  Attributes:
    settings: settings of the run.
    checkpoints: writes them.
    enabled: whether anything is to be saved, by this process.
  """

  def __init__(
    self,
    settings: TrainingSettings,
    checkpoints: CheckpointManager,
    is_chief: bool,
    step: int,
  ) -> None:
    self.settings = settings
    self.checkpoints = checkpoints
    self.enabled = settings.enable_checkpointing and is_chief
    self._saved_step, self._saved_interim = step, False
    # A checkpoint without a finite update after it.
    self._untried: int | None = step or None
    self.start_clock()

  def start_clock(self) -> None:
    """Counts the seconds to the next interim checkpoint from now on."""
    self._saved_at = time.monotonic()

  def is_interim_due(self) -> bool:
    """Returns whether it has been too long since anything was saved."""
    seconds = self.settings.save_checkpoints_secs
    return self.enabled and 0 < seconds <= time.monotonic() - self._saved_at

  def save(
    self, step: int, streak: Any, interim: bool = False, must: bool = False
  ) -> None:
    """Saves the model, if that is wanted and has not been done.

    If it fails, training goes on: the next time it may not. If weights are not
    finite, updates will not be either, and end the run.

    Args:
      step: finished updates.
      streak: number of updates in a row, up to the last one, that were skipped.
      interim: whether the checkpoint only serves to go on from.
      must: whether a failure ends the run.

    Raises:
      RunError: if it is the last chance, and weights are not finite.
      OSError: if it is, and the system refuses.
    """
    if not self.enabled:
      return
    # A step that was saved as interim, in a streak of skipped updates, may turn
    # out to be the last one, and is then saved again.
    skipped = int(streak)
    if self._saved_step == step and (interim or not self._saved_interim):
      if must and not interim and not skipped:
        self._drop_superseded()
      return
    is_last = must or step >= self.settings.train_steps
    # As long as updates are skipped, no earlier checkpoint is given up, but an
    # interim one of the same weights.
    interim = interim or (not is_last and skipped > 0)
    same, was_interim = self._saved_step, self._saved_interim
    try:
      self.checkpoints.save(step, self.settings.seed, interim)
      self._saved_step, self._saved_interim = step, interim
      self._untried = step
    except (OSError, RunError) as error:
      if is_last:
        raise
      logging.error(
        "no checkpoint after step %d: %s; training goes on, and the next one "
        "is tried in its turn",
        step,
        error,
      )
    else:
      if was_interim and step - skipped <= same < step:
        with failures_are_logged(f"removing the checkpoint of step {same}"):
          self.checkpoints.drop(same)
      if is_last and not interim and not skipped:
        self._drop_superseded()
    self.start_clock()

  def confirm(self, step: int, streak: Any) -> None:
    """Drops superseded checkpoints, once the newest has proved good.

    Weights may be finite after an update that was too large; the fault appears
    in the update after it. Until then an earlier checkpoint is kept.

    Args:
      step: finished updates.
      streak: number of updates in a row, up to the last one, that were skipped.
    """
    if self._untried is None or not self.enabled or step <= self._untried:
      return
    if not int(streak):
      self._drop_superseded()

  def _drop_superseded(self) -> None:
    """Drops superseded checkpoints; failures are ignored."""
    newest, self._untried = self._untried, None
    if newest is None:
      return
    try:
      self.checkpoints.drop_superseded(newest)
    except OSError as error:
      logging.error("an old checkpoint cannot be removed: %s", error)

  def best_step(self) -> int | None:
    """Returns the step of the best weights so far, if they are kept."""
    steps = self.checkpoints.directory.checkpoint_steps(BEST)
    return steps[-1] if steps else None

  def save_best(self, step: int) -> None:
    """Keeps the weights as the best so far, if anything is saved.

    Raises:
      OSError: if the system refuses.
    """
    if self.enabled:
      self.checkpoints.save_best(step)
