"""A loss scale that finds its own size ("Mixed Precision Training", 3.2).

Small gradients vanish in float16, large ones overflow. The loss is multiplied
by a scale before gradients are taken, and they are divided by it. Where one
is not finite, the update is skipped and the scale halved; after many updates
without that, the scale doubles.

Keras' own `LossScaleOptimizer` cannot do this under a strategy: it decides on
each replica by itself, and branches around the reduction over replicas.
"""

from __future__ import annotations

import keras
import tensorflow as tf

INITIAL_SCALE = 2.0**15
GROWTH_STEPS = 2000


class DynamicLossScale:
  """The scale, and how long it has held.

  Attributes:
    scale: float32 [].
    good_steps: int32 [], updates since the scale last changed.
  """

  def __init__(self) -> None:
    def variable(value: float, dtype: str, name: str) -> keras.Variable:
      return keras.Variable(
        value,
        dtype=dtype,
        trainable=False,
        aggregation="only_first_replica",
        name=name,
      )

    self.scale = variable(INITIAL_SCALE, "float32", "scale")
    self.good_steps = variable(0, "int32", "good_steps")

  @property
  def variables(self) -> list[keras.Variable]:
    """The variables that a checkpoint must hold."""
    return [self.scale, self.good_steps]

  def reset(self) -> None:
    """Returns to the beginning."""
    self.scale.assign(INITIAL_SCALE)
    self.good_steps.assign(0)

  def adapt(self, finite: tf.Tensor) -> None:
    """Adapts the scale, alike on all replicas.

    Args:
      finite: bool [], whether the last gradients were, and the update made.
    """
    good_steps = tf.where(finite, self.good_steps.value + 1, 0)
    grown = good_steps >= GROWTH_STEPS
    factor = tf.where(finite, tf.where(grown, 2.0, 1.0), 0.5)
    self.scale.assign(tf.maximum(self.scale.value * factor, 1.0))
    self.good_steps.assign(tf.where(grown, 0, good_steps))
