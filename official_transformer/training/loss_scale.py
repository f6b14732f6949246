"""A loss scale that finds its own size ("Mixed Precision Training", 3.2).

Small gradients vanish in float16, large ones overflow. The loss is multiplied
by a scale before gradients are taken, and they are divided by it. Where one
is not finite, the update is skipped and the scale halved; after many updates
without that, the scale doubles.

Keras' own `LossScaleOptimizer` cannot do this under a strategy: it decides on
each replica by itself, and branches around the reduction over replicas.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

INITIAL_SCALE = 2.0**15
GROWTH_STEPS = 2000


class DynamicLossScale:
  """The scale, and the updates since it last changed.

  Attributes:
    scale: float32 [].
    good_steps: int32 [].
  """

  def __init__(self) -> None:
    self.scale = keras.Variable(
      INITIAL_SCALE, dtype="float32", trainable=False, name="scale"
    )
    self.good_steps = keras.Variable(
      0, dtype="int32", trainable=False, name="good_steps"
    )

  @property
  def variables(self) -> list[keras.Variable]:
    """What a checkpoint must hold."""
    return [self.scale, self.good_steps]

  def apply_if_finite(
    self, gradients: list[tf.Tensor], apply: Callable[[list[tf.Tensor]], Any]
  ) -> None:
    """Updates, or not, on all replicas alike; adapts the scale.

    Called in the context of a replica.

    Args:
      gradients: this replica's, not scaled any more.
      apply: updates the variables with them.
    """
    replica = tf.distribute.get_replica_context()
    checks = [tf.reduce_all(tf.math.is_finite(g)) for g in gradients]
    spoilt = 1.0 - tf.cast(tf.reduce_all(checks), tf.float32)
    spoilt = replica.all_reduce(tf.distribute.ReduceOp.SUM, spoilt)
    # What is passed as an argument is gathered over the replicas: `apply`,
    # the same on all, must not be.
    decide = functools.partial(self._decide, apply=apply)
    replica.merge_call(decide, args=(spoilt, gradients))

  def _decide(
    self,
    strategy: tf.distribute.Strategy,
    spoilt: Any,
    gradients: Any,
    apply: Callable[[list[tf.Tensor]], Any],
  ) -> None:
    """Branches once for all replicas: they must not branch one by one."""

    def update() -> tf.Tensor:
      strategy.run(apply, args=(gradients,))
      grown = self.good_steps + 1 >= GROWTH_STEPS
      self.scale.assign(tf.where(grown, self.scale * 2.0, self.scale * 1.0))
      self.good_steps.assign(tf.where(grown, 0, self.good_steps + 1))
      return tf.constant(True)

    def skip() -> tf.Tensor:
      self.scale.assign(tf.maximum(self.scale / 2.0, 1.0))
      self.good_steps.assign(0)
      return tf.constant(False)

    spoilt = strategy.experimental_local_results(spoilt)[0]
    tf.cond(spoilt > 0.0, skip, update)
