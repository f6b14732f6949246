"""Drawing translations from the model's own distribution.

The caller gives a number in [0, 1) for each draw: the draw is the first token
at which the cumulative sum of the distribution exceeds that number. Equal
numbers give equal draws, in any batch.

Shapes: B batch, K samples of a sentence, L longest limit, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.search.beam_search import length_normalization
from official_transformer.search.constraints import Controller, Strengths
from official_transformer.search.options import SamplingRule
from official_transformer.search.state import (
  NEG_INF,
  DecoderState,
  SearchResult,
  StepFunction,
  growing_shapes,
)


class _Draws(NamedTuple):
  """The variables of the loop.

  Attributes:
    index: int32 [], steps made.
    newest: int32 [B, K], each sample's last token.
    ids: int32 [B, K, L].
    log_probs: float32 [B, K], of all tokens, as the model has them.
    finished: bool [B, K], which have drawn EOS.
    decoder: the step function's own state.
  """

  index: tf.Tensor
  newest: tf.Tensor
  ids: tf.Tensor
  log_probs: tf.Tensor
  finished: tf.Tensor
  decoder: DecoderState


def sample_tokens(
  log_probs: tf.Tensor,
  uniforms: tf.Tensor,
  rule: SamplingRule | Strengths,
  from_all: bool = False,
) -> tf.Tensor:
  """Returns, for each row, the token that its number in [0, 1) draws.

  It is the first one whose cumulative probability exceeds the number.

  Args:
    log_probs: float32 [R, V].
    uniforms: float32 [R], in [0, 1).
    rule: temperature, `top_k` and `top_p` of the draw.
    from_all: whether the rule is known to leave no token out, which saves
      sorting them.

  Returns:
    int32 [R].
  """
  scaled = log_probs / rule.temperature
  size = scaled.shape[1]
  ids = None
  if not from_all:
    number = tf.where(tf.greater(rule.top_k, 0), rule.top_k, size)
    scaled, ids = tf.math.top_k(scaled, tf.minimum(number, size))
  probabilities = tf.nn.softmax(scaled)
  if not from_all:
    before = tf.cumsum(probabilities, axis=1, exclusive=True)
    kept = (before < rule.top_p) | tf.greater_equal(rule.top_p, 1.0)
    probabilities = tf.where(kept, probabilities, 0.0)
  sums = tf.cumsum(probabilities, axis=1)
  target = uniforms[:, None] * sums[:, -1:]
  # Zero-probability tokens leave the cumulative sum unchanged, so `<=` skips
  # them.
  chosen = tf.reduce_sum(tf.cast(sums <= target, tf.int32), axis=1)
  last = tf.reduce_sum(tf.cast(sums < sums[:, -1:], tf.int32), axis=1)
  chosen = tf.minimum(chosen, last)
  if ids is None:
    return chosen
  return tf.gather(ids, chosen, batch_dims=1)


def sample(
  step: StepFunction,
  state: DecoderState,
  limits: tf.Tensor,
  uniforms: tf.Tensor,
  controller: Controller,
  alpha: float,
) -> SearchResult:
  """Draws K translations of each sentence, in no order.

  Args:
    step: as `BeamSearch` has it.
    state: state of the step function before the first step.
    limits: int32 [B], most tokens of each.
    uniforms: float32 [B, K, L], the number in [0, 1) that decides each draw.
    controller: the distribution to draw from, and the forbidden tokens.
    alpha: strength of the length normalisation of the scores.

  Returns:
    The samples; a sample that reaches its limit without EOS is unfinished.
  """
  from_all = not controller.features.draws_from_some
  shape = tf.shape(uniforms)
  rows = tf.range(shape[0])

  def going_on(draws: _Draws) -> tf.Tensor:
    open_ = tf.logical_not(draws.finished) & (draws.index < limits[:, None])
    return tf.reduce_any(open_)

  def draw(draws: _Draws) -> tuple[_Draws]:
    logits, decoder = step(
      tf.reshape(draws.newest, [-1]), draws.index, draws.decoder
    )
    log_probs = controller.log_probabilities(
      tf.cast(logits, tf.float32), draws.ids, rows, draws.index
    )
    flat = tf.reshape(log_probs, [-1, log_probs.shape[2]])
    tokens = sample_tokens(
      flat,
      tf.reshape(uniforms[:, :, draws.index], [-1]),
      controller.strengths,
      from_all,
    )
    gained = tf.gather(flat, tokens, batch_dims=1)
    tokens, gained = (tf.reshape(t, shape[:2]) for t in (tokens, gained))
    idle = draws.finished | (draws.index >= limits[:, None])
    tokens = tf.where(idle, PAD_ID, tokens)
    here = tf.range(shape[2]) == draws.index
    return (
      _Draws(
        draws.index + 1,
        tokens,
        tf.where(here, tokens[:, :, None], draws.ids),
        draws.log_probs + tf.where(idle, 0.0, gained),
        draws.finished | (tf.equal(tokens, EOS_ID) & (gained > NEG_INF)),
        decoder,
      ),
    )

  start = _Draws(
    tf.constant(0),
    tf.zeros(shape[:2], tf.int32),
    tf.zeros(shape, tf.int32),
    tf.zeros(shape[:2]),
    tf.zeros(shape[:2], tf.bool),
    state,
  )
  shapes = tf.nest.map_structure(lambda t: t.shape, start)
  shapes = shapes._replace(decoder=growing_shapes(state))
  (end,) = tf.while_loop(going_on, draw, (start,), shape_invariants=(shapes,))
  return _scored(end, alpha)


def _scored(end: _Draws, alpha: float) -> SearchResult:
  """Returns the samples with their normalised scores."""
  # PAD that is drawn is an ordinary token: EOS marks the length.
  is_end = tf.cast(tf.equal(end.ids, EOS_ID), tf.int32)
  lengths = tf.argmax(is_end, axis=2, output_type=tf.int32) + 1
  norms = length_normalization(alpha, lengths)
  scores = tf.where(end.finished, end.log_probs / norms, end.log_probs)
  return SearchResult(end.ids, scores, end.finished)
