"""Searching under constraints, drawing samples, and several models as one.

It is slower than `Searcher`, because the whole vocabulary is normalised at
every step.

Shapes: B lines, K beam, L longest limit.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from official_transformer.decoding.batching import pad
from official_transformer.decoding.hypotheses import (
  FoundSequence,
  found_sequences,
  without_end,
)
from official_transformer.decoding.joint_search import (
  sample_translations,
  search_translations,
)
from official_transformer.decoding.memory_bounds import (
  check_batch,
  out_of_memory,
)
from official_transformer.decoding.phrases import (
  NO_CONSTRAINTS,
  DecodingConstraints,
  as_written,
  holds,
  overgrown,
  prefix_of,
  remembered,
  spelled,
  tokens_of,
)
from official_transformer.model.transformer import Transformer
from official_transformer.search.constraints import (
  ANY,
  NO_TOKEN,
  Controller,
  SentenceConstraints,
  Strengths,
)
from official_transformer.search.options import (
  DEFAULT_SEARCH,
  SearchFeatures,
  SearchOptions,
)
from official_transformer.search.state import SearchResult
from official_transformer.text.tokenizer import Tokenizer
from official_transformer.text.vocabulary_files import Tokenizers

# A phrase is found in other tokens at most so many times before it is given up.
_ROUNDS = 20

# Of a line: sequences of tokens that it may not hold.
Forbidden = set[tuple[int, ...]]


class GuidedSearcher:
  """Searches under constraints; safe to call from several threads.

  Attributes:
    models: models that decide together; the parameters of the first are used.
    params: hyper-parameters of the first model.
    target: the target's tokenizer.
  """

  def __init__(
    self, models: Sequence[Transformer], tokenizers: Tokenizers
  ) -> None:
    self.models = models
    self.params = models[0].params
    self.target: Tokenizer = tokenizers.target
    self._tokens_of = remembered(tokens_of, self.target)
    self._written = remembered(as_written, self.target)
    # Traced once for each kind of search, of which there are few.
    self._functions: dict[SearchFeatures, Callable[..., SearchResult]] = {}

  def search(
    self,
    sources: Sequence[Sequence[int]],
    constraints: Sequence[DecodingConstraints] | None = None,
    options: SearchOptions = DEFAULT_SEARCH,
  ) -> list[list[FoundSequence]]:
    """Returns each source's best sequences; see `SequenceSearcher`.

    Args:
      sources: token lists, each ending in EOS.
      constraints: of each, the phrases that `options` forbids among them.
      options: penalties and samples.
    """
    asked = constraints or [NO_CONSTRAINTS] * len(sources)
    forbidden = [self._forbidden_tokens(line) for line in asked]
    found = self._search_all(sources, asked, forbidden, options)
    for _ in range(_ROUNDS):
      # Another segmentation may spell the phrase: forbid that, too.
      again = [
        row
        for row, line in enumerate(asked)
        if self._forbid_spellings(found[row], line, forbidden[row])
      ]
      if not again:
        break
      better = self._search_all(
        [sources[row] for row in again],
        [asked[row] for row in again],
        [forbidden[row] for row in again],
        options,
      )
      for row, sequences in zip(again, better, strict=True):
        found[row] = sequences
    return found

  def _tokens_of_each(self, phrases: Sequence[str]) -> list[list[int]]:
    """Returns the tokens of phrases that a translation can contain."""
    found = [self._tokens_of(phrase) for phrase in phrases]
    return [tokens for tokens in found if tokens]

  def _forbidden_tokens(self, line: DecodingConstraints) -> Forbidden:
    return set(map(tuple, self._tokens_of_each(line.forbidden)))

  def _forbid_spellings(
    self,
    sequences: Sequence[FoundSequence],
    line: DecodingConstraints,
    forbidden: Forbidden,
  ) -> bool:
    """Adds forbidden spellings that were found; returns whether any is new.

    A spelling to forbid has a forbidden phrase in other tokens, or the tokens
    of a required phrase as a part of a longer word.
    """
    number = len(forbidden)
    if not line.forbidden and not line.required:
      return False
    texts = [self.target.decode(sequence.ids) for sequence in sequences]
    for phrase in line.forbidden:
      written = self._written(phrase)
      for sequence, text in zip(sequences, texts, strict=True):
        if holds(text, written):
          forbidden |= set(spelled(self.target, sequence.ids, written))
    for phrase in line.required:
      tokens, written = self._tokens_of(phrase), self._written(phrase)
      for sequence, text in zip(sequences, texts, strict=True):
        if tokens and not holds(text, written):
          forbidden |= set(overgrown(self.target, sequence.ids, tokens))
    return len(forbidden) > number

  def _search_all(
    self,
    sources: Sequence[Sequence[int]],
    constraints: Sequence[DecodingConstraints],
    forbidden: Sequence[Forbidden],
    options: SearchOptions,
  ) -> list[list[FoundSequence]]:
    """Searches once."""
    longest = max(map(len, sources))
    for model in self.models:
      check_batch(model.params, len(sources) * len(self.models), longest)
    prefixes = [prefix_of(self.target, line.prefix) for line in constraints]
    required = [self._tokens_of_each(line.required) for line in constraints]
    limit = longest + self.params.extra_decode_length + options.min_length
    limit += max(map(len, prefixes)) + 2
    try:
      result = self._function(options.features(self.params.beam_size))(
        Strengths.of(options),
        pad(sources),
        pad(prefixes, 1),
        _phrase_array([sorted(f) for f in forbidden], ANY, NO_TOKEN),
        _phrase_array(required, 0, 0),
        _uniforms(sources, options, self.params.beam_size, limit),
      )
      arrays = [tensor.numpy().tolist() for tensor in result]
    except tf.errors.ResourceExhaustedError as error:
      said = error.message.splitlines()[0]
      raise out_of_memory(len(sources), longest, said) from None
    kept = _all_samples if options.sampling else _possible_hypotheses
    return [kept(*row) for row in zip(*arrays, strict=True)]

  def _function(self, features: SearchFeatures) -> Callable[..., SearchResult]:
    """Returns the traced function of such a search."""
    if features not in self._functions:
      ids = tf.TensorSpec([None, None], tf.int32)
      phrases = tf.TensorSpec([None, None, None], tf.int32)
      uniforms = tf.TensorSpec([None, None, None], tf.float32)
      numbers = tf.nest.map_structure(
        tf.TensorSpec.from_tensor, Strengths.of(DEFAULT_SEARCH)
      )
      function = tf.function(
        functools.partial(self._search, features),
        input_signature=[numbers, ids, ids, phrases, phrases, uniforms],
        autograph=False,
      )
      # Another thread may have been as fast.
      self._functions.setdefault(features, function)
    return self._functions[features]

  def _search(
    self,
    features: SearchFeatures,
    strengths: Strengths,
    ids: tf.Tensor,
    prefix: tf.Tensor,
    forbidden: tf.Tensor,
    required: tf.Tensor,
    uniforms: tf.Tensor,
  ) -> SearchResult:
    """Searches, or draws, in a graph."""
    controller = Controller(
      features,
      strengths,
      SentenceConstraints(prefix, forbidden, required),
      self.target.vocab_size,
    )
    if features.samples:
      return sample_translations(self.models, ids, uniforms, controller)
    return search_translations(self.models, ids, controller)


def _uniforms(
  sources: Sequence[Sequence[int]],
  options: SearchOptions,
  beam_size: int,
  limit: int,
) -> np.ndarray:
  """Returns uniform random numbers, float32 [B, K, L], by seed and source."""
  sampling, number = options.sampling, options.hypotheses(beam_size)
  if not sampling:
    return np.zeros((len(sources), number, 0), np.float32)
  uniforms = np.empty((len(sources), number, limit), np.float32)
  for row, source in enumerate(sources):
    key = zlib.crc32(np.array(source, np.int64).tobytes())
    philox = np.random.Philox(key=[sampling.seed % 2**63, key])
    drawn = np.random.Generator(philox).random((limit, number))
    # Below 1 in float32, too.
    uniforms[row] = np.minimum(drawn.T, 1 - 2**-24)
  return uniforms


def _all_samples(
  rows: list[list[int]], scores: list[float], finished: list[bool]
) -> list[FoundSequence]:
  """Returns the samples of a line."""
  return [
    FoundSequence(without_end(ids), score, flag)
    for ids, score, flag in zip(rows, scores, finished, strict=True)
  ]


def _possible_hypotheses(
  rows: list[list[int]], scores: list[float], finished: list[bool]
) -> list[FoundSequence]:
  """Returns a line's hypotheses that have a probability."""
  kept = [n for n, score in enumerate(scores) if score > float("-inf")]
  number = len(kept) or 1  # The best come first.
  return found_sequences(rows[:number], scores[:number], finished[:number])


def _phrase_array(
  phrases: Sequence[Sequence[Sequence[int]]], filler: int, end: int
) -> np.ndarray:
  """Lays phrases of lines out, int32 [B, phrases, longest], at least 1 each.

  Args:
    phrases: phrases of each line, token lists.
    filler: pads shorter phrases, on the left if it is below 0, otherwise on the
      right.
    end: last token of a row that is no phrase.
  """
  number = max(1, *map(len, phrases))
  longest = max([1, *(len(p) for line in phrases for p in line)])
  found = np.full([len(phrases), number, longest], filler, np.int32)
  found[:, :, -1] = end
  for row, line in enumerate(phrases):
    for place, phrase in enumerate(line):
      if filler < 0:
        found[row, place, longest - len(phrase) :] = phrase
      else:
        found[row, place, : len(phrase)] = phrase
  return found
