"""Cutting lines into sentences, and where they are too long for a model.

A line that is longer than a model has learnt is cut into halves at the end of
the sentence nearest its middle, and the halves again where they are still too
long. Where a sentence is too long by itself, it is cut at a comma, else at a
space, else anywhere: nothing is lost.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from official_transformer.text.letter_case import LetterCase
from official_transformer.text.sentences import (
  CLOSING,
  WIDE_STOPS,
  sentence_ends,
)
from official_transformer.text.words import is_within_character

_WIDE_COMMAS = r"[\u3001\uff0c\uff1a\uff1b]"
# Where a line may be cut, if no sentence surely ends there. One that goes on in
# lower case may not have ended: He (too!) asked "Why?" and left.
_SENTENCE_END = re.compile(rf"[.!?\u2026]{CLOSING}(?=\s)|{WIDE_STOPS}{CLOSING}")
_CLAUSE_END = re.compile(rf"[,;:]{CLOSING}(?=\s)|{_WIDE_COMMAS}{CLOSING}")
_BLANKS = re.compile(r"\s+")
_WORD_END = re.compile(r"\S(?=\s)")


class Piece(NamedTuple):
  """A part of a line.

  Attributes:
    text: without blanks at either end.
    joint: text between this piece and the one before it: blanks, or nothing.
    case: letter case that its translation gets; None leaves it as it is.
  """

  text: str
  joint: str
  case: LetterCase | None = None


def cut_sentences(text: str) -> list[Piece]:
  """Cuts a line that is not blank into its sentences; none is blank.

  Tabs also divide text that is not sentences: cells of a table, a term and its
  explanation.
  """
  text = text.strip()
  pieces, joint = [], ""
  places = {0, *sentence_ends(text), len(text)}
  if "\t" in text:
    blanks = _BLANKS.finditer(text)
    places |= {match.start() for match in blanks if "\t" in match[0]}
  for start, end in itertools.pairwise(sorted(places)):
    part = text[start:end]
    joint += part[: len(part) - len(part.lstrip())]
    if part.strip():
      pieces.append(Piece(part.strip(), joint))
      joint = ""
  return pieces


def cut_line(
  text: str, length: Callable[[str], int], longest: int
) -> list[Piece]:
  """Cuts a line into pieces.

  Args:
    text: a line that is not blank.
    length: length of a text, in tokens.
    longest: most tokens of a piece; one character may have more.

  Returns:
    One piece or more, in order; none is blank.
  """
  pieces = []
  rest = [Piece(text.strip(), "")]
  while rest:
    piece = rest.pop()
    if len(piece.text) < 2 or length(piece.text) <= longest:
      pieces.append(piece)
      continue
    place = _best_cut(piece.text)
    head, tail = piece.text[:place].rstrip(), piece.text[place:].lstrip()
    joint = piece.text[len(head) : len(piece.text) - len(tail)]
    rest.append(Piece(tail, joint))
    rest.append(Piece(head, piece.joint))
  return pieces


def _best_cut(text: str) -> int:
  """Returns where to cut a text that neither begins nor ends with a blank."""
  middle = len(text) // 2
  # No crumbs: the full stop of "Mr." alone would leave one.
  margin = len(text) // 8
  for ends in _ends(text, margin):
    best = min(ends, key=lambda end: abs(end - middle), default=0)
    if margin <= best <= len(text) - margin and 0 < best < len(text):
      return best
  # A letter stays with its accents, and an emoji whole.
  places = range(middle, len(text))
  return next((n for n in places if not is_within_character(text, n)), middle)


def _ends(text: str, margin: int) -> Iterator[Iterable[int]]:
  """Yields places to cut a text behind a margin, the best kind first."""
  yield (end for end in sentence_ends(text) if end >= margin)
  for pattern in (_SENTENCE_END, _CLAUSE_END, _WORD_END):
    yield (match.end() for match in pattern.finditer(text, margin))
