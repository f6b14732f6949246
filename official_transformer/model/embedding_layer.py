"""Embeddings and softmax, of one table (paper, section 3.4).

Shapes: B batch, L length, D hidden size, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.model_params import PAD_ID
from official_transformer.ops.dense import matmul
from official_transformer.ops.layer import ConfiguredLayer


class EmbeddingSharedWeights(ConfiguredLayer):
  """One table for looking tokens up and for scoring them (3.4).

  `embed(ids) = table[ids] * sqrt(D)` and `logits(x) = x @ table^T`.

  Attributes:
    vocab_size: V.
    hidden_size: D.
    mask_pad: whether PAD embeds to zeros; else to row 0 of the table.
    scale: factor of the looked-up rows, sqrt(D) or 1.
    shared_weights: the table, a variable, float32 [V, D], drawn from N(0, 1/D).
  """

  def __init__(
    self,
    vocab_size: int,
    hidden_size: int,
    mask_pad: bool = True,
    scaled: bool = True,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self.vocab_size = vocab_size
    self.hidden_size = hidden_size
    self.mask_pad = mask_pad
    self.scaled = scaled
    self.scale = hidden_size**0.5 if scaled else 1.0

  def build(self, input_shape: Any = None) -> None:
    """Creates the table."""
    self.shared_weights = self.add_weight(
      name="weights",
      shape=(self.vocab_size, self.hidden_size),
      initializer=keras.initializers.RandomNormal(
        mean=0.0, stddev=self.hidden_size**-0.5
      ),
    )

  def __call__(  # type: ignore[override]
    self, inputs: Any, mode: str = "embedding"
  ) -> tf.Tensor:
    """Calls the layer; Keras takes no word by its position."""
    return super().__call__(inputs, mode=mode)

  def call(self, inputs: tf.Tensor, mode: str = "embedding") -> tf.Tensor:
    """Calls `embed`, or `logits` if the mode is `linear`.

    Raises:
      ValueError: if it is another mode.
    """
    if mode == "embedding":
      return self.embed(inputs)
    if mode == "linear":
      return self.logits(inputs)
    raise ValueError(f"mode is {mode!r}: there are embedding and linear")

  def embed(self, ids: tf.Tensor) -> tf.Tensor:
    """Embeds ids [B, L], each below V: [B, L, D] in the compute dtype."""
    table = tf.convert_to_tensor(self.shared_weights)
    embeddings = tf.gather(table, ids) * self.scale
    embeddings = tf.cast(embeddings, self.compute_dtype)
    if self.mask_pad:
      real = tf.cast(tf.not_equal(ids, PAD_ID), embeddings.dtype)
      embeddings *= real[..., None]
    return embeddings

  def logits(self, x: tf.Tensor) -> tf.Tensor:
    """Scores every token: maps [..., D] to [..., V] in the dtype of `x`."""
    flat = tf.reshape(x, [-1, self.hidden_size])
    logits = matmul(
      flat, tf.convert_to_tensor(self.shared_weights), transpose_b=True
    )
    return tf.reshape(
      logits, tf.concat([tf.shape(x)[:-1], [self.vocab_size]], axis=0)
    )

  def loss_inputs(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns states [R, D] and float32 [V, D]; logits are their product."""
    return states, tf.convert_to_tensor(self.shared_weights)
