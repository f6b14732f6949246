"""Layers that are computed twice, so that their insides need not be kept.

The gradient wants what each layer computed on its way. Kept from the forward
to the backward pass, that is most of what a step takes beside the weights;
computed again when it is wanted, it is there for one layer at a time (Chen et
al. 2016, "Training Deep Nets with Sublinear Memory Cost").
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.ops.dropout import current_seed, dropout_seed


def call_recomputed(
  layer: keras.layers.Layer,
  *inputs: tf.Tensor,
  training: bool = False,
) -> tf.Tensor:
  """Calls a layer, keeping nothing for its gradient but its inputs.

  Dropout draws the same masks both times.

  Args:
    layer: with all its variables; it has one output.
    *inputs: floats, of any shape.
    training: whether dropout is on; without, the layer is just called, since
      nobody asks for a gradient.

  Returns:
    What the layer returns.
  """
  if not training:
    return layer(*inputs)

  # The seed is an argument, not a captured value, so that masks are drawn
  # again and not kept; a float, since gradients are asked for of all arguments.
  @tf.recompute_grad
  def call(seed: tf.Tensor, *inputs: tf.Tensor) -> Any:
    with dropout_seed(tf.cast(seed, tf.int32)):
      return layer(*inputs, training=True)

  return call(tf.cast(current_seed(), tf.float64), *inputs)
