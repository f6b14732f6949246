"""Constraints and penalties of a search.

Each constraint is a function of logits or log-probabilities and of the
hypotheses so far. `Controller` applies them all; `BeamSearch` calls its
`propose` instead of its own choice. A forbidden token gets probability zero,
and the other tokens keep their probabilities: a score stays the model's
log-probability (as in fairseq). Only the repetition penalty, `suppress_pad` and
`suppress_unk` change logits, before they are normalised.

Shapes: B batch, K beam, L longest limit, V vocabulary, P longest prefix, F
forbidden phrases, C required ones, Q longest phrase.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.ops.top_k import best_of_beams
from official_transformer.search.options import (
  Sampling,
  SearchFeatures,
  SearchOptions,
)
from official_transformer.search.required_phrases import best_with_required
from official_transformer.search.state import NEG_INF, ActiveSentences

# Matches any token. It pads phrases that are shorter than others, on the left.
ANY = -1
NO_TOKEN = -2


class SentenceConstraints(NamedTuple):
  """Constraints of each sentence.

  With no constraints, one entry of padding keeps the arrays non-empty.

  Attributes:
    prefix: int32 [B, P], the tokens that a translation begins with, padded with
      0.
    forbidden: int32 [B, F, Q], token sequences, padded on the left with `ANY`;
      a row that ends in `NO_TOKEN` is empty.
    required: int32 [B, C, Q], token sequences, zeros behind them.
  """

  prefix: tf.Tensor
  forbidden: tf.Tensor
  required: tf.Tensor


class Strengths(NamedTuple):
  """The numbers of `SearchOptions` and `SamplingRule`, as scalars of a graph.

  Attributes: as in `SearchOptions` and `SamplingRule`; counts are int32, other
  numbers float32.
  """

  no_repeat_ngram_size: tf.Tensor
  min_length: tf.Tensor
  repetition_penalty: tf.Tensor
  coverage_penalty: tf.Tensor
  temperature: tf.Tensor
  top_k: tf.Tensor
  top_p: tf.Tensor

  @classmethod
  def of(cls, options: SearchOptions) -> Strengths:
    """Returns the strengths that options ask for."""
    rule = (options.sampling or Sampling()).rule
    return cls(
      tf.constant(options.no_repeat_ngram_size, tf.int32),
      tf.constant(options.min_length, tf.int32),
      tf.constant(options.repetition_penalty, tf.float32),
      tf.constant(options.coverage_penalty, tf.float32),
      tf.constant(rule.temperature, tf.float32),
      tf.constant(rule.top_k, tf.int32),
      tf.constant(rule.top_p, tf.float32),
    )


class Controller:
  """Applies options and each sentence's constraints to one batch.

  Attributes:
    features: which parts the graph has.
    strengths: the numbers of the options, which hold for all.
    sentences: for each, in the order of the caller's batch.
    vocab_size: V, how many of the first tokens a translation may hold.
  """

  def __init__(
    self,
    features: SearchFeatures,
    strengths: Strengths,
    sentences: SentenceConstraints,
    vocab_size: int,
  ) -> None:
    self.features = features
    self.strengths = strengths
    self.sentences = sentences
    self.vocab_size = vocab_size

  def propose(
    self, logits: tf.Tensor, sentences: ActiveSentences, index: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the best continuations, in the form of `state.Continue`."""
    history = sentences.alive_ids
    log_probs = self.log_probabilities(logits, history, sentences.rows, index)
    log_probs += sentences.alive_log_probs[:, :, None]
    required = tf.gather(self.sentences.required, sentences.rows)

    def unconstrained() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
      number = min(2 * log_probs.shape[1], self.vocab_size)
      best, tokens = tf.math.top_k(log_probs, number)
      tokens = tf.reshape(tokens, [tf.shape(tokens)[0], -1])
      return best_of_beams(best, tokens)

    # If no phrase is required, both functions give the same result; dividing
    # the beam would be the most expensive part of a step.
    return tf.cond(
      tf.reduce_any(required != PAD_ID),
      lambda: best_with_required(log_probs, history, required, index),
      unconstrained,
    )

  def log_probabilities(
    self,
    logits: tf.Tensor,
    history: tf.Tensor,
    rows: tf.Tensor,
    index: tf.Tensor,
  ) -> tf.Tensor:
    """Returns the log-probabilities of the next token, -inf if it may not be.

    Args:
      logits: float32 [B*K, V] or more columns.
      history: int32 [B, K, L], hypotheses of `index` tokens.
      rows: int32 [B], where their sentences stand in the caller's batch.
      index: int32 [].

    Returns:
      float32 [B, K, V].
    """
    shape = tf.shape(history)
    if self.features.penalizes_repetition:
      logits = self._penalize(logits, history, index)
    log_probs = tf.nn.log_softmax(logits)[:, : self.vocab_size]
    log_probs = tf.reshape(log_probs, [shape[0], shape[1], self.vocab_size])
    prefix = tf.gather(self.sentences.prefix, rows)
    forbidden = tf.gather(self.sentences.forbidden, rows)
    banned = ends_too_early(index, self.strengths.min_length, self.vocab_size)
    tokens = completions(history, forbidden, index)
    if self.features.bans_repetition:
      size = self.strengths.no_repeat_ngram_size
      repeated = repetitions(history, size, index)
      tokens = tf.concat([tokens, repeated], axis=2)
    banned |= holds(tokens, self.vocab_size)
    # A prefix may contain tokens that are forbidden after it.
    forced, off = off_prefix(prefix, index, self.vocab_size)
    return tf.where(tf.where(forced, off, banned), NEG_INF, log_probs)

  def _penalize(
    self, logits: tf.Tensor, history: tf.Tensor, index: tf.Tensor
  ) -> tf.Tensor:
    """Makes tokens that a hypothesis holds already less probable."""
    here = tf.range(tf.shape(history)[2]) < index
    seen = holds(tf.where(here, history, NO_TOKEN), logits.shape[1])
    penalty = self.strengths.repetition_penalty
    lower = tf.where(logits < 0, logits * penalty, logits / penalty)
    return tf.where(tf.reshape(seen, tf.shape(logits)), lower, logits)


def holds(tokens: tf.Tensor, vocab_size: int) -> tf.Tensor:
  """Returns which tokens there are.

  Args:
    tokens: int32 [B, K, N]; entries below 0 are no tokens.
    vocab_size: V.

  Returns:
    bool [B, K, V].
  """
  shape = tf.shape(tokens)
  flat = tf.reshape(tokens, [-1, shape[2]])
  hypotheses = tf.range(tf.shape(flat)[0])[:, None] * vocab_size
  places = tf.where(flat < 0, -1, hypotheses + flat)
  places = tf.reshape(places, [-1])
  places = tf.boolean_mask(places, places >= 0)
  number = shape[0] * shape[1] * vocab_size
  found = tf.tensor_scatter_nd_update(
    tf.zeros([number], tf.int32), places[:, None], tf.ones_like(places)
  )
  return tf.reshape(found, [shape[0], shape[1], vocab_size]) > 0


def off_prefix(
  prefix: tf.Tensor, index: tf.Tensor, vocab_size: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns where a prefix decides, and which tokens it leaves out.

  Args:
    prefix: int32 [B, P], zeros behind it.
    index: int32 [], tokens there are.
    vocab_size: V.

  Returns:
    bool [B, 1, 1] and [B, 1, V].
  """
  padded = tf.pad(prefix, [[0, 0], [0, 1]])
  here = padded[:, tf.minimum(index, tf.shape(prefix)[1])][:, None]
  other = tf.range(vocab_size)[None] != here
  return (here > 0)[:, None], other[:, None]


def ends_too_early(
  index: tf.Tensor, min_length: int | tf.Tensor, vocab_size: int
) -> tf.Tensor:
  """Returns whether EOS comes too early, bool [1, 1, V]."""
  is_end = tf.equal(tf.range(vocab_size), EOS_ID)
  return (is_end & (index < min_length))[None, None]


def _newest(
  history: tf.Tensor, number: int | tf.Tensor, index: tf.Tensor
) -> tf.Tensor:
  """Returns the newest tokens, int32 [B, K, number]; `NO_TOKEN` before all."""
  padded = tf.pad(
    history, [[0, 0], [0, 0], [number, 0]], constant_values=NO_TOKEN
  )
  return padded[:, :, index : index + number]


def completions(
  history: tf.Tensor, forbidden: tf.Tensor, index: tf.Tensor
) -> tf.Tensor:
  """Returns the tokens that would complete a forbidden phrase.

  Args:
    history: int32 [B, K, L].
    forbidden: int32 [B, F, Q], padded on the left with `ANY`.
    index: int32 [], tokens there are.

  Returns:
    int32 [B, K, F]; entries below 0 are no tokens.
  """
  heads, last = forbidden[:, None, :, :-1], forbidden[:, None, :, -1]
  number = tf.maximum(tf.shape(forbidden)[2] - 1, 0)
  newest = _newest(history, number, index)[:, :, None]  # [B, K, 1, Q - 1]
  matches = tf.reduce_all((heads == ANY) | (heads == newest), axis=3)
  return tf.where(matches, last, NO_TOKEN)


def repetitions(
  history: tf.Tensor, size: int | tf.Tensor, index: tf.Tensor
) -> tf.Tensor:
  """Returns the tokens that would repeat an n-gram.

  Args:
    history: int32 [B, K, L].
    size: n, at least 1.
    index: int32 [], tokens there are.

  Returns:
    int32 [B, K, L]; entries below 0 are no tokens.
  """
  length = tf.shape(history)[2]
  size = tf.minimum(size, length + 1)  # A longer one cannot come twice.
  padded = tf.pad(history, [[0, 0], [0, 0], [0, size]])
  newest = _newest(history, size - 1, index)

  def match(place: tf.Tensor, matches: tf.Tensor) -> tuple[tf.Tensor, ...]:
    there = padded[:, :, place : place + length]
    here = newest[:, :, place : place + 1]
    return place + 1, matches & (there == here)

  begins = tf.broadcast_to(
    tf.range(length) + size - 1 < index, tf.shape(history)
  )
  _, matches = tf.while_loop(
    lambda place, _: place < size - 1, match, (tf.constant(0), begins)
  )
  last = padded[:, :, size - 1 : size - 1 + length]
  return tf.where(matches, last, NO_TOKEN)
