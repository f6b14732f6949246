"""The search and the decoder as first written: plain, slow, and believed.

What the fast ones are compared with. The whole vocabulary is normalised and
sorted, no sentence leaves before the last has stopped, and every hypothesis
carries keys and values of its own, which move as hypotheses do.

Shapes: as in `beam_search` and `attention_layer`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from official_transformer.model.incremental_decoder import KeyValueCache, encode
from official_transformer.model.model_utils import get_position_encoding
from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.search.beam_search import (
  NEG_INF,
  DecoderState,
  SearchResult,
  length_normalization,
)


class SearchState(NamedTuple):
  """The variables of the search loop.

  Attributes:
    index: int32 [], steps made.
    active: bool [B], sentences still searched; the others are frozen.
    alive_ids: int32 [B, K, L].
    alive_log_probs: float32 [B, K], sorted, best first.
    finished_ids: int32 [B, K, L].
    finished_scores: float32 [B, K], sorted, -inf where empty.
    finished_flags: bool [B, K], false where empty.
    search: the step function's own state.
  """

  index: tf.Tensor
  active: tf.Tensor
  alive_ids: tf.Tensor
  alive_log_probs: tf.Tensor
  finished_ids: tf.Tensor
  finished_scores: tf.Tensor
  finished_flags: tf.Tensor
  search: DecoderState


class Candidates(NamedTuple):
  """The 2K best continuations of the alive hypotheses.

  Attributes:
    ids: int32 [B, 2K, L], the new token in place.
    log_probs: float32 [B, 2K], sorted, best first.
    ends: bool [B, 2K], whether the new token is EOS.
    beams: int32 [B, 2K], the alive hypothesis each continues.
  """

  ids: tf.Tensor
  log_probs: tf.Tensor
  ends: tf.Tensor
  beams: tf.Tensor


class ReferenceSearch:
  """Finds the best sequences a step function can produce.

  A sentence stops by itself: at its own limit, or as soon as the worst of its
  finished hypotheses (even if fewer than K) beats what its best alive one
  could still become. It is frozen then, so that no translation depends on the
  company in its batch.

  Attributes:
    step: `(ids int32 [B*K], index int32 [], state) -> (logits [B*K, V],
      state)`, where `ids` holds each hypothesis' newest token.
    vocab_size: V, at least 2.
    beam_size: K; 1 is greedy search.
    alpha: strength of the length normalisation.
    eos_id: the token that ends a hypothesis.
  """

  def __init__(
    self,
    step: Any,
    vocab_size: int,
    beam_size: int,
    alpha: float,
    eos_id: int = 1,
  ) -> None:
    self.step = step
    self.vocab_size = vocab_size
    self.beam_size = beam_size
    self.alpha = alpha
    self.eos_id = eos_id

  def search(
    self, initial_ids: tf.Tensor, limits: tf.Tensor, state: DecoderState
  ) -> SearchResult:
    """Searches.

    Args:
      initial_ids: int32 [B], the token each sentence starts from; it is not
        part of the result.
      limits: int32 [B], most tokens of each result, EOS included; at least 1.
      state: what the step function sees at the first step.

    Returns:
      The hypotheses.
    """
    loop_state = self._initial_state(initial_ids, limits, state)

    def grows(tensor: tf.Tensor) -> tf.TensorShape:
      return tf.TensorShape([None if d == 0 else d for d in tensor.shape])

    invariants = tf.nest.map_structure(lambda t: t.shape, loop_state)
    invariants = invariants._replace(
      search=DecoderState(
        per_beam=tf.nest.map_structure(grows, state.per_beam),
        per_sentence=invariants.search.per_sentence,
      )
    )
    (end,) = tf.while_loop(
      cond=lambda s: tf.reduce_any(s.active),
      body=lambda s: (self._advance(s, initial_ids, limits),),
      loop_vars=(loop_state,),
      shape_invariants=(invariants,),
    )
    any_finished = tf.reduce_any(end.finished_flags, axis=1, keepdims=True)
    return SearchResult(
      ids=tf.where(any_finished[..., None], end.finished_ids, end.alive_ids),
      scores=tf.where(any_finished, end.finished_scores, end.alive_log_probs),
      finished=end.finished_flags,
    )

  def _initial_state(
    self, initial_ids: tf.Tensor, limits: tf.Tensor, state: DecoderState
  ) -> SearchState:
    """Starts every sentence with one empty hypothesis in its first beam."""
    batch = tf.shape(initial_ids)[0]
    k = self.beam_size
    ids = tf.zeros([batch, k, tf.reduce_max(limits)], tf.int32)
    # All beams start equal: only the first may be continued, or all K would
    # hold the same hypothesis for ever.
    log_probs = tf.tile([[0.0] + [NEG_INF] * (k - 1)], [batch, 1])
    return SearchState(
      index=tf.constant(0),
      active=limits > 0,
      alive_ids=ids,
      alive_log_probs=log_probs,
      finished_ids=ids,
      finished_scores=tf.fill([batch, k], NEG_INF),
      finished_flags=tf.zeros([batch, k], tf.bool),
      search=state,
    )

  def _advance(
    self, state: SearchState, initial_ids: tf.Tensor, limits: tf.Tensor
  ) -> SearchState:
    """Makes one step; frozen sentences keep their hypotheses."""
    candidates, search = self._grow(state, initial_ids)
    alive_ids, alive_log_probs, beams = self._choose_alive(candidates)
    finished = self._choose_finished(state, candidates)

    def thaw(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
      rank = len(new.shape) - 1
      active = tf.reshape(state.active, [-1] + [1] * rank)
      return tf.where(active, new, old)

    finished_ids, finished_scores, finished_flags = finished
    advanced = state._replace(
      index=state.index + 1,
      alive_ids=thaw(alive_ids, state.alive_ids),
      alive_log_probs=thaw(alive_log_probs, state.alive_log_probs),
      finished_ids=thaw(finished_ids, state.finished_ids),
      finished_scores=thaw(finished_scores, state.finished_scores),
      finished_flags=thaw(finished_flags, state.finished_flags),
      search=DecoderState(
        per_beam=self._reorder(search.per_beam, beams),
        per_sentence=search.per_sentence,
      ),
    )
    return advanced._replace(
      active=tf.logical_and(state.active, self._may_improve(advanced, limits))
    )

  def _grow(
    self, state: SearchState, initial_ids: tf.Tensor
  ) -> tuple[Candidates, DecoderState]:
    """Finds the 2K best continuations of each sentence."""
    k = self.beam_size
    newest = tf.cond(
      state.index > 0,
      lambda: state.alive_ids[:, :, state.index - 1],
      lambda: tf.tile(initial_ids[:, None], [1, k]),
    )
    logits, search = self.step(
      tf.reshape(newest, [-1]), state.index, state.search
    )
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    log_probs = tf.reshape(log_probs, [-1, k, self.vocab_size])
    log_probs += state.alive_log_probs[:, :, None]
    best, positions = tf.math.top_k(
      tf.reshape(log_probs, [-1, k * self.vocab_size]), k=2 * k
    )
    beams = positions // self.vocab_size
    tokens = positions % self.vocab_size
    ids = tf.gather(state.alive_ids, beams, batch_dims=1)  # [B, 2K, L]
    here = tf.range(tf.shape(ids)[2]) == state.index
    ids = tf.where(here, tokens[:, :, None], ids)
    return Candidates(ids, best, tokens == self.eos_id, beams), search

  def _choose_alive(
    self, candidates: Candidates
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Keeps the K best candidates that have not ended.

    Returns:
      Their ids [B, K, L], log-probabilities [B, K] and parents [B, K].
    """
    log_probs = tf.where(candidates.ends, NEG_INF, candidates.log_probs)
    best, chosen = tf.math.top_k(log_probs, k=self.beam_size)
    return (
      tf.gather(candidates.ids, chosen, batch_dims=1),
      best,
      tf.gather(candidates.beams, chosen, batch_dims=1),
    )

  def _choose_finished(
    self, state: SearchState, candidates: Candidates
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Merges candidates that end with those finished earlier; keeps K.

    Returns:
      Ids [B, K, L], scores [B, K] and flags [B, K].
    """
    # A beam of probability zero stands for no hypothesis: it cannot finish.
    ends = tf.logical_and(candidates.ends, candidates.log_probs > NEG_INF)
    norm = length_normalization(self.alpha, state.index + 1)
    scores = tf.where(ends, candidates.log_probs / norm, NEG_INF)
    scores = tf.concat([state.finished_scores, scores], axis=1)
    ids = tf.concat([state.finished_ids, candidates.ids], axis=1)
    flags = tf.concat([state.finished_flags, ends], axis=1)
    best, chosen = tf.math.top_k(scores, k=self.beam_size)
    flags = tf.gather(flags, chosen, batch_dims=1)
    ids = tf.gather(ids, chosen, batch_dims=1)
    return tf.where(flags[..., None], ids, 0), best, flags

  def _may_improve(self, state: SearchState, limits: tf.Tensor) -> tf.Tensor:
    """Tells which sentences are below their limit and not decided yet.

    Log-probabilities only fall, so the best an alive hypothesis can become is
    its present one divided by the largest norm, the one at the limit.

    Returns:
      bool [B].
    """
    best_possible = state.alive_log_probs[:, 0] / length_normalization(
      self.alpha, limits
    )
    worst_finished = tf.reduce_min(
      tf.where(state.finished_flags, state.finished_scores, float("inf")),
      axis=1,
    )
    decided = tf.logical_and(
      tf.reduce_any(state.finished_flags, axis=1),
      worst_finished > best_possible,
    )
    return tf.logical_and(state.index < limits, tf.logical_not(decided))

  def _reorder(self, per_beam: Any, beams: tf.Tensor) -> Any:
    """Gathers the step function's state for the chosen parents [B, K]."""
    first = tf.range(tf.shape(beams)[0])[:, None] * self.beam_size
    rows = tf.reshape(first + beams, [-1])
    return tf.nest.map_structure(lambda t: tf.gather(t, rows), per_beam)


def attend(layer: Any, query: Any, cache: KeyValueCache, bias: Any) -> Any:
  """Attends with queries [B, N, F, H], and projects what comes out."""
  heads = layer.attend(query, *cache, bias)
  return heads @ tf.convert_to_tensor(layer.output_kernel)


def reference_beam_search(transformer: Any, source_ids: Any) -> SearchResult:
  """Does what `Transformer.beam_search` does."""
  params = transformer.params
  stack = transformer.decoder_stack
  lengths = tf.math.count_nonzero(source_ids != PAD_ID, axis=1, dtype=tf.int32)
  limits = tf.maximum(lengths + params.extra_decode_length, 1)
  source = encode(transformer, source_ids)
  positions = get_position_encoding(tf.reduce_max(limits), params.hidden_size)
  batch = tf.shape(source_ids)[0]

  def step(
    ids: tf.Tensor, index: tf.Tensor, state: DecoderState
  ) -> tuple[tf.Tensor, DecoderState]:
    x = transformer.embedding(ids[:, None]) + positions[index]
    caches = []
    sources = state.per_sentence
    for layer, cache, (keys, values) in zip(
      stack.layers, state.per_beam, sources["layers"], strict=True
    ):
      wrapper = layer.self_attention
      y = wrapper.normalize(x)
      query, *new = wrapper.layer.project(y, ("query", "key", "value"))
      cache = KeyValueCache(
        *(tf.concat(pair, axis=2) for pair in zip(cache, new, strict=True))
      )
      caches.append(cache)
      x += attend(wrapper.layer, query, cache, None)
      wrapper = layer.cross_attention
      # The beams of a sentence are K query positions to its one source.
      y = tf.reshape(wrapper.normalize(x), [batch, -1, params.hidden_size])
      (query,) = wrapper.layer.project(y, ("query",))
      y = attend(
        wrapper.layer, query, KeyValueCache(keys, values), sources["bias"]
      )
      x = layer.ffn(x + tf.reshape(y, tf.shape(x)))
    logits = transformer.embedding.logits(stack.normalize(x)[:, 0])
    return logits, DecoderState(caches, sources)

  empty = tf.zeros(
    [
      batch * params.beam_size,
      params.num_heads,
      0,
      params.hidden_size // params.num_heads,
    ]
  )
  search = ReferenceSearch(
    step, params.vocab_size, params.beam_size, params.alpha, EOS_ID
  )
  return search.search(
    tf.zeros([batch], tf.int32),
    limits,
    DecoderState(
      per_beam=[KeyValueCache(empty, empty) for _ in stack.layers],
      per_sentence={
        "layers": [
          layer.cross_attention.layer.project(source.outputs, ("key", "value"))
          for layer in stack.layers
        ],
        "bias": source.bias,
      },
    ),
  )
