"""Attention weights of every layer and head for given sources and targets.

Training and search keep no attention weights. Here, the stacks are computed
once more, layer by layer, and each layer is asked for its weights.

Shapes: B batch, L layers, N heads, S source length, T target length.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model.attention_layer import (
  Attention,
  attention_weights_of,
)
from official_transformer.model.model_utils import (
  get_decoder_self_attention_bias,
  get_padding_bias,
)
from official_transformer.model.transformer import Transformer


class AttentionWeights(NamedTuple):
  """The weights of all layers and heads; each row adds up to 1.

  Row t of the targets is the position that predicts target t, from the targets
  before it: its own input is target t - 1, or the start symbol.

  Attributes:
    encoder: float32 [B, L, N, S, S], of source positions on each other.
    decoder: float32 [B, L, N, T, T], weights of target positions on decoder
      inputs; 0 on later positions.
    cross: float32 [B, L, N, T, S], of target positions on the source.
  """

  encoder: tf.Tensor
  decoder: tf.Tensor
  cross: tf.Tensor


def attention_weights(
  transformer: Transformer, source_ids: tf.Tensor, target_ids: tf.Tensor
) -> AttentionWeights:
  """Computes all attention weights (paper, 3.2), by teacher forcing.

  Args:
    transformer: the model.
    source_ids: int [B, S], padded with PAD.
    target_ids: int [B, T], padded with PAD. Rows of padding mean nothing.
  """
  source_bias = get_padding_bias(source_ids)
  x = transformer.embed_source(source_ids)
  encoder = []
  for layer in transformer.encoder_stack.layers:
    wrapper = layer.self_attention
    y = wrapper.normalize(x)
    encoder.append(_weights(wrapper.layer, y, y, source_bias))
    x = layer(x, source_bias)
  encoded = transformer.encoder_stack.normalize(x)
  length = tf.shape(target_ids)[1]
  x = transformer.embed_targets(target_ids, length)
  bias = get_decoder_self_attention_bias(length)
  decoder, cross = [], []
  for layer in transformer.decoder_stack.layers:
    wrapper = layer.self_attention
    y = wrapper.normalize(x)
    decoder.append(_weights(wrapper.layer, y, y, bias))
    y = wrapper(x, bias)
    wrapper = layer.cross_attention
    cross.append(
      _weights(wrapper.layer, wrapper.normalize(y), encoded, source_bias)
    )
    x = layer(x, encoded, bias, source_bias)
  return AttentionWeights(
    *(tf.stack(weights, axis=1) for weights in (encoder, decoder, cross))
  )


def _weights(
  layer: Attention, queries: tf.Tensor, source: tf.Tensor, bias: tf.Tensor
) -> tf.Tensor:
  """Returns float32 [B, N, F, T], of queries [B, F, D] on [B, T, D]."""
  (query,) = layer.project(queries, ("query",))
  (keys,) = layer.project(source, ("key",))
  return attention_weights_of(query, keys, bias)
