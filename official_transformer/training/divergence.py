"""Ending a run after many updates in a row that are not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras

from official_transformer.errors import RunError


class Divergence(NamedTuple):
  """A run of updates that were not finite.

  Attributes:
    first: the first of these updates, counted from 1.
    last: the last.
    loss: loss of the last; the mean over one call that makes several.
    learning_rate: learning rate of the last.
  """

  first: int
  last: int
  loss: float
  learning_rate: float

  def error(self, batches_per_update: int) -> RunError:
    """Returns the error that ends the run."""
    first_batch = (self.first - 1) * batches_per_update
    last_batch = self.last * batches_per_update - 1
    return RunError(
      f"steps {self.first} to {self.last}: the loss or its gradients were not "
      f"finite in each (loss {self.loss:g}, learning rate "
      f"{self.learning_rate:.3g}, batches {first_batch} to {last_batch} of the "
      "run, from 0). They have changed no weight, and the checkpoints before "
      "them are kept. A learning rate too high is the usual cause: start a new "
      "model with a lower learning_rate, a longer learning_rate_warmup_steps "
      "or a clip_norm in --params_override, from --init_checkpoint if from "
      "these weights; or a dtype too narrow: see --dtype=bf16"
    )


class DivergenceGuard(keras.callbacks.Callback):
  """Stops training after too many updates in a row that are not finite.

  Attributes:
    most: updates in a row that may not be finite.
    step: updates made so far.
    divergence: the updates that stopped training; None if none did.
  """

  def __init__(self, most: int, first_step: int) -> None:
    super().__init__()
    self.most = most
    self.step = first_step
    self.divergence: Divergence | None = None
    self._unread: tuple[int, Mapping[str, Any]] | None = None

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Looks at the updates before these: nothing has to wait for a device."""
    self._read()
    self.step += int(logs.get("steps", 1))
    self._unread = (self.step, logs)

  def on_train_end(self, logs: Any = None) -> None:
    """Looks at the last ones too."""
    self._read()

  def _read(self) -> None:
    if self._unread is None or self.divergence is not None:
      return
    step, logs = self._unread
    streak = int(logs["streak"])
    if streak > self.most:
      self.divergence = Divergence(
        step - streak + 1,
        step,
        float(logs["loss"]),
        float(logs["learning_rate"]),
      )
      self.model.stop_training = True
