"""Layers that are computed twice, so that their insides need not be kept.

The gradient needs the intermediate results of each layer. Keeping them from the
forward to the backward pass takes most of the memory that a step needs besides
the weights. Computing them again in the backward pass needs memory for one
layer at a time (Chen et al. 2016, "Training Deep Nets with Sublinear Memory
Cost").
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.ops.dropout import current_seed, dropout_seed


def recompute_in_gradients(layer: keras.layers.Layer) -> None:
  """Has the gradient compute a layer again, and keep nothing but its inputs.

  Dropout draws the same masks both times. Without training the layer is called
  directly, because there is no gradient.

  Args:
    layer: with all its variables; it has one output, and reads floats.
  """
  compute = layer.call

  def call(*inputs: tf.Tensor, training: bool = False, **options: Any) -> Any:
    if not training:
      return compute(*inputs, training=False, **options)

    # The seed is an argument, not a captured value, so that masks are drawn
    # again and not kept; a float, since gradients are asked for of all.
    @tf.recompute_grad
    def again(seed: tf.Tensor, *inputs: tf.Tensor) -> Any:
      with dropout_seed(tf.cast(seed, tf.int32)):
        return compute(*inputs, training=True, **options)

    return again(tf.cast(current_seed(), tf.float64), *inputs)

  layer.call = call
