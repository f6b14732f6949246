"""Log-probabilities of given translations.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf
from absl import logging

from official_transformer.decoding.batching import map_by_length, pad, windows
from official_transformer.decoding.memory_bounds import (
  lacks_memory,
  lacks_positions,
)
from official_transformer.decoding.options import BatchLimits
from official_transformer.model.transformer import Transformer
from official_transformer.model.variants import biased_inputs, hide_tokens
from official_transformer.model_params import PAD_ID
from official_transformer.ops.cross_entropy import label_log_probabilities
from official_transformer.search.beam_search import length_normalization
from official_transformer.text.tokenizer import Tokenizer, check_text
from official_transformer.text.vocabulary_files import Tokenizers


@dataclasses.dataclass(frozen=True)
class PairScore:
  """The log-probability of a target, given its source.

  Attributes:
    token_log_probabilities: natural logarithms, one for each token of the
      target, EOS last.
    normalized_score: sum of the log-probabilities, divided by the length
      normalisation of beam search: the score of this target in a search that
      may write the unknown token.
  """

  token_log_probabilities: list[float]
  normalized_score: float

  @property
  def log_probability(self) -> float:
    """Natural logarithm of the whole target's probability, EOS included."""
    return sum(self.token_log_probabilities)

  @property
  def tokens(self) -> int:
    """Number of the target's tokens, EOS included."""
    return len(self.token_log_probabilities)


class Scorer:
  """A model and its tokenizer, scoring pairs of lines.

  Attributes:
    transformer: the model; its `params.alpha` normalises.
    tokenizers: tokenizers of source and target.
    limits: how many pairs are scored at once.
    not_scored: pairs that were too long for the memory there is.
    beyond_positions: pairs that were longer than the positions that the model
      has learnt.
  """

  not_scored = 0
  beyond_positions = 0

  def __init__(
    self,
    transformer: Transformer,
    tokenizers: Tokenizer | Tokenizers,
    limits: BatchLimits | None = None,
  ) -> None:
    self.transformer = transformer
    self.tokenizers = Tokenizers.of(tokenizers)
    self.limits = limits or BatchLimits()
    self._log_probabilities = tf.function(
      self._batch_log_probabilities,
      input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
      autograph=False,
    )

  def score_stream(
    self, pairs: Iterable[tuple[str, str]]
  ) -> Iterator[PairScore]:
    """Yields the score of each pair of source and target line, in order."""
    for window in windows(pairs, lambda pair: len(pair[0]) + len(pair[1])):
      for text in itertools.chain.from_iterable(window):
        check_text(text)
      encoded = [
        (
          self.tokenizers.source.encode(source.strip(), add_eos=True),
          self.tokenizers.target.encode(target.strip(), add_eos=True),
        )
        for source, target in window
      ]
      yield from map_by_length(
        encoded,
        lambda pair: max(map(len, pair)),
        self.limits,
        self.score_batch,
      )

  def score_batch(
    self, pairs: Sequence[tuple[list[int], list[int]]]
  ) -> list[PairScore]:
    """Scores pairs of token lists, each ending in EOS.

    A pair too long for the memory there is, or for the model's learnt
    positions, gets NaN for each token.
    """
    sources, targets = zip(*pairs, strict=True)
    longest = max(map(len, (*sources, *targets)))
    params = self.transformer.params
    if lacks_positions(params, longest) or lacks_memory(
      params, len(pairs), longest
    ):
      return self._too_long(pairs, longest)
    try:
      rows = self._log_probabilities(pad(sources), pad(targets)).numpy()
    except tf.errors.ResourceExhaustedError:
      return self._too_long(pairs, longest)
    scores = []
    for row, target in zip(rows, targets, strict=True):
      tokens = [float(p) for p in row[: len(target)]]
      norm = length_normalization(
        self.transformer.params.alpha, tf.constant(len(tokens))
      )
      scores.append(PairScore(tokens, sum(tokens) / float(norm)))
    return scores

  def _too_long(
    self, pairs: Sequence[tuple[list[int], list[int]]], longest: int
  ) -> list[PairScore]:
    """Scores fewer pairs at a time if memory does not suffice."""
    if len(pairs) > 1:
      half = len(pairs) // 2
      return self.score_batch(pairs[:half]) + self.score_batch(pairs[half:])
    params = self.transformer.params
    if lacks_positions(params, longest):
      self.beyond_positions += 1
      reason = (
        f"longer than the {params.max_positions} positions that the model has "
        "learnt"
      )
    else:
      self.not_scored += 1
      reason = "too long for the memory there is"
    logging.error(
      "a pair with a side of %d tokens is %s: its score is nan", longest, reason
    )
    nan = float("nan")
    return [PairScore([nan] * len(pairs[0][1]), nan)]

  def _batch_log_probabilities(
    self, sources: tf.Tensor, targets: tf.Tensor
  ) -> tf.Tensor:
    """Maps ids [B, S] and [B, T] to log-probabilities, float32 [B, T]."""
    params = self.transformer.params
    states = self.transformer.decoder_states([sources, targets])
    operands = self.transformer.softmax.loss_inputs(
      tf.reshape(states, [-1, params.hidden_size])
    )
    if params.suppress_pad:
      states, table = operands
      nothing = tf.zeros(tf.shape(table)[:1], table.dtype)
      # Not infinite, because padding has the label PAD, with weight 0.
      bias = hide_tokens(nothing, [PAD_ID], -1e9)
      operands = biased_inputs(states, table, bias)
    found = label_log_probabilities(*operands, tf.reshape(targets, [-1]))
    return tf.reshape(found, tf.shape(targets))
