"""Word alignments of a source and its translation.

Word alignments are read from the decoder's attention to the source;
`AlignmentRule` says how, and `benchmarks/alignments.py` has compared rules.
Other rules are attention of one layer (Garg et al. 2019) or of the next target
position (Chen et al. 2020).

Shapes: L layers, N heads, S source pieces, T target pieces, both with EOS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from official_transformer.decoding.options import AlignmentRule
from official_transformer.model_params import EOS_ID
from official_transformer.text.tokenizer import (
  Tokenizer,
  decoded_spans,
  formed_text,
)
from official_transformer.text.words import Span, words_of, words_under

if TYPE_CHECKING:
  from official_transformer.decoding.attention import AttentionReader

_LEAST = 1e-6  # Smallest divisor, for rows and columns of zeros.
_ROUNDS = 3  # More changed little: benchmarks/history/measurements.md.
_MOST_WEIGHTS = 1 << 14  # Of a line that was cut.


class Link(NamedTuple):
  """A source word and a target word that belong together, counted from 0."""

  source: int
  target: int


def piece_weights(rule: AlignmentRule, cross: np.ndarray) -> np.ndarray:
  """Returns how much each target piece belongs to each source piece.

  Args:
    rule: where in the attention it is read.
    cross: attention to the source, [L, N, T, S].

  Returns:
    [T - 1, S - 1]: without EOS on either side.
  """
  layers = slice(None) if rule.layers is None else list(rule.layers)
  return _mutual(cross[layers].mean(1)[:, :-1, :-1]).sum(0)


def _mutual(weights: np.ndarray) -> np.ndarray:
  """Returns weights that are large if both sides belong to each other.

  Each weight is multiplied by its share of its column, after some rounds of
  Sinkhorn and Knopp (1967), which bring the sums of rows and columns to 1: a
  source piece that many targets attend to, such as a full stop, counts less for
  each of them.

  Args:
    weights: [..., T, S], attention of T target pieces to S source pieces.
  """
  shares = weights / np.maximum(weights.sum(-2, keepdims=True), _LEAST)
  for _ in range(_ROUNDS - 1):
    shares = shares / np.maximum(shares.sum(-1, keepdims=True), _LEAST)
    shares = shares / np.maximum(shares.sum(-2, keepdims=True), _LEAST)
  return weights * shares


class Words(NamedTuple):
  """The words of a line, and which of them each of its pieces is part of.

  Attributes:
    text: the line.
    spans: places of the words in the line.
    of_piece: for each piece, the words it has characters of.
  """

  text: str
  spans: list[Span]
  of_piece: list[list[int]]

  @classmethod
  def of_source(cls, tokenizer: Tokenizer, text: str) -> Words:
    """Returns the words of a line, in the form that its model reads."""
    formed = formed_text(tokenizer, text)
    spans = words_of(formed)
    return cls(formed, spans, words_under(spans, tokenizer.spans(text)))

  @classmethod
  def of_target(
    cls,
    tokenizer: Tokenizer,
    text: str,
    ids: Sequence[int],
    places: Sequence[Span] | None = None,
  ) -> Words:
    """Returns the words of a translation.

    Args:
      tokenizer: tokenizer of the target.
      text: the translation.
      ids: ids of the translation, without EOS.
      places: place of each id in the text, if the text is not the decoded ids.
    """
    spans = words_of(text)
    places = places or decoded_spans(tokenizer, ids)
    return cls(text, spans, words_under(spans, list(places)))

  def texts(self) -> list[str]:
    """Returns the words."""
    return [span.of(self.text) for span in self.spans]

  def membership(self) -> np.ndarray:
    """Returns [pieces, words], 1 where a piece is part of a word."""
    found = np.zeros([len(self.of_piece), len(self.spans)], np.float32)
    for piece, words in enumerate(self.of_piece):
      found[piece, words] = 1
    return found


def word_weights(
  weights: np.ndarray, source: Words, target: Words
) -> np.ndarray:
  """Combines the weights of pieces to weights of words.

  A target word attends as its pieces do on average, to a source word as much as
  to all of its pieces together.

  Args:
    weights: [T - 1, S - 1], of pieces.
    source: words of the source, over its S - 1 pieces.
    target: words of the target, over its T - 1 pieces.

  Returns:
    [target words, source words].
  """
  parts = target.membership()
  mean = parts / np.maximum(parts.sum(0), 1)
  return mean.T @ weights @ source.membership()


def link_words(weights: np.ndarray) -> list[Link]:
  """Links each target word to the source word that it belongs to most.

  Args:
    weights: [target words, source words].

  Returns:
    Sorted by source. A target word without any weight has no link.
  """
  if not weights.size:
    return []
  mutual = _mutual(weights)
  best = mutual.argmax(1)
  return sorted(
    Link(int(source), target)
    for target, source in enumerate(best)
    if mutual[target, source] > 0
  )


@dataclasses.dataclass(frozen=True)
class Alignment:
  """A word alignment of a source and its translation.

  Attributes:
    source_words: words of the source, as they are counted.
    target_words: words of the translation, as they are counted.
    links: sorted by source.
    weights: attention of each target word to each source word, on the mean of
      all layers and heads; the rest to 1 belongs to the end of the sentence.
      Empty for a long line that was cut.
  """

  source_words: list[str]
  target_words: list[str]
  links: list[Link]
  weights: list[list[float]] = dataclasses.field(default_factory=list)

  def __str__(self) -> str:
    """Returns the links in Pharaoh's format: `0-0 1-2`, the source first."""
    return " ".join(f"{source}-{target}" for source, target in self.links)


class Separator(NamedTuple):
  """The text between two parts of a line, on either side."""

  source: str
  target: str


def join_alignments(
  parts: Sequence[Alignment], separators: Sequence[Separator]
) -> Alignment:
  """Returns the alignment of parts that follow each other on both sides.

  A word that was cut in two becomes one again. Parts do not attend to each
  other. Above `_MOST_WEIGHTS`, attention is left out, because it grows with the
  square of the line.

  Args:
    parts: one or more.
    separators: between each and the next.
  """
  if len(parts) == 1:
    return parts[0]
  sources: list[str] = []
  targets: list[str] = []
  links: set[Link] = set()
  places = []
  for part, separator in zip(parts, [None, *separators], strict=True):
    source, target = (
      _append(words, more, separator and separator[side])
      for side, (words, more) in enumerate(
        ((sources, part.source_words), (targets, part.target_words))
      )
    )
    links |= {Link(source + s, target + t) for s, t in part.links}
    places.append((source, target))
  weights = np.zeros([0, 0])
  are_there = all(len(part.weights) == len(part.target_words) for part in parts)
  if are_there and len(sources) * len(targets) <= _MOST_WEIGHTS:
    weights = np.zeros([len(targets), len(sources)])
    for part, (source, target) in zip(parts, places, strict=True):
      found = np.asarray(part.weights).reshape(
        len(part.target_words), len(part.source_words)
      )
      rows, columns = found.shape
      weights[target : target + rows, source : source + columns] += found
    # Both parts of a word that was cut attend to something.
    weights /= np.maximum(weights.sum(1, keepdims=True), 1)
  return Alignment(sources, targets, sorted(links), weights.tolist())


def _append(words: list[str], more: Sequence[str], joint: str | None) -> int:
  """Adds words to others; returns the number that the first of them has."""
  if words and more and joint is not None:
    together = words[-1] + joint + more[0]
    if len(words_of(together)) == 1:
      words[-1] = together
      words += more[1:]
      return len(words) - len(more)
  words += more
  return len(words) - len(more)


class TranslatedPiece(NamedTuple):
  """A line, or a part of one, with a translation.

  Attributes:
    source: text of the source.
    source_ids: ending in EOS.
    target: text of the translation.
    target_ids: without EOS.
    target_spans: as in `Words.of_target`.
  """

  source: str
  source_ids: Sequence[int]
  target: str
  target_ids: Sequence[int]
  target_spans: Sequence[Span] | None = None


class Aligner:
  """Aligns translations; safe to call from several threads.

  Attributes:
    reader: reader of the attention.
    rule: where in it alignments are read.
  """

  def __init__(self, reader: AttentionReader, rule: AlignmentRule) -> None:
    rule.check(reader.transformer.params.decoder_layers)
    self.reader = reader
    self.rule = rule

  def align(self, pieces: Sequence[TranslatedPiece]) -> list[Alignment]:
    """Returns the alignment of each.

    Raises:
      InputError: if the memory does not suffice.
    """
    crosses = self.reader.read_cross(
      [(piece.source_ids, [*piece.target_ids, EOS_ID]) for piece in pieces]
    )
    return [
      self._align(piece, cross)
      for piece, cross in zip(pieces, crosses, strict=True)
    ]

  def _align(self, piece: TranslatedPiece, cross: np.ndarray) -> Alignment:
    tokenizers = self.reader.tokenizers
    source = Words.of_source(tokenizers.source, piece.source)
    target = Words.of_target(
      tokenizers.target, piece.target, piece.target_ids, piece.target_spans
    )
    weights = piece_weights(self.rule, cross)
    links = link_words(word_weights(weights, source, target))
    attended = word_weights(cross.mean((0, 1))[:-1, :-1], source, target)
    return Alignment(source.texts(), target.texts(), links, attended.tolist())
