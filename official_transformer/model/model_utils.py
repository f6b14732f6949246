"""Positions, padding and biases.

Shapes: B batch, L length, S source length, T target length, D hidden size.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from official_transformer.model_params import PAD_ID

# Added to attention logits where attention is forbidden: large enough that
# softmax gives exactly zero beside any real logit in float32.
NEGATIVE_BIAS = -1e9


def get_position_encoding(
  length: int | tf.Tensor,
  hidden_size: int,
  min_timescale: float = 1.0,
  max_timescale: float = 1.0e4,
) -> tf.Tensor:
  """Returns the sinusoidal timing signal (paper, 3.5).

  As in Tensor2Tensor, all sines come before all cosines, which the paper's
  formula interleaves. With `min_timescale` 1, timescales form a geometric
  progression from 1 to `max_timescale`, both included; with another m, the
  official formula has one from 1 / m to `max_timescale` / m^2. A wavelength is
  2 pi times its timescale.

  Args:
    length: number of positions, counted from 0.
    hidden_size: D, even and at least 4.
    min_timescale: m, as above.
    max_timescale: as above.

  Returns:
    float32 [length, D].
  """
  num_timescales = hidden_size // 2
  increment = math.log(max_timescale / min_timescale) / (num_timescales - 1)
  inverse_timescales = min_timescale * np.exp(
    np.arange(num_timescales, dtype=np.float32) * -np.float32(increment)
  )
  positions = tf.cast(tf.range(length), tf.float32)
  scaled_time = positions[:, None] * tf.constant(inverse_timescales)[None, :]
  return tf.concat([tf.sin(scaled_time), tf.cos(scaled_time)], axis=1)


def get_decoder_self_attention_bias(
  length: int | tf.Tensor, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Returns the bias that hides later positions from earlier ones (3.2.3).

  Args:
    length: T.
    dtype: type of the bias.

  Returns:
    [1, 1, T, T]: 0 where row may see column, else a large negative number:
    `NEGATIVE_BIAS`, or float16's lowest.
  """
  visible = tf.linalg.band_part(tf.ones([length, length], dtype), -1, 0)
  return ((1.0 - visible) * _negative_bias(dtype))[None, None, :, :]


def get_padding(
  x: tf.Tensor, padding_value: int = PAD_ID, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Returns 1 where `x` holds the padding value and 0 elsewhere."""
  return tf.cast(tf.equal(x, padding_value), dtype)


def get_padding_bias(
  x: tf.Tensor, padding_value: int = PAD_ID, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Returns the bias [B, 1, 1, L] that hides the padding of `x` [B, L].

  The bias is 0 at tokens and, at padding, the large negative number of
  `get_decoder_self_attention_bias`.
  """
  padding = get_padding(x, padding_value, dtype)
  return (padding * _negative_bias(dtype))[:, None, None, :]


def _negative_bias(dtype: tf.DType) -> float:
  """Returns the number that, added to a logit, makes its weight zero."""
  return max(NEGATIVE_BIAS, float(tf.as_dtype(dtype).min))
