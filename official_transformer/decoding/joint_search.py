"""Searches by one model or several, with constraints and penalties.

Shapes: B batch, K beam, S source length, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from official_transformer.model.incremental_decoder import (
  EncodedSource,
  IncrementalDecoder,
  finishes_for,
  length_limits,
)
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.search.beam_search import (
  UNLIMITED,
  BeamSearch,
)
from official_transformer.search.constraints import (
  Controller,
)
from official_transformer.search.sampling import sample
from official_transformer.search.state import (
  NO_HOOKS,
  Candidates,
  DecoderState,
  FinishingPenalty,
  SearchResult,
)


class CoveringDecoder(IncrementalDecoder):
  """An incremental decoder that sums up attention to the source.

  Each hypothesis' sum is a part of the state: float32 [B*K, S].
  """

  def start(self, source: EncodedSource) -> DecoderState:
    """Returns the first step's state for encoded sources."""
    origin_beams, cache = super().start(source)
    batch, _, _, length = tf.unstack(tf.shape(source.bias))
    nothing = tf.zeros([batch * self.beam_size, length])
    # The width is not to grow, and not known: it is no dimension of 0.
    nothing = tf.ensure_shape(nothing, [None, source.bias.shape[3]])
    return DecoderState((origin_beams, nothing), cache)

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
  ) -> tuple[tf.Tensor, DecoderState]:
    """Maps the newest tokens, int32 [B*K], to logits [B*K, V]."""
    (origin_beams, covered), cache = state
    observed: list[tf.Tensor] = []
    logits, (origin_beams, cache) = self.step(
      ids, index, DecoderState(origin_beams, cache), observed
    )
    attention = tf.reduce_mean(observed[-1], axis=1)  # [B, K, S]
    covered += tf.reshape(attention, tf.shape(covered))
    return logits, DecoderState((origin_beams, covered), cache)


class EnsembleStep:
  """Several models' steps as one: the mean of their probabilities.

  Attributes:
    steps: steps of the models.
    vocab_size: number of tokens that all models know.
  """

  def __init__(
    self, steps: Sequence[IncrementalDecoder], vocab_size: int
  ) -> None:
    self.steps = steps
    self.vocab_size = vocab_size
    sizes = [step.transformer.params.vocab_size for step in steps]
    self._has_rows_beyond = max(sizes) > vocab_size

  def encode_and_start(self, source_ids: tf.Tensor) -> DecoderState:
    """Returns the first step's state for sources [B, S]."""
    states = [step.encode_and_start(source_ids) for step in self.steps]
    return DecoderState(
      [state.per_beam for state in states],
      [state.per_sentence for state in states],
    )

  def __call__(
    self, ids: tf.Tensor, index: tf.Tensor, state: DecoderState
  ) -> tuple[tf.Tensor, DecoderState]:
    """Maps the newest tokens, int32 [B*K], to log-probabilities [B*K, V].

    If a model has rows beyond the vocabulary, one more column has their
    probability, so that normalising again does not change the other columns.
    """
    found, states = [], []
    for step, per_beam, per_sentence in zip(
      self.steps, state.per_beam, state.per_sentence, strict=True
    ):
      logits, new = step(ids, index, DecoderState(per_beam, per_sentence))
      log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
      if self._has_rows_beyond:
        known, beyond = tf.split(log_probs, [self.vocab_size, -1], axis=1)
        rest = tf.reduce_logsumexp(beyond, axis=1, keepdims=True)
        log_probs = tf.concat([known, rest], axis=1)
      found.append(log_probs)
      states.append(new)
    mean = tf.reduce_logsumexp(tf.stack(found), axis=0) - math.log(len(found))
    return mean, DecoderState(
      [new.per_beam for new in states], [new.per_sentence for new in states]
    )


def _coverage_penalty(
  strength: tf.Tensor, step: IncrementalDecoder | EnsembleStep
) -> FinishingPenalty:
  """Returns the coverage penalty of hypotheses that end."""

  def penalty(candidates: Candidates, decoder: DecoderState) -> tf.Tensor:
    per_beam = decoder.per_beam
    states = per_beam if isinstance(step, EnsembleStep) else [per_beam]
    covered = tf.add_n([state[1] for state in states]) / len(states)
    shape = tf.shape(candidates.parents)
    covered = tf.reshape(covered, [shape[0], shape[1] // 2, -1])  # [B, K, S]
    covered = tf.gather(covered, candidates.parents, batch_dims=1)
    counted = covered > 0
    logs = tf.math.log(tf.minimum(tf.where(counted, covered, 1.0), 1.0))
    return strength * tf.reduce_sum(logs, axis=2)

  return penalty


def search_translations(
  models: Sequence[Transformer], source_ids: tf.Tensor, controller: Controller
) -> SearchResult:
  """Translates.

  Args:
    models: models of one vocabulary; the parameters of the first decide beam,
      alpha, patience and limit.
    source_ids: int [B, S], padded with PAD.
    controller: how.

  Returns:
    Hypotheses, as `Transformer.beam_search` does.
  """
  params = models[0].params
  source_ids = tf.cast(source_ids, tf.int32)
  limits = _limits(models, source_ids, controller)
  step = _step(models, tf.reduce_max(limits), controller)
  hooks = NO_HOOKS._replace(propose=controller.propose)
  if controller.features.covers:
    penalty = _coverage_penalty(controller.strengths.coverage_penalty, step)
    hooks = hooks._replace(penalty=penalty)
  finishes_needed = finishes_for(params, limits)
  if finishes_needed is not None:
    # With required phrases, the beam is divided among banks, as in
    # `required_phrases`: the first hypotheses to end may be improbable.
    required = controller.sentences.required != PAD_ID
    finishes_needed = tf.where(
      tf.reduce_any(required, axis=[1, 2]), UNLIMITED, finishes_needed
    )
  search = BeamSearch(
    step,
    controller.vocab_size,
    params.beam_size,
    params.alpha,
    EOS_ID,
    hooks,
  )
  batch = tf.shape(source_ids)[0]
  return search.search(
    initial_ids=tf.zeros([batch], tf.int32),
    limits=limits,
    state=step.encode_and_start(source_ids),
    finishes_needed=finishes_needed,
  )


def sample_translations(
  models: Sequence[Transformer],
  source_ids: tf.Tensor,
  uniforms: tf.Tensor,
  controller: Controller,
) -> SearchResult:
  """Draws translations from the models' distribution.

  Args:
    models: as in `search_translations`.
    source_ids: int [B, S], padded with PAD.
    uniforms: float32 [B, K, L] in [0, 1), that decide the draws of K samples
      each; L is at least the largest limit.
    controller: the distribution to draw from, and the forbidden tokens.
  """
  params = models[0].params
  source_ids = tf.cast(source_ids, tf.int32)
  limits = _limits(models, source_ids, controller)
  step = _step(models, tf.reduce_max(limits), controller)
  return sample(
    step,
    step.encode_and_start(source_ids),
    limits,
    tf.ensure_shape(uniforms, [None, controller.features.samples, None]),
    controller,
    params.alpha,
  )


def _limits(
  models: Sequence[Transformer], source_ids: tf.Tensor, controller: Controller
) -> tf.Tensor:
  """Returns how many tokens each translation may have, int32 [B]."""
  lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
  limits = length_limits(lengths, models[0].params.extra_decode_length)
  given = tf.cast(controller.sentences.prefix != PAD_ID, tf.int32)
  limits += tf.reduce_sum(given, axis=1)
  limits = tf.maximum(limits, controller.strengths.min_length + 1)
  for longest in {m.params.longest_output for m in models} - {None}:
    limits = tf.minimum(limits, longest)
  # A row without tokens fills a batch up.
  return tf.where(lengths > 0, limits, 1)


def _step(
  models: Sequence[Transformer],
  positions: int | tf.Tensor,
  controller: Controller,
) -> IncrementalDecoder | EnsembleStep:
  """Returns the step function of the search."""
  beam_size = controller.features.samples or models[0].params.beam_size
  kind = CoveringDecoder if controller.features.covers else IncrementalDecoder
  steps = [kind(model, beam_size, positions, None) for model in models]
  if len(steps) == 1:
    return steps[0]
  return EnsembleStep(steps, controller.vocab_size)
