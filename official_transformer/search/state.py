"""The state of a search, and its result.

Shapes: B batch (sentences), K beam, L longest limit, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

NEG_INF = float("-inf")


class DecoderState(NamedTuple):
  """The step function's state, carried from one step to the next.

  A dimension whose static size is 0 at first may grow.

  Attributes:
    per_beam: a nest of tensors [B*K, ...]; follows the hypotheses as the
      search reorders them.
    per_sentence: a nest of tensors [B, ...], one entry for all beams of a
      sentence; only the entries of sentences that have stopped are removed.
  """

  per_beam: Any
  per_sentence: Any


class SearchResult(NamedTuple):
  """Hypotheses, best first.

  Attributes:
    ids: int32 [B, K, L], EOS included if there is one, zeros after it.
    scores: float32 [B, K], normalised by length if `finished`, else the
      plain log-probability.
    finished: bool [B, K], whether the hypothesis ends in EOS. A sentence with
      finished hypotheses reports only these, and the rest of its row is empty;
      a sentence without any reports the hypotheses that were alive at its
      limit.
  """

  ids: tf.Tensor
  scores: tf.Tensor
  finished: tf.Tensor


class ActiveSentences(NamedTuple):
  """The search's knowledge of the sentences that have not left.

  Attributes:
    rows: int32 [B], row of each sentence in the caller's batch.
    limits: int32 [B], most tokens of a result.
    active: bool [B], which are still searched; the others are frozen.
    newest: int32 [B, K], each alive hypothesis' last token.
    alive_ids: int32 [B, K, L].
    alive_log_probs: float32 [B, K], sorted, best first.
    finished_ids: int32 [B, K, L].
    finished_scores: float32 [B, K], sorted, -inf if empty.
    finished_flags: bool [B, K], false if empty.
    finishes_needed: int32 [B], hypotheses that still have to end before the
      sentence stops.
  """

  rows: tf.Tensor
  limits: tf.Tensor
  active: tf.Tensor
  newest: tf.Tensor
  alive_ids: tf.Tensor
  alive_log_probs: tf.Tensor
  finished_ids: tf.Tensor
  finished_scores: tf.Tensor
  finished_flags: tf.Tensor
  finishes_needed: tf.Tensor


class SearchState(NamedTuple):
  """The variables of the search loop.

  Attributes:
    index: int32 [], steps made.
    sentences: sentences that are still searched for; their number may shrink.
    decoder: the step function's own state.
    results: results of all sentences, final for those that have left the batch.
  """

  index: tf.Tensor
  sentences: ActiveSentences
  decoder: DecoderState
  results: SearchResult


class Candidates(NamedTuple):
  """The 2K best continuations of the alive hypotheses.

  Attributes:
    ids: int32 [B, 2K, L], the new token in place.
    tokens: int32 [B, 2K], the new token.
    log_probs: float32 [B, 2K], sorted, best first.
    parents: int32 [B, 2K], the alive hypothesis each continues.
  """

  ids: tf.Tensor
  tokens: tf.Tensor
  log_probs: tf.Tensor
  parents: tf.Tensor


class SearchStep(NamedTuple):
  """A record of one step, for observers.

  Attributes:
    index: int32 [], steps made before it.
    before: the sentences as it found them.
    candidates: the continuations that it chose from.
    after: the sentences as it left them.
  """

  index: tf.Tensor
  before: ActiveSentences
  candidates: Candidates
  after: ActiveSentences


def growing_shapes(state: DecoderState) -> DecoderState:
  """Returns shapes that let a state's rows leave and its empty sizes grow."""

  def growing(tensor: tf.Tensor) -> tf.TensorShape:
    return tf.TensorShape(
      [None, *(None if d == 0 else d for d in tensor.shape[1:])]
    )

  return tf.nest.map_structure(growing, state)


StepFunction = Callable[
  [tf.Tensor, tf.Tensor, DecoderState], tuple[tf.Tensor, DecoderState]
]
# Logits [B*K, V], the sentences and the steps made, to 2K continuations of each
# sentence, best first: log-probabilities, tokens and parents, [B, 2K] each.
Continue = Callable[
  [tf.Tensor, ActiveSentences, tf.Tensor],
  tuple[tf.Tensor, tf.Tensor, tf.Tensor],
]
# Maps candidates, and the step function's state after them, to penalties [B,
# 2K] that are added to their scores if they finish; never above 0.
FinishingPenalty = Callable[[Candidates, DecoderState], tf.Tensor]


class SearchHooks(NamedTuple):
  """Optional callbacks; without them this is plain beam search.

  Attributes:
    watch: called after every step.
    propose: chooses how hypotheses go on, if something is forbidden, or
      required.
    penalty: further penalty of hypotheses that finish, besides the length's.
  """

  watch: Callable[[SearchStep], object] | None = None
  propose: Continue | None = None
  penalty: FinishingPenalty | None = None


NO_HOOKS = SearchHooks()
