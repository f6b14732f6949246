"""Beam search with one model, or with several that decide together.

Shapes: B batch, K beam, S source length, V vocabulary, D hidden size.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import tensorflow as tf

from official_transformer.hardware.processor import Target, traced_for
from official_transformer.model.beam_cache import (
  NOBODY,
  make_room,
  mark_written,
)
from official_transformer.model_params import (
  EOS_ID,
  PAD_ID,
  TransformerParams,
)
from official_transformer.ops.dense import Projection
from official_transformer.search.beam_search import (
  NEVER,
  SequenceBeamSearch,
  enough,
)
from official_transformer.search.constraints import (
  Controller,
  SentenceControls,
)
from official_transformer.search.rules import (
  SamplingRule,
  SearchControls,
)
from official_transformer.search.sampling import SamplingPlan, sample
from official_transformer.search.state import (
  NEG_INF,
  NO_HOOKS,
  Candidates,
  FinishingPenalty,
  SearchHooks,
  SearchResult,
  SearchState,
)

if TYPE_CHECKING:
  from official_transformer.model.transformer import Transformer


@dataclasses.dataclass(frozen=True)
class SearchRequest:
  """How to search.

  Attributes:
    vocabulary_size: as in `Transformer.beam_search`, like the next two.
    static: likewise.
    hooks: likewise.
    controls: what is forbidden, penalised or required; None is nothing.
    sentences: of each sentence; if there are controls.
    coverage_penalty: how much a hypothesis that ends loses for each part of the
      source that it has not attended to: `b * sum log(min(attention, 1))` over
      the source's tokens (Wu et al. 2016, equation 14), of the last layer's
      heads in the mean; a token that nothing attends to is not counted.
  """

  vocabulary_size: int | None = None
  static: bool = False
  hooks: SearchHooks = NO_HOOKS
  controls: SearchControls | None = None
  sentences: SentenceControls | None = None
  coverage_penalty: float = 0.0


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
    self._projections = transformer.decoder_stack.step_projections()
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
    return self._step(ids, index, state)

  def _step(
    self,
    ids: tf.Tensor,
    index: tf.Tensor,
    state: SearchState,
    observed: list[tf.Tensor] | None = None,
  ) -> tuple[tf.Tensor, SearchState]:
    """Makes the step; `observed` as in `DecoderStack.step`."""
    writers, cache = state
    if self.longest is None:
      targets, writers = make_room(cache.targets, writers, index)
      cache = cache._replace(targets=targets)
    writers = mark_written(writers, index, self.beam_size)
    x = self.transformer.embedding(tf.reshape(ids, [-1, self.beam_size]))
    x, cache = self.transformer.decoder_stack.step(
      x + self._positions[index],
      self._projections,
      index,
      writers,
      cache,
      observed,
    )
    x = tf.reshape(x, [-1, self.transformer.params.hidden_size])
    # In the product's own dtype, which may be the finer one.
    logits = self._softmax(tf.cast(x, self._softmax.kernel.dtype))
    return logits, SearchState(writers, cache)


class CoveringStep(DecodingStep):
  """The same, with what each hypothesis has attended to of the source.

  It is a part of the state: float32 [B*K, S].
  """

  def start(self, source_ids: tf.Tensor, batch: tf.Tensor) -> SearchState:
    """Returns what the first step reads of sources [B, S]."""
    writers, cache = super().start(source_ids, batch)
    nothing = tf.zeros([batch * self.beam_size, tf.shape(source_ids)[1]])
    # The width is not to grow, and not known: it is no dimension of 0.
    nothing = tf.ensure_shape(nothing, [None, source_ids.shape[1]])
    return SearchState((writers, nothing), cache)

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: SearchState
  ) -> tuple[tf.Tensor, SearchState]:
    """Maps the newest tokens, int32 [B*K], to logits [B*K, V]."""
    (writers, covered), cache = state
    observed: list[tf.Tensor] = []
    logits, (writers, cache) = self._step(
      ids, index, SearchState(writers, cache), observed
    )
    attention = tf.reduce_mean(observed[-1], axis=1)  # [B, K, S]
    covered += tf.reshape(attention, tf.shape(covered))
    return logits, SearchState((writers, covered), cache)


class EnsembleStep:
  """Several models' steps as one: the mean of their probabilities.

  Attributes:
    steps: of the models.
    vocab_size: tokens that all of them know.
  """

  def __init__(self, steps: Sequence[DecodingStep], vocab_size: int) -> None:
    self.steps = steps
    self.vocab_size = vocab_size

  def start(self, source_ids: tf.Tensor, batch: tf.Tensor) -> SearchState:
    """Returns what the first step reads of sources [B, S]."""
    states = [step.start(source_ids, batch) for step in self.steps]
    return SearchState(
      [state.per_beam for state in states],
      [state.per_source for state in states],
    )

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: SearchState
  ) -> tuple[tf.Tensor, SearchState]:
    """Maps the newest tokens, int32 [B*K], to log-probabilities [B*K, V + 1].

    The last column is the probability of all rows beyond the vocabulary: with
    it the others stay what they are if they are normalised again.
    """
    found, states = [], []
    for step, per_beam, per_source in zip(
      self.steps, state.per_beam, state.per_source, strict=True
    ):
      logits, new = step(ids, index, SearchState(per_beam, per_source))
      log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
      known, beyond = tf.split(log_probs, [self.vocab_size, -1], axis=1)
      rest = tf.reduce_logsumexp(beyond, axis=1, keepdims=True)
      found.append(tf.concat([known, rest], axis=1))
      states.append(new)
    mean = tf.reduce_logsumexp(tf.stack(found), axis=0) - math.log(len(found))
    return mean, SearchState(
      [new.per_beam for new in states], [new.per_source for new in states]
    )


def _coverage_penalty(
  strength: float, step: DecodingStep | EnsembleStep
) -> FinishingPenalty:
  """Returns what a search adds to the scores of hypotheses that end."""

  def penalty(candidates: Candidates, search: SearchState) -> tf.Tensor:
    states = (
      search.per_beam if isinstance(step, EnsembleStep) else [search.per_beam]
    )
    covered = tf.add_n([state[1] for state in states]) / len(states)
    shape = tf.shape(candidates.parents)
    covered = tf.reshape(covered, [shape[0], shape[1] // 2, -1])  # [B, K, S]
    covered = tf.gather(covered, candidates.parents, batch_dims=1)
    counted = covered > 0
    logs = tf.math.log(tf.minimum(tf.where(counted, covered, 1.0), 1.0))
    return strength * tf.reduce_sum(logs, axis=2)

  return penalty


def _without_pad(softmax: Projection) -> Projection:
  """Gives PAD no probability."""
  bias = softmax.bias
  if bias is None:
    bias = tf.zeros([softmax.size + softmax.spare], softmax.kernel.dtype)
  is_pad = tf.equal(tf.range(bias.shape[0]), PAD_ID)
  return softmax._replace(
    bias=tf.where(is_pad, tf.cast(NEG_INF, bias.dtype), bias)
  )


def search_translations(
  models: Sequence[Transformer], source_ids: tf.Tensor, request: SearchRequest
) -> SearchResult:
  """Translates.

  Args:
    models: of one vocabulary; the first one's parameters decide beam, alpha,
      patience and limit.
    source_ids: int [B, S], padded with PAD.
    request: how.

  Returns:
    Hypotheses, as `Transformer.beam_search` does.
  """
  params = models[0].params
  source_ids = tf.cast(source_ids, tf.int32)
  limits = _limits(models, source_ids, request)
  longest = None
  if request.static:
    longest = max(source_ids.shape[1] + params.extra_decode_length, 1)
    longest = min(longest, params.longest_output or longest)
  with traced_for(Target.XLA) if request.static else nullcontext():
    step = _step(models, longest or tf.reduce_max(limits), longest, request)
  vocab_size = _vocabulary_size(models, request)
  hooks = request.hooks
  if request.controls and request.sentences:
    controller = Controller(request.controls, request.sentences, vocab_size)
    hooks = hooks._replace(continue_with=controller.continue_with)
  if request.coverage_penalty:
    penalty = _coverage_penalty(request.coverage_penalty, step)
    hooks = hooks._replace(penalty=penalty)
  search = SequenceBeamSearch(
    step, vocab_size, params.beam_size, params.alpha, EOS_ID, hooks
  )
  batch = tf.shape(source_ids)[0]
  return search.search(
    initial_ids=tf.zeros([batch], tf.int32),
    limits=limits,
    state=step.start(source_ids, batch),
    longest=longest,
    awaited=_awaited(params, limits, request),
  )


def _awaited(
  params: TransformerParams, limits: tf.Tensor, request: SearchRequest
) -> tf.Tensor | None:
  """Returns how many hypotheses of each sentence have to end, int32 [B]."""
  if not params.patience:
    return None
  awaited = tf.fill(tf.shape(limits), enough(params.beam_size, params.patience))
  if request.controls and request.sentences:
    # Their beam is shared out: what ends first there may be improbable.
    required = request.sentences.required != PAD_ID
    awaited = tf.where(tf.reduce_any(required, axis=[1, 2]), NEVER, awaited)
  return awaited


def sample_translations(
  models: Sequence[Transformer],
  source_ids: tf.Tensor,
  numbers: tf.Tensor,
  rule: SamplingRule,
  request: SearchRequest,
) -> SearchResult:
  """Draws translations from the models' distribution.

  Args:
    models: as in `search_translations`.
    source_ids: int [B, S], padded with PAD.
    numbers: float32 [B, K, L], that decide the draws of K samples each; L is at
      least the largest limit.
    rule: what is drawn from.
    request: what is forbidden; with controls.
  """
  params = models[0].params
  source_ids = tf.cast(source_ids, tf.int32)
  limits = _limits(models, source_ids, request)
  batch, beam = tf.shape(source_ids)[0], params.beam_size
  step = _step(models, tf.reduce_max(limits), None, request)
  assert request.controls and request.sentences
  vocab_size = _vocabulary_size(models, request)
  return sample(
    step,
    step.start(source_ids, batch),
    limits,
    tf.ensure_shape(numbers, [None, beam, None]),
    SamplingPlan(
      rule,
      Controller(request.controls, request.sentences, vocab_size),
      params.alpha,
    ),
  )


def _limits(
  models: Sequence[Transformer], source_ids: tf.Tensor, request: SearchRequest
) -> tf.Tensor:
  """Returns how many tokens each translation may have, int32 [B]."""
  params = models[0].params
  lengths = tf.reduce_sum(tf.cast(source_ids != PAD_ID, tf.int32), axis=1)
  limits = tf.maximum(lengths + params.extra_decode_length, 1)
  if request.controls and request.sentences:
    given = tf.cast(request.sentences.prefix != PAD_ID, tf.int32)
    limits += tf.reduce_sum(given, axis=1)
    limits = tf.maximum(limits, request.controls.min_length + 1)
  for longest in {m.params.longest_output for m in models} - {None}:
    limits = tf.minimum(limits, longest)
  # A row without tokens fills a batch up.
  return tf.where(lengths > 0, limits, 1)


def _step(
  models: Sequence[Transformer],
  positions: int | tf.Tensor,
  longest: int | None,
  request: SearchRequest,
) -> DecodingStep | EnsembleStep:
  """Returns what the search calls."""
  beam_size = models[0].params.beam_size
  kind = CoveringStep if request.coverage_penalty else DecodingStep
  steps = [kind(model, beam_size, positions, longest) for model in models]
  if len(steps) == 1:
    return steps[0]
  return EnsembleStep(steps, _vocabulary_size(models, request))


def _vocabulary_size(
  models: Sequence[Transformer], request: SearchRequest
) -> int:
  """Returns how many tokens there are to choose from."""
  return request.vocabulary_size or min(m.params.vocab_size for m in models)
