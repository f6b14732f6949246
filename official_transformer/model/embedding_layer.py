"""The embedding table shared by source, target and pre-softmax projection.

Shapes: B batch, L length, D hidden size, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.model_params import PAD_ID
from official_transformer.ops.dense import (
  PreparedKernel,
  matmul,
  prepare_table,
)


class EmbeddingSharedWeights(keras.layers.Layer):
  """One table for looking tokens up and for scoring them (paper, 3.4).

  `embed(ids) = table[ids] * sqrt(D)` and `linear(x) = x @ table^T`.

  Attributes:
    vocab_size: V.
    hidden_size: D.
    mask_pad: whether PAD embeds to zeros; else to row 0 of the table.
    scale: what looked-up rows are multiplied by, sqrt(D) or 1.
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
    super().__init__(autocast=False, **kwargs)
    self.vocab_size = vocab_size
    self.hidden_size = hidden_size
    self.mask_pad = mask_pad
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

  def get_config(self) -> dict[str, Any]:
    """Returns the constructor's arguments; unusual ones if they are so."""
    config = {
      **super().get_config(),
      "vocab_size": self.vocab_size,
      "hidden_size": self.hidden_size,
    }
    if not self.mask_pad:
      config["mask_pad"] = False
    if self.scale == 1.0:
      config["scaled"] = False
    return config

  def call(self, inputs: tf.Tensor, mode: str = "embedding") -> tf.Tensor:
    """Embeds tokens, or scores all tokens, as the official layer does.

    Args:
      inputs: what `embed` or `linear` takes.
      mode: `embedding` or `linear`.

    Raises:
      ValueError: if it is another mode.
    """
    if mode == "embedding":
      return self.embed(inputs)
    if mode == "linear":
      return self.linear(inputs)
    raise ValueError(f"mode is {mode!r}: there are embedding and linear")

  def embed(self, ids: tf.Tensor) -> tf.Tensor:
    """Embeds tokens.

    Args:
      ids: integers [B, L], each below V.

    Returns:
      [B, L, D] in the layer's compute dtype.
    """
    table = tf.convert_to_tensor(self.shared_weights)
    embeddings = tf.gather(table, ids) * self.scale
    embeddings = tf.cast(embeddings, self.compute_dtype)
    if self.mask_pad:
      real = tf.cast(tf.not_equal(ids, PAD_ID), embeddings.dtype)
      embeddings *= real[..., None]
    return embeddings

  def operands(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what logits are the product of: states, and a table.

    Args:
      states: [R, D].

    Returns:
      [R, D] and float32 [V, D].
    """
    return states, tf.convert_to_tensor(self.shared_weights)

  def linear(self, x: tf.Tensor) -> tf.Tensor:
    """Scores every token of the vocabulary.

    Args:
      x: [..., D].

    Returns:
      Logits, [..., V], in the dtype of `x`.
    """
    flat = tf.reshape(x, [-1, self.hidden_size])
    logits = matmul(
      flat, tf.convert_to_tensor(self.shared_weights), transpose_b=True
    )
    return tf.reshape(
      logits, tf.concat([tf.shape(x)[:-1], [self.vocab_size]], axis=0)
    )

  def output_projection(self) -> PreparedKernel:
    """Returns the table as few rows are multiplied fastest."""
    return prepare_table(
      tf.convert_to_tensor(self.shared_weights), tf.as_dtype(self.compute_dtype)
    )


class BiasedOutputLayer(keras.layers.Layer):
  """A table that scores tokens, and a bias for each of them.

  To whoever computes losses, the bias is one more column of the table, whose
  state is 1.

  Attributes:
    embedding: has the table.
    bias: the variable, float32 [V].
  """

  def __init__(self, embedding: EmbeddingSharedWeights, **kwargs: Any) -> None:
    super().__init__(autocast=False, **kwargs)
    self.embedding = embedding
    self.hidden_size = embedding.hidden_size

  def build(self, input_shape: Any = None) -> None:
    """Creates the bias; the table is the embedding's."""
    self.bias = self.add_weight(
      name="bias", shape=(self.embedding.vocab_size,), initializer="zeros"
    )

  def operands(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what logits are the product of, [R, D + 1] and [V, D + 1]."""
    table = tf.convert_to_tensor(self.embedding.shared_weights)
    bias = tf.convert_to_tensor(self.bias)
    return (
      tf.pad(states, [[0, 0], [0, 1]], constant_values=1),
      tf.concat([table, bias[:, None]], axis=1),
    )

  def linear(self, x: tf.Tensor) -> tf.Tensor:
    """Scores every token: [..., D] to logits [..., V]."""
    bias = tf.cast(tf.convert_to_tensor(self.bias), x.dtype)
    return self.embedding.linear(x) + bias

  def output_projection(self) -> PreparedKernel:
    """Returns table and bias as they are used fastest."""
    projection = self.embedding.output_projection()
    return projection.with_bias(tf.cast(self.bias, projection.kernel.dtype))


# What scores the vocabulary.
Softmax = EmbeddingSharedWeights | BiasedOutputLayer
