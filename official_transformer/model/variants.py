"""Alternatives to the official parts.

`TransformerParams` names each choice; docs/variants.md names the source of
each. A part is chosen from a table of this module when a model is made.

Shapes: B batch, L length, D hidden size, V vocabulary, P positions of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from official_transformer.model.embedding_layer import EmbeddingSharedWeights
from official_transformer.model.model_utils import get_position_encoding
from official_transformer.model_params import TransformerParams
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer import ConfiguredLayer
from official_transformer.ops.layer_norm import LayerNormalization

# A length to float32 [length, D].
PositionEncoding = Callable[[int | tf.Tensor], tf.Tensor]

# By `TransformerParams.activation`, the function between the two products of
# the feed-forward network. It gets the dropout layer, the first product, and
# whether to drop; the elements that dropout keeps are not scaled up.
ACTIVATIONS: dict[str, Callable[[Dropout, tf.Tensor, bool], tf.Tensor]] = {
  "relu": lambda dropout, x, training: dropout.after_relu(x, training),
  # Hendrycks and Gimpel 2016, exactly: x times the normal distribution of x.
  "gelu": lambda dropout, x, training: dropout.unscaled(
    tf.nn.gelu(x, approximate=False), training
  ),
  # Ramachandran et al. 2017, with factor 1, as Marian has it.
  "swish": lambda dropout, x, training: dropout.unscaled(
    tf.nn.silu(x), training
  ),
}


def _layer_norm(params: TransformerParams, name: str) -> LayerNormalization:
  return LayerNormalization(
    params.hidden_size, epsilon=params.layer_norm_epsilon, name=name
  )


class PostNormWrapper(ConfiguredLayer):
  """`layer_norm(x + dropout(layer(x)))`: the paper's order (3.1).

  Attributes:
    layer: the sub-layer, [B, L, D] to [B, L, D].
  """

  def __init__(
    self, layer: keras.layers.Layer, params: TransformerParams, **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
    self.params = params = TransformerParams.of(params)
    self.layer = layer
    self.layer_norm = create_norm(params, "layer_norm")
    self.dropout = Dropout(params.layer_postprocess_dropout, name="dropout")

  def call(
    self, x: tf.Tensor, *args: Any, training: bool = False, **kwargs: Any
  ) -> tf.Tensor:
    """Applies the sub-layer to `x` [B, L, D] and its further arguments."""
    y = self.layer(x, *args, training=training, **kwargs)
    return self.add(x, y, training)

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x` unchanged: post-norm normalises the residual sum instead."""
    return x

  def add(
    self, x: tf.Tensor, y: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns `layer_norm(x + dropout(y))`."""
    x += self.dropout(y, training=training)
    return self.layer_norm(x, training=training)


class Identity(ConfiguredLayer):
  """The end of a stack whose last sub-layer has ended in a norm."""

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x`."""
    return x


# By `TransformerParams.norm`: how vectors are normalised,
NORMS: dict[str, Callable[[TransformerParams, str], keras.layers.Layer]] = {
  "pre": _layer_norm,
  "post": _layer_norm,
}
# wrappers of sub-layers other than `LayerNormResidualWrapper`,
WRAPPERS: dict[str, type[keras.layers.Layer]] = {"post": PostNormWrapper}
# and ends of a stack other than one more norm.
STACK_ENDS: dict[str, type[keras.layers.Layer]] = {"post": Identity}


def create_norm(params: TransformerParams, name: str) -> keras.layers.Layer:
  """Returns a layer that normalises [..., D]; the official epsilon is 1e-6."""
  return NORMS[params.norm](params, name)


def create_stack_end(params: TransformerParams) -> keras.layers.Layer:
  """Returns the layer that is applied to the output of a stack's last layer."""
  if params.norm in STACK_ENDS:
    return STACK_ENDS[params.norm](name="output_norm")
  return create_norm(params, "output_norm")


def _paper_angles(length: int | tf.Tensor, hidden_size: int) -> tf.Tensor:
  """Returns `position / 10000^(2i / D)` (paper, 3.5), float32 [L, D / 2]."""
  exponents = np.arange(0, hidden_size, 2, dtype=np.float64) / hidden_size
  rates = tf.constant(10000.0**-exponents, tf.float32)
  return tf.cast(tf.range(length), tf.float32)[:, None] * rates


def interleaved_sinusoid(
  length: int | tf.Tensor, hidden_size: int
) -> tf.Tensor:
  """Returns the paper's encoding, [L, D]: a sine, its cosine, and so on (3.5).

  The official encoding has all sines first. Its slowest wave has the length
  10000 * 2 pi, which the paper's formula does not reach.
  """
  angles = _paper_angles(length, hidden_size)
  waves = tf.stack([tf.sin(angles), tf.cos(angles)], axis=2)
  return tf.reshape(waves, [-1, hidden_size])


def huggingface_sinusoid(
  length: int | tf.Tensor, hidden_size: int
) -> tf.Tensor:
  """Returns the paper's waves, all sines first, float32 [L, D].

  Hugging Face computes Marian's models so; Marian has the official form.
  """
  angles = _paper_angles(length, hidden_size)
  return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)


class LearnedPositions(ConfiguredLayer):
  """A vector for each position (Gehring et al. 2017).

  Attributes:
    max_positions: P.
    hidden_size: D.
    table: float32 [P, D], drawn as embeddings are.
  """

  def __init__(
    self, max_positions: int, hidden_size: int, **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
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


class Positions(NamedTuple):
  """A position encoding, which is added to embeddings.

  Attributes:
    source: position encoding of source tokens.
    target: position encoding of target tokens.
    layers: layers that own tables of positions.
  """

  source: PositionEncoding
  target: PositionEncoding
  layers: list[keras.layers.Layer]


def computed_positions(
  encoding: Callable[[int | tf.Tensor, int], tf.Tensor],
) -> Callable[[TransformerParams], Positions]:
  """Returns positions that both sides share, of a formula."""

  def create(params: TransformerParams) -> Positions:
    def of_length(length: int | tf.Tensor) -> tf.Tensor:
      return encoding(length, params.hidden_size)

    return Positions(of_length, of_length, [])

  return create


def _learned(params: TransformerParams) -> Positions:
  source, target = (
    LearnedPositions(params.max_positions, params.hidden_size, name=name)
    for name in ("source_positions", "target_positions")
  )
  return Positions(source.rows, target.rows, [source, target])


# By `TransformerParams.positions`.
POSITIONS: dict[str, Callable[[TransformerParams], Positions]] = {
  "sinusoid": computed_positions(get_position_encoding),
  "interleaved": computed_positions(interleaved_sinusoid),
  "huggingface": computed_positions(huggingface_sinusoid),
  "learned": _learned,
}


class BiasedOutputLayer(ConfiguredLayer):
  """A table that scores tokens, and a bias for each of them.

  For losses, the bias is one more column of the table, and each state gets one
  more element, which is 1.

  Attributes:
    embedding: has the table.
    bias: the variable, float32 [V].
  """

  def __init__(self, embedding: EmbeddingSharedWeights, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.embedding = embedding
    self.hidden_size = embedding.hidden_size

  def build(self, input_shape: Any = None) -> None:
    """Creates the bias; the table belongs to the embedding."""
    self.bias = self.add_weight(
      name="bias", shape=(self.embedding.vocab_size,), initializer="zeros"
    )

  def logits(self, x: tf.Tensor) -> tf.Tensor:
    """Scores every token: [..., D] to logits [..., V]."""
    bias = tf.cast(tf.convert_to_tensor(self.bias), x.dtype)
    return self.embedding.logits(x) + bias

  def loss_inputs(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns [R, D + 1] and [V, D + 1]; logits are their product."""
    table = tf.convert_to_tensor(self.embedding.shared_weights)
    return biased_inputs(states, table, tf.convert_to_tensor(self.bias))


def biased_inputs(
  states: tf.Tensor, table: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns [R, D + 1] and [V, D + 1], whose product has the bias [V]."""
  return (
    tf.pad(states, [[0, 0], [0, 1]], constant_values=1),
    tf.concat([table, bias[:, None]], axis=1),
  )


def hide_tokens(
  bias: tf.Tensor, hidden: Sequence[int], value: float
) -> tf.Tensor:
  """Returns the biases of logits with another one for some tokens.

  Args:
    bias: [V].
    hidden: the tokens.
    value: so low that they have no probability.
  """
  tokens = tf.range(tf.shape(bias)[0])
  for token in hidden:
    bias = tf.where(tokens == token, tf.cast(value, bias.dtype), bias)
  return bias


# Layers that score the vocabulary.
OutputLayer = EmbeddingSharedWeights | BiasedOutputLayer


class Tables(NamedTuple):
  """The embeddings of a model, one and the same or several.

  Attributes:
    target: looks target tokens up.
    source: looks source tokens up.
    output: scores target tokens.
    output_layers: layers of `output` that are neither of the other two.
  """

  target: EmbeddingSharedWeights
  source: EmbeddingSharedWeights
  output: OutputLayer
  output_layers: list[keras.layers.Layer]


def create_tables(params: TransformerParams) -> Tables:
  """Returns the tables that `share_embeddings` and its like ask for."""

  def create(vocab_size: int, name: str) -> EmbeddingSharedWeights:
    return EmbeddingSharedWeights(
      vocab_size,
      params.hidden_size,
      mask_pad=params.start_symbol == "zero",
      scaled=params.scale_embeddings,
      name=name,
    )

  source = target = create(params.vocab_size, "embedding")
  if params.source_rows:
    source = create(params.source_rows, "source_embedding")
  output: OutputLayer = target
  further: list[keras.layers.Layer] = []
  if params.share_embeddings == "none":
    output = create(params.vocab_size, "softmax")
    further.append(output)
  if params.output_bias:
    output = BiasedOutputLayer(output, name="output")
    further.append(output)
  return Tables(target, source, output, further)


def add_to_rows(
  embed: Callable[[tf.Tensor], tf.Tensor], vector: Any
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function that adds one vector [D] to each token's embedding."""

  def embed_and_add(ids: tf.Tensor) -> tf.Tensor:
    x = embed(ids)
    return x + tf.cast(tf.convert_to_tensor(vector), x.dtype)

  return embed_and_add
