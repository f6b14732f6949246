"""Recording some updates with TensorFlow's profiler."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from absl import logging

from official_transformer.training.failures import failures_are_logged


class Profiler(keras.callbacks.Callback):
  """Has TensorFlow's profiler record some updates.

  Attributes:
    directory: where TensorBoard finds the record.
    first: the first update recorded, counted from 1.
    last: the last.
    step: updates made so far.
  """

  def __init__(
    self, directory: str, steps: tuple[int, int], first_step: int
  ) -> None:
    super().__init__()
    self.directory = directory
    self.first, self.last = steps
    self.step = first_step
    self._running = False

  def checked(self, train_steps: int) -> Profiler:
    """Warns if a run that ends with `train_steps` records nothing."""
    if self.first > train_steps or self.last <= self.step:
      logging.warning(
        "--profile_steps=%d,%d: no step of this run, %d to %d",
        *(self.first, self.last, self.step + 1, train_steps),
      )
    return self

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts if the very next update is to be recorded."""
    self._start_or_stop()

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Starts before the first update to record, stops after the last."""
    self.step += int(logs.get("steps", 1))
    self._start_or_stop()

  def on_train_end(self, logs: Any = None) -> None:
    """Stops, if the run ends first."""
    self._stop()

  def _start_or_stop(self) -> None:
    if self.step >= self.last:
      self._stop()
    elif self.step + 1 >= self.first and not self._running:
      self._running = True
      self._first_recorded = self.step + 1
      with failures_are_logged("the start of the profiler"):
        tf.profiler.experimental.start(self.directory)

  def _stop(self) -> None:
    if self._running:
      self._running = False
      with failures_are_logged("the profiler"):
        tf.profiler.experimental.stop()
        logging.info(
          "the profile of steps %d to %d is in %s",
          self._first_recorded,
          self.step,
          self.directory,
        )
