"""Beam search (paper, section 6.1) over any function from tokens to logits.

A hypothesis of log-probability p and n tokens, EOS included, scores
`log p / ((5 + n) / 6)^alpha` (Wu et al. 2016, equation 14). Each step looks at
the 2K best continuations, so that K of them stay alive even if K end in EOS.

Shapes: B batch (sentences), K beam, L longest limit, V vocabulary.
"""

from __future__ import annotations

import tensorflow as tf

from official_transformer.ops.top_k import best_continuations
from official_transformer.search.compaction import (
  drop_finished,
  gather_rows,
  loop_shapes,
  record,
  results_of,
)
from official_transformer.search.rules import length_penalty
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
)

# Disables patience: no search finishes as many hypotheses.
UNLIMITED = 2**31 - 1


def length_normalization(alpha: float, length: tf.Tensor) -> tf.Tensor:
  """Returns `((5 + length) / 6)^alpha`, float32 in the shape of `length`."""
  return length_penalty(tf.cast(length, tf.float32), alpha)


class BeamSearch:
  """Finds the best sequences a step function can produce.

  Each sentence stops by itself: at its own limit; as soon as the worst of its
  finished hypotheses (even if fewer than K) beats the best score that its best
  alive one can still reach; or once as many hypotheses have ended as it needs.
  A sentence that has stopped is frozen: it keeps its hypotheses, so that its
  translation does not depend on other sentences of the batch.

  Attributes:
    step: `(ids int32 [B*K], index int32 [], state) -> (logits [B*K, V],
      state)`, where `ids` holds each hypothesis' newest token. Logits may have
      further columns, which are never chosen.
    vocab_size: V, at least 2.
    beam_size: K; 1 is greedy search.
    alpha: strength of the length normalisation.
    eos_id: the token that ends a hypothesis.
    hooks: optional callbacks; without them this is plain beam search.
    drops_finished: whether sentences that have stopped leave the batch.
  """

  drops_finished = True

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
      state: state of the step function before the first step.
      longest: L, at least the largest limit, if every shape is to be
        static. No sentence leaves the batch then.
      finishes_needed: int32 [B], stop once so many hypotheses have ended, each
        among the K best continuations of its step (Kasai et al. 2022); None:
        no number is enough, as in the official model.
    """
    if finishes_needed is None:
      finishes_needed = tf.fill(tf.shape(limits), UNLIMITED)
    sentences = self._start(initial_ids, limits, longest, finishes_needed)
    start = SearchState(tf.constant(0), sentences, state, results_of(sentences))
    shapes = loop_shapes(start)
    drops = self.drops_finished and longest is None
    if longest is not None:
      shapes = tf.nest.map_structure(lambda t: t.shape, start)

    def body(state: SearchState) -> tuple[SearchState]:
      state = self._advance(state)
      return (drop_finished(state, self.beam_size) if drops else state,)

    (end,) = tf.while_loop(
      cond=lambda state: tf.reduce_any(state.sentences.active),
      body=body,
      loop_vars=(start,),
      shape_invariants=(shapes,),
    )
    return record(end).results

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
    # All beams start equal: only the first may be continued, because otherwise
    # all K would always hold the same hypothesis.
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

  def _advance(self, state: SearchState) -> SearchState:
    """Makes one step; frozen sentences keep their hypotheses."""
    old = state.sentences
    candidates, decoder = self._grow(state)
    alive_ids, alive_log_probs, parents, newest = self._choose_alive(candidates)
    # A beam of probability zero is no hypothesis: it cannot finish.
    ends = tf.logical_and(
      tf.equal(candidates.tokens, self.eos_id), candidates.log_probs > NEG_INF
    )
    finished = self._choose_finished(state, candidates, ends, decoder)
    finished_ids, finished_scores, finished_flags = finished
    ended = tf.math.count_nonzero(
      ends[:, : self.beam_size], axis=1, dtype=tf.int32
    )

    def update_active(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
      rank = len(new.shape) - 1
      active = tf.reshape(state.sentences.active, [-1] + [1] * rank)
      return tf.where(active, new, old)

    sentences = old._replace(
      newest=newest,
      alive_ids=update_active(alive_ids, old.alive_ids),
      alive_log_probs=update_active(alive_log_probs, old.alive_log_probs),
      finished_ids=update_active(finished_ids, old.finished_ids),
      finished_scores=update_active(finished_scores, old.finished_scores),
      finished_flags=update_active(finished_flags, old.finished_flags),
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
      decoder=decoder._replace(per_beam=gather_rows(decoder.per_beam, rows)),
    )

  def _grow(self, state: SearchState) -> tuple[Candidates, DecoderState]:
    """Finds the 2K best continuations of each sentence."""
    sentences = state.sentences
    logits, decoder = self.step(
      tf.reshape(sentences.newest, [-1]), state.index, state.decoder
    )
    logits = tf.cast(logits, tf.float32)
    if self.hooks.propose:
      proposed = self.hooks.propose(logits, sentences, state.index)
    else:
      proposed = best_continuations(
        logits, sentences.alive_log_probs, self.vocab_size
      )
    log_probs, tokens, parents = proposed
    ids = tf.gather(sentences.alive_ids, parents, batch_dims=1)  # [B, 2K, L]
    here = tf.range(tf.shape(ids)[2]) == state.index
    ids = tf.where(here, tokens[:, :, None], ids)
    return Candidates(ids, tokens, log_probs, parents), decoder

  def _choose_alive(
    self, candidates: Candidates
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Keeps the K best candidates that have not ended.

    Returns their ids [B, K, L], log-probabilities, parents and tokens [B, K].
    """
    log_probs = tf.where(
      tf.equal(candidates.tokens, self.eos_id), NEG_INF, candidates.log_probs
    )
    best, chosen = tf.math.top_k(log_probs, k=self.beam_size)
    ids, parents, tokens = (
      tf.gather(tensor, chosen, batch_dims=1)
      for tensor in (candidates.ids, candidates.parents, candidates.tokens)
    )
    return ids, best, parents, tokens

  def _choose_finished(
    self,
    state: SearchState,
    candidates: Candidates,
    ends: tf.Tensor,
    decoder: DecoderState,
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Merges candidates that end with earlier finished ones; keeps the K best.

    Returns ids [B, K, L], scores [B, K] and flags [B, K].
    """
    old = state.sentences
    norm = length_normalization(self.alpha, state.index + 1)
    scores = candidates.log_probs / norm
    if self.hooks.penalty:
      scores += self.hooks.penalty(candidates, decoder)
    scores = tf.where(ends, scores, NEG_INF)
    scores = tf.concat([old.finished_scores, scores], axis=1)
    ids = tf.concat([old.finished_ids, candidates.ids], axis=1)
    flags = tf.concat([old.finished_flags, ends], axis=1)
    best, chosen = tf.math.top_k(scores, k=self.beam_size)
    flags = tf.gather(flags, chosen, batch_dims=1)
    ids = tf.gather(ids, chosen, batch_dims=1)
    return tf.where(flags[..., None], ids, 0), best, flags


def _may_improve(
  sentences: ActiveSentences, steps: tf.Tensor, alpha: float
) -> tf.Tensor:
  """Returns which sentences are below their limit and undecided, bool [B].

  Log-probabilities only fall, so the best an alive hypothesis can become is its
  present one divided by the largest norm, the one at the limit.
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
