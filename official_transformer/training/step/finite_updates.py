"""Updates that are not finite are not made, and counted."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf


class FiniteUpdates:
  """Makes updates whose loss and gradients are finite, and skips the others.

  Attributes:
    skipped: int32 [], updates that were skipped.
    streak: int32 [], the number of updates skipped in a row, up to the last.
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
      update: updates a replica's own variables. It must not communicate with
        other replicas, because it is in a branch.
    """

    def made() -> tf.Tensor:
      update()
      return tf.constant(0)

    skipped = tf.cond(finite, made, lambda: tf.constant(1))
    self.skipped.assign(self.skipped.value + skipped)
    self.streak.assign((self.streak.value + 1) * skipped)
