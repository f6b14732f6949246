"""The encoder's and the decoder's layers, and their stacks.

The official model normalises before each sub-layer (pre-norm), and once more
after a stack; the paper after each sub-layer's sum (post-norm).

Shapes: B batch, K beam, S source length, T target length, L any length, D
hidden size, N heads, H head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_transformer.model.attention_layer import (
  Attention,
  AttentionProjections,
  KeyValueCache,
  SelfAttention,
)
from official_transformer.model.beam_cache import (
  BeamCache,
  BeamHistory,
  empty_cache,
  history_of,
)
from official_transformer.model.ffn_layer import (
  FeedForwardNetwork,
  FeedForwardProjections,
)
from official_transformer.model_params import TransformerParams
from official_transformer.ops.dense import product_dtype
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer_norm import LayerNormalization


class EncodedSource(NamedTuple):
  """What the decoder needs to know of the source.

  Attributes:
    outputs: [B, S, D], the encoder's output.
    bias: float32 [B, 1, 1, S], hides the padding.
  """

  outputs: tf.Tensor
  bias: tf.Tensor


class ProjectedSource(NamedTuple):
  """The source as a layer's cross-attention reads it.

  Attributes:
    cache: its keys and values, [B, N, S, H].
    bias: float32 [B, 1, 1, S], hides the padding.
  """

  cache: KeyValueCache
  bias: tf.Tensor


class StepProjections(NamedTuple):
  """What a decoding step multiplies by, in one layer; the same in all steps."""

  self_attention: AttentionProjections
  cross_attention: AttentionProjections
  ffn: FeedForwardProjections


class DecoderCache(NamedTuple):
  """What a decoding step reads of earlier positions and of the source.

  Attributes:
    targets: each layer's own keys and values, of all beams.
    sources: for each layer, the source's keys and values, [B, N, S, H].
    source_bias: float32 [B, 1, 1, S].
  """

  targets: list[BeamCache]
  sources: list[KeyValueCache]
  source_bias: tf.Tensor


def layer_norm(params: TransformerParams, name: str) -> LayerNormalization:
  """Returns a layer normalisation; the official epsilon is 1e-6."""
  return LayerNormalization(
    params.hidden_size, epsilon=params.layer_norm_epsilon, name=name
  )


class LayerNormResidualWrapper(keras.layers.Layer):
  """`x + dropout(layer(layer_norm(x)))`: a sub-layer with its pre-norm.

  Attributes:
    layer: the sub-layer, [B, L, D] to [B, L, D].
  """

  def __init__(
    self, layer: keras.layers.Layer, params: TransformerParams, **kwargs: Any
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.params = params
    self.layer = layer
    self.layer_norm = layer_norm(params, "layer_norm")
    self.dropout = Dropout(params.layer_postprocess_dropout, name="dropout")

  def build(self, input_shape: Any = None) -> None:
    """Builds the norm and the sub-layer."""
    self.layer_norm.build()
    self.layer.build(None)
    self.dropout.build(None)

  def call(
    self, x: tf.Tensor, *inputs: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Applies the sub-layer to `x` [B, L, D] and its further inputs."""
    y = self.layer(self.normalize(x, training), *inputs, training=training)
    return self.add(x, y, training)

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `layer_norm(x)` in the dtype of `x`."""
    return self.layer_norm(x, training=training)

  def add(
    self, x: tf.Tensor, y: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns `x + dropout(y)`."""
    return x + self.dropout(y, training=training)


class PostNormWrapper(LayerNormResidualWrapper):
  """`layer_norm(x + dropout(layer(x)))`: a sub-layer with its post-norm."""

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x` unchanged: post-norm normalises the residual sum instead."""
    return x

  def add(
    self, x: tf.Tensor, y: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns `layer_norm(x + dropout(y))`."""
    x += self.dropout(y, training=training)
    return self.layer_norm(x, training=training)


class Identity(keras.layers.Layer):
  """In the place of the norm after a stack: what came last is normalised."""

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing."""

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x`."""
    return x


# By `TransformerParams.norm`: what is around a sub-layer, and after a stack.
WRAPPERS = {"pre": LayerNormResidualWrapper, "post": PostNormWrapper}
OUTPUT_NORMS: dict[str, Callable[..., keras.layers.Layer]] = {
  "pre": layer_norm,
  "post": lambda params, name: Identity(autocast=False, name=name),
}


class EncoderLayer(keras.layers.Layer):
  """Self-attention, then a feed-forward network (paper, 3.1)."""

  def __init__(self, params: TransformerParams, **kwargs: Any) -> None:
    super().__init__(autocast=False, **kwargs)
    self.self_attention = _self_attention(params)
    self.ffn = _feed_forward(params)

  def build(self, input_shape: Any = None) -> None:
    """Builds both sub-layers."""
    self.self_attention.build(None)
    self.ffn.build(None)

  def call(
    self, x: tf.Tensor, bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Maps `x` [B, S, D] to [B, S, D]; `bias` [B, 1, 1, S]."""
    x = self.self_attention(x, bias, training=training)
    return self.ffn(x, training=training)


class DecoderLayer(keras.layers.Layer):
  """Self-attention, attention to the source, then a feed-forward network."""

  def __init__(self, params: TransformerParams, **kwargs: Any) -> None:
    super().__init__(autocast=False, **kwargs)
    self.self_attention = _self_attention(params)
    self.cross_attention = _attention(params, Attention, "cross_attention")
    self.ffn = _feed_forward(params)

  def build(self, input_shape: Any = None) -> None:
    """Builds the three sub-layers."""
    self.self_attention.build(None)
    self.cross_attention.build(None)
    self.ffn.build(None)

  def call(
    self,
    x: tf.Tensor,
    self_bias: tf.Tensor,
    source: tf.Tensor,
    source_bias: tf.Tensor,
    training: bool = False,
  ) -> tf.Tensor:
    """Maps all target positions at once.

    Args:
      x: [B, T, D].
      self_bias: [1, 1, T, T], hides later positions.
      source: the encoder's output [B, S, D].
      source_bias: [B, 1, 1, S], hides padding.
      training: whether dropout is on.

    Returns:
      [B, T, D].
    """
    x = self.self_attention(x, self_bias, training=training)
    x = self.cross_attention(x, source, source_bias, training=training)
    return self.ffn(x, training=training)

  def step_projections(self) -> StepProjections:
    """Returns what all steps multiply by."""
    return StepProjections(
      self.self_attention.layer.step_projections(),
      self.cross_attention.layer.step_projections(),
      self.ffn.layer.step_projections(),
    )

  def step_self(
    self,
    x: tf.Tensor,
    projections: StepProjections,
    cache: BeamCache,
    index: tf.Tensor,
    past: BeamHistory,
  ) -> tuple[tf.Tensor, BeamCache]:
    """Attends from one new position of every hypothesis to it and its past.

    Args:
      x: [B, K, D].
      projections: what `step_projections` returned.
      cache: with room for the new position.
      index: int32 [], the new position, counted from 0.
      past: what each hypothesis attends to.

    Returns:
      [B, K, D], and the cache with the new position.
    """
    wrapper = self.self_attention
    y, cache = wrapper.layer.step(
      wrapper.normalize(x), projections.self_attention, cache, index, past
    )
    return wrapper.add(x, y), cache

  def step_source(
    self, x: tf.Tensor, projections: StepProjections, source: ProjectedSource
  ) -> tf.Tensor:
    """Attends from new positions, [B, K, D], to the source; maps what comes."""
    wrapper = self.cross_attention
    y = wrapper.layer.attend_step(
      wrapper.normalize(x),
      projections.cross_attention,
      source.cache,
      source.bias,
    )
    x = wrapper.add(x, y)
    y = self.ffn.layer.step(self.ffn.normalize(x), projections.ffn)
    return self.ffn.add(x, y)

  def source_attention(
    self, x: tf.Tensor, source: ProjectedSource
  ) -> tf.Tensor:
    """Returns how much `step_source` attends to what, float32 [B, N, K, S]."""
    wrapper = self.cross_attention
    x = wrapper.normalize(x)
    return wrapper.layer.attention_to(x, source.cache, source.bias)


def call_layer(
  layer: keras.layers.Layer, *inputs: tf.Tensor, training: bool = False
) -> tf.Tensor:
  """Calls a layer."""
  return layer(*inputs, training=training)


class Stack(keras.layers.Layer):
  """Equal layers on top of each other, and the norm after them.

  Attributes:
    layers: `layer_0`, `layer_1`, ...
    output_normalization: applied to what the last layer returns.
    call_layer: how each is called: `call_layer`, or `call_recomputed`.
  """

  def __init__(
    self,
    params: TransformerParams,
    layer_class: type[keras.layers.Layer],
    number: int,
    **kwargs: Any,
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.params = params
    self.call_layer: Callable[..., tf.Tensor] = call_layer
    self.layers = [
      layer_class(params, name=f"layer_{i}") for i in range(number)
    ]
    self.output_normalization = OUTPUT_NORMS[params.norm](
      params, name="output_norm"
    )

  def build(self, input_shape: Any = None) -> None:
    """Builds every layer."""
    for layer in self.layers:
      layer.build(None)
    self.output_normalization.build()

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Applies the norm after the last layer, in the dtype of `x`."""
    return self.output_normalization(x, training=training)


class EncoderStack(Stack):
  """The encoder."""

  def __init__(self, params: TransformerParams, **kwargs: Any) -> None:
    super().__init__(params, EncoderLayer, params.encoder_layers, **kwargs)

  def call(
    self, x: tf.Tensor, bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Maps embedded sources [B, S, D] to [B, S, D]; `bias` [B, 1, 1, S]."""
    for layer in self.layers:
      x = self.call_layer(layer, x, bias, training=training)
    return self.normalize(x, training)


class DecoderStack(Stack):
  """The decoder."""

  def __init__(self, params: TransformerParams, **kwargs: Any) -> None:
    super().__init__(params, DecoderLayer, params.decoder_layers, **kwargs)

  def call(
    self,
    x: tf.Tensor,
    self_bias: tf.Tensor,
    source: tf.Tensor,
    source_bias: tf.Tensor,
    training: bool = False,
  ) -> tf.Tensor:
    """Maps [B, T, D] to [B, T, D]; arguments as in `DecoderLayer.call`."""
    for layer in self.layers:
      x = self.call_layer(
        layer, x, self_bias, source, source_bias, training=training
      )
    return self.normalize(x, training)

  def start(
    self, source: EncodedSource, beam_size: int, length: int | None
  ) -> DecoderCache:
    """Returns what the first step reads.

    Args:
      source: what `EncoderStack` and its bias gave.
      beam_size: K.
      length: positions to make room for at once; None makes room as it is
        needed.
    """
    dtype = product_dtype(source.outputs.dtype)
    room = empty_cache(
      tf.shape(source.outputs)[0],
      self.params.num_heads,
      length or 0,
      beam_size,
      self.params.hidden_size // self.params.num_heads,
      dtype,
    )
    projected = [
      layer.cross_attention.layer.project_keys_values(source.outputs)
      for layer in self.layers
    ]
    return DecoderCache(
      targets=[BeamCache(room, room) for _ in self.layers],
      # Cast once, not in every step.
      sources=[
        KeyValueCache(tf.cast(keys, dtype), tf.cast(values, dtype))
        for keys, values in projected
      ],
      source_bias=source.bias,
    )

  def step_projections(self) -> list[StepProjections]:
    """Returns what `step` needs of each layer, computed once for all steps."""
    return [layer.step_projections() for layer in self.layers]

  def step(
    self,
    x: tf.Tensor,
    projections: list[StepProjections],
    index: tf.Tensor,
    origin_beams: tf.Tensor,
    cache: DecoderCache,
    observed: list[tf.Tensor] | None = None,
  ) -> tuple[tf.Tensor, DecoderCache]:
    """Maps one new position of every hypothesis.

    Args:
      x: [B, K, D].
      projections: what `step_projections` returned.
      index: int32 [], the new position, counted from 0.
      origin_beams: int32 [B * K, T], as in `beam_cache`.
      cache: with room for the new position.
      observed: gets each layer's attention to the source, float32
        [B, N, K, S], if it is there.

    Returns:
      [B, K, D], and the cache with the new position.
    """
    past = history_of(origin_beams, x.shape[1], self.params.num_heads)
    targets = []
    for layer, of_layer, target, source_cache in zip(
      self.layers, projections, cache.targets, cache.sources, strict=True
    ):
      source = ProjectedSource(source_cache, cache.source_bias)
      x, target = layer.step_self(x, of_layer, target, index, past)
      if observed is not None:
        observed.append(layer.source_attention(x, source))
      x = layer.step_source(x, of_layer, source)
      targets.append(target)
    return self.normalize(x), cache._replace(targets=targets)


def _wrap(
  layer: keras.layers.Layer, params: TransformerParams, name: str
) -> LayerNormResidualWrapper:
  return WRAPPERS[params.norm](layer, params, name=name)


def _attention(
  params: TransformerParams, kind: type[Attention], name: str
) -> LayerNormResidualWrapper:
  attention = kind(
    params.hidden_size,
    params.num_heads,
    params.attention_dropout,
    params.initializer_gain,
    params.attention_bias,
    name="attention",
  )
  return _wrap(attention, params, name)


def _self_attention(params: TransformerParams) -> LayerNormResidualWrapper:
  return _attention(params, SelfAttention, "self_attention")


def _feed_forward(params: TransformerParams) -> LayerNormResidualWrapper:
  network = FeedForwardNetwork(
    params.hidden_size,
    params.filter_size,
    params.relu_dropout,
    params.initializer_gain,
    params.activation,
    name="network",
  )
  return _wrap(network, params, "ffn")
