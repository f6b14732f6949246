"""Cached decoding: one new position of every hypothesis at a time.

Shapes: B batch, K beam, S source length, V vocabulary, D hidden size.
"""

from __future__ import annotations

from typing import Protocol

import tensorflow as tf

from official_transformer.model.beam_cache import (
  NO_BEAM,
  ensure_capacity,
  record_origins,
)
from official_transformer.model.embedding_layer import (
  EmbeddingSharedWeights,
  Softmax,
)
from official_transformer.model.stacks import DecoderStack, EncodedSource
from official_transformer.model_params import PAD_ID, TransformerParams
from official_transformer.ops.dense import PreparedKernel
from official_transformer.search.beam_search import finishes_for_patience
from official_transformer.search.state import NEG_INF, DecoderState


class CachedModel(Protocol):
  """What an incremental decoder needs of a `Transformer`."""

  params: TransformerParams
  embedding: EmbeddingSharedWeights
  softmax: Softmax
  decoder_stack: DecoderStack

  def encode(self, source_ids: tf.Tensor) -> EncodedSource:
    """Encodes source ids [B, S]."""

  def target_positions(self, length: int | tf.Tensor) -> tf.Tensor:
    """Returns the position encodings of targets, [length, D]."""


class IncrementalDecoder:
  """The step function of a beam search: newest tokens to logits, by one model.

  Equal to `Transformer.decode` of the whole targets (a test compares the two),
  but computes one position at a time: keys and values of earlier positions, and
  of the source, are kept in the search's state.

  Attributes:
    transformer: the model.
    beam_size: K.
    longest: positions there is room for at once; None makes room in time.

  Args:
    positions: how many targets can have.
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
    self._positions = transformer.target_positions(positions)
    # Computed once for all steps.
    self._projections = transformer.decoder_stack.step_projections()
    self._softmax = transformer.softmax.output_projection()
    if transformer.params.suppress_pad:
      self._softmax = _without_pad(self._softmax)

  def start(self, source_ids: tf.Tensor, batch: tf.Tensor) -> DecoderState:
    """Returns what the first step reads of sources [B, S]."""
    cache = self.transformer.decoder_stack.start(
      self.transformer.encode(source_ids), self.beam_size, self.longest
    )
    origin_beams = tf.fill([batch * self.beam_size, self.longest or 0], NO_BEAM)
    return DecoderState(per_beam=origin_beams, per_sentence=cache)

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
    """Makes the step; `observed` as in `DecoderStack.step`."""
    origin_beams, cache = state
    if self.longest is None:
      targets, origin_beams = ensure_capacity(
        cache.targets, origin_beams, index
      )
      cache = cache._replace(targets=targets)
    origin_beams = record_origins(origin_beams, index, self.beam_size)
    x = self.transformer.embedding(tf.reshape(ids, [-1, self.beam_size]))
    x, cache = self.transformer.decoder_stack.step(
      x + self._positions[index],
      self._projections,
      index,
      origin_beams,
      cache,
      observed,
    )
    x = tf.reshape(x, [-1, self.transformer.params.hidden_size])
    # In the product's own dtype, which may be the finer one.
    logits = self._softmax(tf.cast(x, self._softmax.kernel.dtype))
    return logits, DecoderState(origin_beams, cache)


def length_limits(source_ids: tf.Tensor, extra_decode_length: int) -> tf.Tensor:
  """Returns how many tokens each translation may have, int32 [B].

  That is the source's own length, EOS included, and `extra_decode_length`. A
  row without tokens, which fills a batch up, may have one.

  Args:
    source_ids: int32 [B, S], padded with PAD.
    extra_decode_length: from the model's parameters.
  """
  lengths = tf.reduce_sum(tf.cast(source_ids != PAD_ID, tf.int32), axis=1)
  limits = tf.maximum(lengths + extra_decode_length, 1)
  return tf.where(lengths > 0, limits, 1)


def static_limit(source_ids: tf.Tensor, params: TransformerParams) -> int:
  """Returns the most tokens that any translation of a batch may have.

  Args:
    source_ids: int32 [B, S], of a static shape.
    params: of the model.
  """
  longest = max(source_ids.shape[1] + params.extra_decode_length, 1)
  return min(longest, params.longest_output or longest)


def finishes_for(
  params: TransformerParams, limits: tf.Tensor
) -> tf.Tensor | None:
  """Returns how many hypotheses of each sentence have to end, int32 [B]."""
  if not params.patience:
    return None
  return tf.fill(
    tf.shape(limits), finishes_for_patience(params.beam_size, params.patience)
  )


def _without_pad(softmax: PreparedKernel) -> PreparedKernel:
  """Gives PAD no probability."""
  bias = softmax.bias
  if bias is None:
    bias = tf.zeros(
      [softmax.size + softmax.padding_columns], softmax.kernel.dtype
    )
  is_pad = tf.equal(tf.range(bias.shape[0]), PAD_ID)
  return softmax._replace(
    bias=tf.where(is_pad, tf.cast(NEG_INF, bias.dtype), bias)
  )
