"""What tells a model where a token stands: timing signals, and a learnt table.

Shapes: L length, D hidden size, P positions of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from official_transformer.model.model_utils import get_position_encoding
from official_transformer.model_params import TransformerParams

# A length to float32 [length, D].
PositionSignal = Callable[[int | tf.Tensor], tf.Tensor]


def _paper_angles(length: int | tf.Tensor, hidden_size: int) -> tf.Tensor:
  """Returns `position / 10000^(2i / D)` (paper, 3.5), float32 [L, D / 2]."""
  exponents = np.arange(0, hidden_size, 2, dtype=np.float64) / hidden_size
  rates = tf.constant(10000.0**-exponents, tf.float32)
  return tf.cast(tf.range(length), tf.float32)[:, None] * rates


def interleaved_signal(length: int | tf.Tensor, hidden_size: int) -> tf.Tensor:
  """Returns the paper's signal, float32 [L, D]: a sine, its cosine, and so on.

  The official one has all sines first, and its slowest wave is that of 10000,
  which the paper's formula does not reach.
  """
  angles = _paper_angles(length, hidden_size)
  waves = tf.stack([tf.sin(angles), tf.cos(angles)], axis=2)
  return tf.reshape(waves, [-1, hidden_size])


def marian_signal(length: int | tf.Tensor, hidden_size: int) -> tf.Tensor:
  """Returns the paper's waves, all sines first, float32 [L, D] (Marian)."""
  angles = _paper_angles(length, hidden_size)
  return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)


class LearnedPositions(keras.layers.Layer):
  """A vector for each position (Gehring et al. 2017).

  Attributes:
    max_positions: P.
    hidden_size: D.
    table: float32 [P, D], drawn as embeddings are.
  """

  def __init__(
    self, max_positions: int, hidden_size: int, **kwargs: Any
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.max_positions = max_positions
    self.hidden_size = hidden_size

  def build(self, input_shape: Any = None) -> None:
    """Creates the table."""
    self.table = self.add_weight(
      name="table",
      shape=(self.max_positions, self.hidden_size),
      initializer=keras.initializers.RandomNormal(
        mean=0.0, stddev=self.hidden_size**-0.5
      ),
    )

  def rows(self, length: int | tf.Tensor) -> tf.Tensor:
    """Returns the first rows, [L, D]; fewer, if there are not so many."""
    return tf.convert_to_tensor(self.table)[:length]


# By `TransformerParams.positions`.
SIGNALS: dict[str, Callable[..., tf.Tensor]] = {
  "sinusoid": get_position_encoding,
  "interleaved": interleaved_signal,
  "marian": marian_signal,
}


def signal_of(params: TransformerParams) -> PositionSignal:
  """Returns a model's timing signal, which both sides share."""
  signal = SIGNALS[params.positions]
  return lambda length: signal(length, params.hidden_size)
