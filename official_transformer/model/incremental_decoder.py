"""Cached decoding: one new position of every hypothesis at a time.

Equal to `Transformer.decode` of whole targets (a test compares the two), but
keys and values of earlier positions, and of the source, are kept, and kernels
are prepared for products with few rows.

Shapes: B batch, K beam, S source length, T positions there is capacity for, N
heads, H head size, D hidden size, V vocabulary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import keras
import tensorflow as tf

from official_transformer.hardware.processor import Target, traced_for
from official_transformer.model.attention_layer import (
  PROJECTIONS,
  Attention,
  attention_weights_of,
)
from official_transformer.model.beam_cache import (
  NO_BEAM,
  BeamCache,
  BeamHistory,
  empty_cache,
  ensure_capacity,
  history_of,
  read_history,
  record_origins,
  write_position,
)
from official_transformer.model.embedding_layer import EmbeddingSharedWeights
from official_transformer.model.ffn_layer import FeedForwardNetwork
from official_transformer.model.model_utils import get_padding_bias
from official_transformer.model.variants import (
  OutputLayer,
  Positions,
  hide_tokens,
)
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.ops.dense import (
  PreparedKernel,
  prepare_kernel,
  prepare_table,
  product_dtype,
)
from official_transformer.search.beam_search import BeamSearch
from official_transformer.search.rules import finishes_for_patience
from official_transformer.search.state import (
  NEG_INF,
  NO_HOOKS,
  DecoderState,
  SearchHooks,
  SearchResult,
)


class EncodedSource(NamedTuple):
  """The source as the decoder reads it.

  Attributes:
    outputs: [B, S, D], the encoder's output.
    bias: float32 [B, 1, 1, S], hides the padding.
  """

  outputs: tf.Tensor
  bias: tf.Tensor

  def lengths(self) -> tf.Tensor:
    """Returns how many tokens each source has, int32 [B]."""
    return tf.math.count_nonzero(
      tf.equal(self.bias[:, 0, 0], 0.0), axis=1, dtype=tf.int32
    )


class KeyValueCache(NamedTuple):
  """Keys and values of a source.

  Attributes:
    keys: [B, N, S, H].
    values: [B, N, S, H].
  """

  keys: tf.Tensor
  values: tf.Tensor


class DecoderCache(NamedTuple):
  """Keys and values of earlier positions and of the source.

  Attributes:
    targets: each layer's own keys and values, of all beams.
    sources: for each layer, the source's keys and values.
    source_bias: float32 [B, 1, 1, S].
  """

  targets: list[BeamCache]
  sources: list[KeyValueCache]
  source_bias: tf.Tensor


class CachedModel(Protocol):
  """The parts of a `Transformer` that an incremental decoder uses."""

  params: TransformerParams
  embedding: EmbeddingSharedWeights
  softmax: OutputLayer
  positions: Positions
  compute_dtype: str
  decoder_stack: Any

  def encode(
    self, inputs: tf.Tensor, attention_bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Encodes source ids [B, S] to [B, S, D]."""


class AttentionStep:
  """An attention layer in the steps of a search, its kernels prepared.

  Attributes:
    layer: the attention.
    names: the projections of a new position, which one product makes.
  """

  def __init__(self, layer: Attention, names: tuple[str, ...]) -> None:
    self.layer = layer
    self.names = names
    self._inputs = _prepare(layer, names)
    self._output = _prepare(layer, ("output",))

  def project(self, x: tf.Tensor, index: tf.Tensor) -> list[tf.Tensor]:
    """Projects position `index` of every beam, [B, K, D]: [B, N, K, H] each."""
    products = self._inputs(tf.reshape(x, [-1, x.shape[2]]))
    products = tf.reshape(products, [-1, x.shape[1], products.shape[1]])
    return self.layer.split_heads(products, self.names, index)

  def attend(
    self,
    query: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor,
    shape: tf.Tensor,
  ) -> tf.Tensor:
    """Attends, and projects the result to `shape`, [B, K, D]."""
    heads = self.layer.attend(query, keys, values, bias)
    flat = tf.reshape(heads, [-1, self.layer.hidden_size])
    return tf.reshape(self._output(flat), shape)


class FeedForwardStep:
  """A feed-forward network in the steps of a search.

  Attributes:
    layer: the network.
  """

  def __init__(self, layer: FeedForwardNetwork) -> None:
    self.layer = layer
    dtype = tf.as_dtype(layer.compute_dtype)
    self._filter, self._output = (
      prepare_kernel([dense.kernel], dtype, dense.bias)
      for dense in (layer.filter_dense_layer, layer.output_dense_layer)
    )

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    """Maps new positions, [B, K, D] to [B, K, D]."""
    inner = self._filter(
      tf.reshape(x, [-1, self.layer.hidden_size]),
      lambda y: self.layer.activate(self.layer.dropout, y, False),
    )
    return tf.reshape(self._output(inner), tf.shape(x))


class DecoderLayerStep:
  """A `DecoderLayer` in the steps of a search.

  Attributes:
    layer: the decoder's layer.
  """

  def __init__(self, layer: Any) -> None:
    self.layer = layer
    self._self_attention = AttentionStep(
      layer.self_attention.layer, PROJECTIONS[:3]
    )
    self._cross_attention = AttentionStep(
      layer.cross_attention.layer, ("query",)
    )
    self._ffn = FeedForwardStep(layer.ffn.layer)

  def project_source(self, outputs: tf.Tensor) -> KeyValueCache:
    """Returns the keys and values of sources [B, S, D], for all steps."""
    projected = self.layer.cross_attention.layer.project(
      outputs, ("key", "value")
    )
    # Cast once, not in every step.
    dtype = product_dtype(outputs.dtype)
    return KeyValueCache(*(tf.cast(tensor, dtype) for tensor in projected))

  def attend_to_targets(
    self,
    x: tf.Tensor,
    cache: BeamCache,
    index: tf.Tensor,
    history: BeamHistory,
  ) -> tuple[tf.Tensor, BeamCache]:
    """Attends from one new position of every hypothesis to it and its past.

    Args:
      x: [B, K, D].
      cache: with capacity for the new position.
      index: int32 [], the new position, counted from 0.
      history: the positions that each hypothesis attends to.

    Returns:
      [B, K, D], and the cache with the new position.
    """
    wrapper, attention = self.layer.self_attention, self._self_attention
    query, key, value = attention.project(wrapper.normalize(x), index)
    cache = BeamCache(
      keys=write_position(cache.keys, index, key),
      values=write_position(cache.values, index, value),
    )
    if history.rows is not None:  # Each hypothesis has a history of its own.
      query = tf.transpose(query, [0, 2, 1, 3])  # [B, K, N, H]
      shape = [-1, query.shape[2], 1, query.shape[3]]
      query = tf.reshape(query, shape)
    y = attention.attend(
      query,
      read_history(cache.keys, history),
      read_history(cache.values, history),
      history.bias,
      tf.shape(x),
    )
    return wrapper.add(x, y), cache

  def attend_to_source(
    self,
    x: tf.Tensor,
    source: KeyValueCache,
    bias: tf.Tensor,
    index: tf.Tensor,
    observed: list[tf.Tensor] | None,
  ) -> tf.Tensor:
    """Attends from new positions, [B, K, D], to the source.

    Args:
      x: [B, K, D].
      source: keys and values.
      bias: float32 [B, 1, 1, S].
      index: int32 [], the position.
      observed: list to which the weights, float32 [B, N, K, S], are appended;
        None collects nothing.
    """
    wrapper, attention = self.layer.cross_attention, self._cross_attention
    (query,) = attention.project(wrapper.normalize(x), index)
    if observed is not None:
      observed.append(attention_weights_of(query, source.keys, bias))
    y = attention.attend(query, source.keys, source.values, bias, tf.shape(x))
    return wrapper.add(x, y)

  def feed_forward(self, x: tf.Tensor) -> tf.Tensor:
    """Maps new positions, [B, K, D] to [B, K, D]."""
    wrapper = self.layer.ffn
    return wrapper.add(x, self._ffn(wrapper.normalize(x)))


class IncrementalDecoder:
  """The step function of a beam search: newest tokens to logits, by one model.

  Attributes:
    transformer: the model.
    beam_size: K.
    longest: capacity of the caches in positions; None grows them as needed.

  Args:
    positions: largest number of target tokens.
  """

  def __init__(
    self,
    transformer: CachedModel,
    beam_size: int,
    positions: int | tf.Tensor,
    longest: int | None,
  ) -> None:
    self.transformer = transformer
    self.beam_size = beam_size
    self.longest = longest
    self._positions = tf.cast(
      transformer.positions.target(positions), transformer.compute_dtype
    )
    # Prepared once for all steps.
    self._layers = [
      DecoderLayerStep(layer) for layer in transformer.decoder_stack.layers
    ]
    # All layers have heads of one number and size.
    self._attention = self._layers[0].layer.self_attention.layer
    self._softmax = _prepare_output(transformer.softmax)
    if hidden := transformer.params.hidden_tokens:
      self._softmax = _without(hidden, self._softmax)

  def encode_and_start(self, source_ids: tf.Tensor) -> DecoderState:
    """Returns the state before the first step, for source ids [B, S]."""
    return self.start(encode(self.transformer, source_ids))

  def start(self, source: EncodedSource) -> DecoderState:
    """Returns the first step's state for encoded sources."""
    batch = tf.shape(source.outputs)[0]
    sources = [layer.project_source(source.outputs) for layer in self._layers]
    empty = empty_cache(
      batch,
      self._attention.num_heads,
      self.longest or 0,
      self.beam_size,
      self._attention.head_size,
      product_dtype(source.outputs.dtype),
    )
    cache = DecoderCache(
      targets=[BeamCache(empty, empty) for _ in self._layers],
      sources=sources,
      source_bias=source.bias,
    )
    origins = tf.fill([batch * self.beam_size, self.longest or 0], NO_BEAM)
    return DecoderState(per_beam=origins, per_sentence=cache)

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
  ) -> tuple[tf.Tensor, DecoderState]:
    """Maps the newest tokens, int32 [B*K], to logits [B*K, V]."""
    return self.step(ids, index, state)

  def step(
    self,
    ids: tf.Tensor,
    index: tf.Tensor,
    state: DecoderState,
    observed: list[tf.Tensor] | None = None,
  ) -> tuple[tf.Tensor, DecoderState]:
    """Makes the step.

    Args:
      ids: int32 [B*K].
      index: int32 [], the position, counted from 0.
      state: state of the step before.
      observed: list to which each layer's attention to the source, float32
        [B, N, K, S], is appended; None collects nothing.
    """
    origins, cache = state
    if self.longest is None:
      targets, origins = ensure_capacity(cache.targets, origins, index)
      cache = cache._replace(targets=targets)
    origins = record_origins(origins, index, self.beam_size)
    x = self.transformer.embedding(tf.reshape(ids, [-1, self.beam_size]))
    x += self._positions[index]
    history = history_of(origins, self.beam_size, self._attention.num_heads)
    targets = []
    for layer, target, source in zip(
      self._layers, cache.targets, cache.sources, strict=True
    ):
      x, target = layer.attend_to_targets(x, target, index, history)
      x = layer.attend_to_source(x, source, cache.source_bias, index, observed)
      x = layer.feed_forward(x)
      targets.append(target)
    x = self.transformer.decoder_stack.normalize(x)
    x = tf.reshape(x, [-1, self.transformer.params.hidden_size])
    # In the product's own dtype, which may be the finer one.
    logits = self._softmax(tf.cast(x, self._softmax.kernel.dtype))
    return logits, DecoderState(origins, cache._replace(targets=targets))


def encode(transformer: CachedModel, source_ids: tf.Tensor) -> EncodedSource:
  """Encodes source ids [B, S], padded with PAD."""
  bias = get_padding_bias(source_ids)
  return EncodedSource(transformer.encode(source_ids, bias), bias)


def beam_search(
  transformer: CachedModel,
  source: EncodedSource,
  vocabulary_size: int | None = None,
  static: bool = False,
  hooks: SearchHooks = NO_HOOKS,
) -> SearchResult:
  """Translates.

  Args:
    transformer: the model.
    source: encoded.
    vocabulary_size: how many of the first tokens a translation may hold: an
      imported table may have more rows than its vocabulary has entries. None
      is all.
    static: whether all shapes inside the search are static, as XLA and TPUs
      need them; the shape of the source must be static then.
    hooks: callbacks of the search. Outside `tf.function`, a callback can read
      the values of every step.

  Returns:
    Hypotheses with L the largest number of tokens any may have, which is
    its source's length (EOS included) plus `extra_decode_length`.
  """
  params = transformer.params
  limits = length_limits(source.lengths(), params.extra_decode_length)
  if params.longest_output:
    limits = tf.minimum(limits, params.longest_output)
  longest = _static_limit(source, params) if static else None
  with traced_for(Target.XLA) if static else contextlib.nullcontext():
    step = IncrementalDecoder(
      transformer,
      params.beam_size,
      longest or tf.reduce_max(limits),
      longest,
    )
  search = BeamSearch(
    step,
    vocabulary_size or params.vocab_size,
    params.beam_size,
    params.alpha,
    EOS_ID,
    hooks,
  )
  return search.search(
    initial_ids=tf.zeros(tf.shape(limits), tf.int32),
    limits=limits,
    state=step.start(source),
    longest=longest,
    finishes_needed=finishes_for(params, limits),
  )


def length_limits(lengths: tf.Tensor, extra_decode_length: int) -> tf.Tensor:
  """Returns how many tokens each translation may have, int32 [B].

  That is the source's own length, EOS included, and `extra_decode_length`. A
  row without tokens, which fills a batch up, may have one.

  Args:
    lengths: int32 [B], of the sources.
    extra_decode_length: `extra_decode_length`, from the model's parameters.
  """
  limits = tf.maximum(lengths + extra_decode_length, 1)
  return tf.where(lengths > 0, limits, 1)


def _static_limit(source: EncodedSource, params: TransformerParams) -> int:
  """Returns the largest number of tokens of a translation of a batch."""
  longest = max(source.bias.shape[3] + params.extra_decode_length, 1)
  return min(longest, params.longest_output or longest)


def finishes_for(
  params: TransformerParams, limits: tf.Tensor
) -> tf.Tensor | None:
  """Returns how many hypotheses of each sentence have to end, int32 [B]."""
  if not params.patience:
    return None
  number = finishes_for_patience(params.beam_size, params.patience)
  return tf.fill(tf.shape(limits), number)


def _prepare(layer: Attention, names: tuple[str, ...]) -> PreparedKernel:
  """Returns kernels of an attention layer side by side."""
  return prepare_kernel(
    layer.kernels(names),
    tf.as_dtype(layer.compute_dtype),
    layer.joined_biases(names),
  )


def _prepare_output(output: keras.layers.Layer) -> PreparedKernel:
  """Returns the table that scores tokens, and its bias if it has one."""
  bias = getattr(output, "bias", None)
  table = output if bias is None else output.embedding
  prepared = prepare_table(
    tf.convert_to_tensor(table.shared_weights),
    tf.as_dtype(table.compute_dtype),
  )
  if bias is None:
    return prepared
  return prepared.with_bias(tf.cast(bias, prepared.kernel.dtype))


def _without(hidden: Sequence[int], softmax: PreparedKernel) -> PreparedKernel:
  """Gives some tokens no probability."""
  bias = softmax.bias
  if bias is None:
    bias = tf.zeros(
      [softmax.size + softmax.padding_columns], softmax.kernel.dtype
    )
  return softmax._replace(bias=hide_tokens(bias, hidden, NEG_INF))
