"""Beam search over any function from tokens to logits.

Shapes: B batch (sentences), K beam, L longest limit, V vocabulary.

A hypothesis of log-probability p and n tokens, EOS included, scores
`log p / ((5 + n) / 6)^alpha` (Wu et al. 2016, equation 14). Each step looks at
the 2K best continuations, so that K of them stay alive even if K end in EOS.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official_transformer.ops.top_k import top_log_probabilities
from official_transformer.search.state import (
  NEG_INF,
  NO_HOOKS,
  ActiveSentences,
  Candidates,
  DecoderState,
  SearchHooks,
  SearchResult,
  SearchState,
  SearchStep,
  StepFunction,
  growing_shapes,
)

# Disables patience: more hypotheses than can ever end.
UNLIMITED = 2**31 - 1
# Sentences that have stopped leave once they are one in so many: their
# computation is wasted, but moving the others' state costs time too.
LEAVE_TOGETHER = 8


def length_normalization(alpha: float, length: tf.Tensor) -> tf.Tensor:
  """Returns `((5 + length) / 6)^alpha`, float32 in the shape of `length`."""
  return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


def best_continuations(
  logits: tf.Tensor, log_probs: tf.Tensor, vocab_size: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the 2K most probable continuations of each sentence.

  Args:
    logits: float32 [B*K, V], maybe with further columns.
    log_probs: float32 [B, K], of the alive hypotheses.
    vocab_size: V.

  Returns:
    Log-probabilities, sorted, new tokens and parents, [B, 2K] each.
  """
  k = log_probs.shape[1]
  # No more than 2K of the 2K best of all can be of one beam.
  per_beam = min(2 * k, vocab_size)
  best, tokens = top_log_probabilities(logits, per_beam, vocab_size)
  best = tf.reshape(best, [-1, k, per_beam])
  best += log_probs[:, :, None]
  return best_of_beams(best, tf.reshape(tokens, [-1, k * per_beam]))


def best_of_beams(
  log_probs: tf.Tensor, tokens: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the 2K best of what each beam may go on with.

  Args:
    log_probs: float32 [B, K, N], of N continuations of each.
    tokens: int32 [B, K * N], their new tokens.

  Returns:
    Log-probabilities, sorted, new tokens and parents, [B, 2K] each.
  """
  k, per_beam = log_probs.shape[1:]
  best, positions = tf.math.top_k(
    tf.reshape(log_probs, [-1, k * per_beam]), k=2 * k
  )
  tokens = tf.gather(tokens, positions, batch_dims=1)
  return best, tokens, positions // per_beam


class SequenceBeamSearch:
  """Finds the best sequences a step function can produce.

  A sentence stops by itself: at its own limit, as soon as the worst of its
  finished hypotheses (even if fewer than K) beats what its best alive one
  could still become, or once enough hypotheses have ended. It is frozen then,
  so that no translation depends on the company in its batch, and leaves the
  batch in time.

  Attributes:
    step: `(ids int32 [B*K], index int32 [], state) -> (logits [B*K, V],
      state)`, where `ids` holds each hypothesis' newest token. Logits may have
      further columns, of what is never chosen.
    vocab_size: V, at least 2.
    beam_size: K; 1 is greedy search.
    alpha: strength of the length normalisation.
    eos_id: the token that ends a hypothesis.
    hooks: what it calls; none of them is needed.
  """

  def __init__(
    self,
    step: StepFunction,
    vocab_size: int,
    beam_size: int,
    alpha: float,
    eos_id: int = 1,
    hooks: SearchHooks = NO_HOOKS,
  ) -> None:
    if vocab_size < 2:
      raise ValueError(f"vocab_size is {vocab_size}, must be at least 2")
    if beam_size < 1:
      raise ValueError(f"beam_size is {beam_size}, must be at least 1")
    self.step = step
    self.vocab_size = vocab_size
    self.beam_size = beam_size
    self.alpha = alpha
    self.eos_id = eos_id
    self.hooks = hooks

  def search(
    self,
    initial_ids: tf.Tensor,
    limits: tf.Tensor,
    state: DecoderState,
    longest: int | None = None,
    finishes_needed: tf.Tensor | None = None,
  ) -> SearchResult:
    """Searches.

    Args:
      initial_ids: int32 [B], the token each sentence starts from; it is not
        part of the result.
      limits: int32 [B], most tokens of each result, EOS included; at least 1.
      state: what the step function sees at the first step.
      longest: L, at least the largest limit, if every shape is to be
        static. No sentence leaves the batch then.
      finishes_needed: int32 [B], stop once so many hypotheses have ended, each
        among the K best continuations of its step (Kasai et al. 2022); None:
        no number is enough, as in the official model.

    Returns:
      The hypotheses.
    """
    if finishes_needed is None:
      finishes_needed = tf.fill(tf.shape(limits), UNLIMITED)
    sentences = self._start(initial_ids, limits, longest, finishes_needed)
    start = SearchState(tf.constant(0), sentences, state, _results(sentences))
    if longest is None:
      body, shapes = self._advance_and_release, _changing(start)
    else:
      body = self._advance
      shapes = tf.nest.map_structure(lambda t: t.shape, start)
    (end,) = tf.while_loop(
      cond=lambda s: tf.reduce_any(s.sentences.active),
      body=lambda s: (body(s),),
      loop_vars=(start,),
      shape_invariants=(shapes,),
    )
    return _record(end).results

  def _start(
    self,
    initial_ids: tf.Tensor,
    limits: tf.Tensor,
    longest: int | None,
    finishes_needed: tf.Tensor,
  ) -> ActiveSentences:
    """Starts every sentence with one empty hypothesis in its first beam."""
    batch = tf.shape(initial_ids)[0]
    k = self.beam_size
    if longest is None:
      longest = tf.reduce_max(limits)
    ids = tf.zeros([batch, k, longest], tf.int32)
    # All beams start equal: only the first may be continued, or all K would
    # hold the same hypothesis for ever.
    log_probs = tf.tile([[0.0] + [NEG_INF] * (k - 1)], [batch, 1])
    return ActiveSentences(
      rows=tf.range(batch),
      limits=limits,
      active=limits > 0,
      newest=tf.tile(initial_ids[:, None], [1, k]),
      alive_ids=ids,
      alive_log_probs=log_probs,
      finished_ids=ids,
      finished_scores=tf.fill([batch, k], NEG_INF),
      finished_flags=tf.zeros([batch, k], tf.bool),
      finishes_needed=finishes_needed,
    )

  def _advance_and_release(self, state: SearchState) -> SearchState:
    """Makes one step; then, once they are many, stopped sentences leave."""
    state = self._advance(state)
    active = state.sentences.active
    present = tf.size(active)
    stopped = present - tf.math.count_nonzero(active, dtype=tf.int32)

    def leave() -> SearchState:
      staying = tf.cast(tf.where(active)[:, 0], tf.int32)
      beams = staying[:, None] * self.beam_size + tf.range(self.beam_size)
      beams = tf.reshape(beams, [-1])
      recorded = _record(state)
      return recorded._replace(
        sentences=_gather(state.sentences, staying),
        search=DecoderState(
          per_beam=_gather(state.search.per_beam, beams),
          per_sentence=_gather(state.search.per_sentence, staying),
        ),
      )

    return tf.cond(
      tf.logical_and(stopped < present, stopped * LEAVE_TOGETHER >= present),
      leave,
      lambda: state,
    )

  def _advance(self, state: SearchState) -> SearchState:
    """Makes one step; frozen sentences keep their hypotheses."""
    old = state.sentences
    candidates, search = self._grow(state)
    alive_ids, alive_log_probs, parents, newest = self._choose_alive(candidates)
    # A beam of probability zero stands for no hypothesis: it cannot finish.
    ends = tf.logical_and(
      tf.equal(candidates.tokens, self.eos_id), candidates.log_probs > NEG_INF
    )
    finished = self._choose_finished(state, candidates, ends, search)
    ended = tf.math.count_nonzero(
      ends[:, : self.beam_size], axis=1, dtype=tf.int32
    )

    def thaw(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
      rank = len(new.shape) - 1
      active = tf.reshape(state.sentences.active, [-1] + [1] * rank)
      return tf.where(active, new, old)

    finished_ids, finished_scores, finished_flags = finished
    sentences = old._replace(
      newest=newest,
      alive_ids=thaw(alive_ids, old.alive_ids),
      alive_log_probs=thaw(alive_log_probs, old.alive_log_probs),
      finished_ids=thaw(finished_ids, old.finished_ids),
      finished_scores=thaw(finished_scores, old.finished_scores),
      finished_flags=thaw(finished_flags, old.finished_flags),
      finishes_needed=old.finishes_needed - ended,
    )
    if self.hooks.watch:
      self.hooks.watch(SearchStep(state.index, old, candidates, sentences))
    may_improve = _may_improve(sentences, state.index + 1, self.alpha)
    first = tf.range(tf.shape(parents)[0])[:, None] * self.beam_size
    rows = tf.reshape(first + parents, [-1])
    return state._replace(
      index=state.index + 1,
      sentences=sentences._replace(
        active=tf.logical_and(old.active, may_improve)
      ),
      search=search._replace(per_beam=_gather(search.per_beam, rows)),
    )

  def _grow(self, state: SearchState) -> tuple[Candidates, DecoderState]:
    """Finds the 2K best continuations of each sentence."""
    sentences = state.sentences
    logits, search = self.step(
      tf.reshape(sentences.newest, [-1]), state.index, state.search
    )
    best, tokens, parents = self._continue(
      tf.cast(logits, tf.float32), sentences, state.index
    )
    ids = tf.gather(sentences.alive_ids, parents, batch_dims=1)  # [B, 2K, L]
    here = tf.range(tf.shape(ids)[2]) == state.index
    ids = tf.where(here, tokens[:, :, None], ids)
    return Candidates(ids, tokens, best, parents), search

  def _continue(
    self, logits: tf.Tensor, sentences: ActiveSentences, index: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns log-probabilities, tokens and parents, [B, 2K] each."""
    if self.hooks.propose:
      return self.hooks.propose(logits, sentences, index)
    return best_continuations(
      logits, sentences.alive_log_probs, self.vocab_size
    )

  def _choose_alive(
    self, candidates: Candidates
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Keeps the K best candidates that have not ended.

    Returns:
      Their ids [B, K, L], log-probabilities, parents and new tokens [B, K].
    """
    log_probs = tf.where(
      tf.equal(candidates.tokens, self.eos_id), NEG_INF, candidates.log_probs
    )
    best, chosen = tf.math.top_k(log_probs, k=self.beam_size)
    return (
      tf.gather(candidates.ids, chosen, batch_dims=1),
      best,
      tf.gather(candidates.parents, chosen, batch_dims=1),
      tf.gather(candidates.tokens, chosen, batch_dims=1),
    )

  def _choose_finished(
    self,
    state: SearchState,
    candidates: Candidates,
    ends: tf.Tensor,
    search: DecoderState,
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Merges candidates that end with those finished earlier; keeps K.

    Returns:
      Ids [B, K, L], scores [B, K] and flags [B, K].
    """
    old = state.sentences
    norm = length_normalization(self.alpha, state.index + 1)
    scores = candidates.log_probs / norm
    if self.hooks.penalty:
      scores += self.hooks.penalty(candidates, search)
    scores = tf.where(ends, scores, NEG_INF)
    scores = tf.concat([old.finished_scores, scores], axis=1)
    ids = tf.concat([old.finished_ids, candidates.ids], axis=1)
    flags = tf.concat([old.finished_flags, ends], axis=1)
    best, chosen = tf.math.top_k(scores, k=self.beam_size)
    flags = tf.gather(flags, chosen, batch_dims=1)
    ids = tf.gather(ids, chosen, batch_dims=1)
    return tf.where(flags[..., None], ids, 0), best, flags


def finishes_for_patience(beam_size: int, patience: float) -> int:
  """Returns how many hypotheses of a sentence have to end; at least 1."""
  return max(int(beam_size * patience + 0.5), 1)


def _may_improve(
  sentences: ActiveSentences, steps: tf.Tensor, alpha: float
) -> tf.Tensor:
  """Tells which sentences are below their limit and not decided yet.

  Log-probabilities only fall, so the best an alive hypothesis can become is its
  present one divided by the largest norm, the one at the limit.

  Returns:
    bool [B].
  """
  norm = length_normalization(alpha, sentences.limits)
  best_possible = sentences.alive_log_probs[:, 0] / norm
  finished = sentences.finished_flags
  worst_finished = tf.reduce_min(
    tf.where(finished, sentences.finished_scores, float("inf")), axis=1
  )
  decided = tf.logical_and(
    tf.reduce_any(finished, axis=1), worst_finished > best_possible
  )
  decided = tf.logical_or(decided, sentences.finishes_needed < 1)
  return tf.logical_and(steps < sentences.limits, tf.logical_not(decided))


def _results(sentences: ActiveSentences) -> SearchResult:
  """Returns what has been found for each sentence so far."""
  finished = sentences.finished_flags
  any_finished = tf.reduce_any(finished, axis=1, keepdims=True)
  return SearchResult(
    ids=tf.where(
      any_finished[..., None], sentences.finished_ids, sentences.alive_ids
    ),
    scores=tf.where(
      any_finished, sentences.finished_scores, sentences.alive_log_probs
    ),
    finished=finished,
  )


def _record(state: SearchState) -> SearchState:
  """Brings the results of the present sentences up to date."""
  rows = state.sentences.rows[:, None]
  return state._replace(
    results=tf.nest.map_structure(
      lambda old, new: _scatter(old, rows, new),
      state.results,
      _results(state.sentences),
    )
  )


def _scatter(old: tf.Tensor, rows: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
  """Replaces the given rows."""
  if old.dtype != tf.bool:
    return tf.tensor_scatter_nd_update(old, rows, new)
  # GPUs cannot do it with truth values.
  old, new = tf.cast(old, tf.float32), tf.cast(new, tf.float32)
  return tf.tensor_scatter_nd_update(old, rows, new) > 0.5


def _gather(nest: Any, rows: tf.Tensor) -> Any:
  """Returns the given rows of every tensor."""
  return tf.nest.map_structure(lambda t: tf.gather(t, rows), nest)


def _changing(state: SearchState) -> SearchState:
  """Returns shapes that let sentences leave and the search's state grow."""

  def leaving(tensor: tf.Tensor) -> tf.TensorShape:
    return tf.TensorShape([None, *tensor.shape[1:]])

  return SearchState(
    index=state.index.shape,
    sentences=tf.nest.map_structure(leaving, state.sentences),
    search=growing_shapes(state.search),
    results=tf.nest.map_structure(lambda t: t.shape, state.results),
  )
