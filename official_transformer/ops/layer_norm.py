"""Layer normalisation (Ba et al. 2016), with a gradient of few passes.

Shapes: D hidden size; leading dimensions any.
"""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow as tf

from official_transformer.ops.custom_gradient import call_with_gradient
from official_transformer.ops.layer import ConfiguredLayer


class LayerNormalization(ConfiguredLayer):
  """`(x - mean) / sqrt(variance + epsilon) * gamma + beta` over the last axis.

  Computed in float32, for inputs of any dtype.

  Attributes:
    hidden_size: D.
    epsilon: keeps the root away from zero.
  """

  keras_defaults: ClassVar = {"dtype": "float32"}

  def __init__(
    self, hidden_size: int, epsilon: float = 1e-6, **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
    self.hidden_size = hidden_size
    self.epsilon = epsilon

  def build(self, input_shape: Any = None) -> None:
    """Creates gamma and beta, [D] each."""
    self.gamma = self.add_weight(
      name="gamma", shape=(self.hidden_size,), initializer="ones"
    )
    self.beta = self.add_weight(
      name="beta", shape=(self.hidden_size,), initializer="zeros"
    )

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Normalises [..., D]; returns the dtype of `x`."""
    return _normalize(
      x,
      tf.convert_to_tensor(self.gamma),
      tf.convert_to_tensor(self.beta),
      self.epsilon,
      training,
    )


def _normalize(
  x: tf.Tensor,
  gamma: tf.Tensor,
  beta: tf.Tensor,
  epsilon: float,
  training: bool,
) -> tf.Tensor:
  """Normalises `x`; training keeps `x` and two numbers a row for the gradient.

  With n the normalised `x`, s its inverse deviation and g the gradient of n:
  `dx = s (g - mean(g) - n mean(g n))`.
  """

  def normalized(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
    wide = tf.cast(x, tf.float32)
    mean = tf.reduce_mean(wide, axis=-1, keepdims=True)
    centred = wide - mean
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
      upstream = tf.cast(upstream, tf.float32)
      # Not before it is needed: TensorFlow would compute it while the forward
      # pass still runs, and keep it.
      with tf.control_dependencies([upstream]):
        n = (tf.cast(x, tf.float32) - mean) * inverse
      rows = list(range(len(x.shape) - 1))
      product = upstream * n
      g = upstream * gamma
      g_mean = tf.reduce_mean(g, axis=-1, keepdims=True)
      gn_mean = tf.reduce_mean(product * gamma, axis=-1, keepdims=True)
      dx = inverse * (g - g_mean - n * gn_mean)
      return (
        tf.cast(dx, x.dtype),
        tf.reduce_sum(product, axis=rows),
        tf.reduce_sum(upstream, axis=rows),
      )

    return tf.cast(centred * inverse * gamma + beta, x.dtype), gradient

  return call_with_gradient(normalized, x, gamma, beta, training=training)
