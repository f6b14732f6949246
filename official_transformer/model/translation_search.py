"""Beam search with one model, or with several that decide together.

Shapes: B batch, K beam, S source length, V vocabulary, D hidden size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from official_transformer.model.beam_cache import (
  NOBODY,
  make_room,
  mark_written,
)
from official_transformer.model.beam_search import SequenceBeamSearch
from official_transformer.model.dense import Projection
from official_transformer.model.search_state import (
  NEG_INF,
  NO_HOOKS,
  SearchHooks,
  SearchResult,
  SearchState,
)
from official_transformer.model_params import EOS_ID, PAD_ID

if TYPE_CHECKING:
  from official_transformer.model.transformer import Transformer


@dataclasses.dataclass(frozen=True)
class SearchRequest:
  """How to search.

  Attributes:
    vocabulary_size: as in `Transformer.beam_search`, like the next two.
    static: likewise.
    hooks: likewise.
  """

  vocabulary_size: int | None = None
  static: bool = False
  hooks: SearchHooks = NO_HOOKS


class DecodingStep:
  """What the search calls: newest tokens to logits, by one model.

  Attributes:
    transformer: the model.
    beam_size: K.
    longest: positions there is room for at once; None makes room in time.

  Args:
    positions: how many targets can have.
  """

  def __init__(
    self,
    transformer: Transformer,
    beam_size: int,
    positions: int | tf.Tensor,
    longest: int | None,
  ) -> None:
    self.transformer = transformer
    self.beam_size = beam_size
    self.longest = longest
    self._positions = transformer.target_positions(positions)
    # Computed once for all steps.
    self._kernels = transformer.decoder_stack.step_kernels()
    self._softmax = transformer.softmax.output_projection()
    if transformer.params.suppress_pad:
      self._softmax = _without_pad(self._softmax)

  def start(self, source_ids: tf.Tensor, batch: tf.Tensor) -> SearchState:
    """Returns what the first step reads of sources [B, S]."""
    cache = self.transformer.decoder_stack.start(
      self.transformer.encode(source_ids), self.beam_size, self.longest
    )
    writers = tf.fill([batch * self.beam_size, self.longest or 0], NOBODY)
    return SearchState(per_beam=writers, per_source=cache)

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: SearchState
  ) -> tuple[tf.Tensor, SearchState]:
    """Maps the newest tokens, int32 [B*K], to logits [B*K, V]."""
    writers, cache = state
    if self.longest is None:
      targets, writers = make_room(cache.targets, writers, index)
      cache = cache._replace(targets=targets)
    writers = mark_written(writers, index, self.beam_size)
    x = self.transformer.embedding(tf.reshape(ids, [-1, self.beam_size]))
    x, cache = self.transformer.decoder_stack.step(
      x + self._positions[index], self._kernels, index, writers, cache
    )
    x = tf.reshape(x, [-1, self.transformer.params.hidden_size])
    # In the product's own dtype, which may be the finer one.
    logits = self._softmax(tf.cast(x, self._softmax.kernel.dtype))
    return logits, SearchState(writers, cache)


def _without_pad(softmax: Projection) -> Projection:
  """Gives PAD no probability."""
  kernel, bias = softmax
  size = kernel.shape[1]
  if bias is None:
    bias = tf.zeros([size], kernel.dtype)
  is_pad = tf.equal(tf.range(size), PAD_ID)
  return Projection(
    kernel, tf.where(is_pad, tf.cast(NEG_INF, bias.dtype), bias)
  )


def search_translations(
  models: Sequence[Transformer], source_ids: tf.Tensor, request: SearchRequest
) -> SearchResult:
  """Translates.

  Args:
    models: of one vocabulary; the first one's parameters decide beam, alpha
      and limit.
    source_ids: int [B, S], padded with PAD.
    request: how.

  Returns:
    Hypotheses, as `Transformer.beam_search` does.
  """
  params = models[0].params
  source_ids = tf.cast(source_ids, tf.int32)
  lengths = tf.reduce_sum(tf.cast(source_ids != PAD_ID, tf.int32), axis=1)
  limits = tf.maximum(lengths + params.extra_decode_length, 1)
  if params.longest:
    limits = tf.minimum(limits, params.longest)
  # A row without tokens fills a batch up.
  limits = tf.where(lengths > 0, limits, 1)
  longest = None
  if request.static:
    longest = max(source_ids.shape[1] + params.extra_decode_length, 1)
    longest = min(longest, params.longest or longest)
  step = DecodingStep(
    models[0], params.beam_size, longest or tf.reduce_max(limits), longest
  )
  search = SequenceBeamSearch(
    step,
    request.vocabulary_size or params.vocab_size,
    params.beam_size,
    params.alpha,
    EOS_ID,
    request.hooks,
  )
  batch = tf.shape(source_ids)[0]
  return search.search(
    initial_ids=tf.zeros([batch], tf.int32),
    limits=limits,
    state=step.start(source_ids, batch),
    longest=longest,
  )
