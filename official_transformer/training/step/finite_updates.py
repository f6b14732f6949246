"""Updates that are not finite: made by nobody, counted, and stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf


class FiniteUpdates:
  """Makes updates whose loss and gradients are finite, and skips the others.

  Attributes:
    skipped: int32 [], updates that were skipped.
    streak: int32 [], how many of them are the last ones, one after the other.
  """

  def __init__(self) -> None:
    def counter(name: str) -> keras.Variable:
      return keras.Variable(
        0,
        dtype="int32",
        trainable=False,
        aggregation="only_first_replica",
        name=name,
      )

    self.skipped = counter("skipped_steps")
    self.streak = counter("streak")

  def reset(self) -> None:
    """Returns to the beginning."""
    self.skipped.assign(0)
    self.streak.assign(0)

  def make(self, finite: tf.Tensor, update: Callable[[], None]) -> None:
    """Makes an update, or not, on all replicas alike.

    Args:
      finite: bool [], the same on all replicas.
      update: updates a replica's own variables, and exchanges nothing with
        other replicas: it stands in a branch.
    """

    def made() -> tf.Tensor:
      update()
      return tf.constant(0)

    skipped = tf.cond(finite, made, lambda: tf.constant(1))
    self.skipped.assign(self.skipped.value + skipped)
    self.streak.assign((self.streak.value + 1) * skipped)


class Divergence(NamedTuple):
  """A run of updates that were not finite.

  Attributes:
    first: the first of them, counted from 1.
    last: the last.
    loss: of the last; the mean over one call where it makes several.
    learning_rate: of the last.
  """

  first: int
  last: int
  loss: float
  learning_rate: float


class FiniteUpdatesGuard(keras.callbacks.Callback):
  """Stops training after too many updates in a row that are not finite.

  Attributes:
    most: updates in a row that may not be finite.
    step: updates made so far.
    divergence: what stopped training, if it did.
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
