"""Cutting lines that are longer than a model has learnt, where it hurts least.

A line is cut into halves at the end of the sentence nearest its middle, and
the halves again where they are still too long. Where a sentence is too long by
itself, it is cut at a comma, else at a space, else anywhere: nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# Quotes and brackets that belong to the sentence before them: straight
# ones, then typographic ones and those of East Asia.
_CLOSING = r"[\"')\]\u00bb\u201d\u2019\u300d\u300f\uff09]*"
# Full stop, exclamation and question mark of scripts that write no spaces;
# then their commas, colon and semicolon.
_WIDE_STOPS = r"[\u3002\uff61\uff01\uff1f]"
_WIDE_COMMAS = r"[\u3001\uff0c\uff1a\uff1b]"
# Where a line may be cut, the best first. A sentence that goes on in lower case
# may not have ended: He (too!) asked "Why?" and left.
_SENTENCE_END = re.compile(
  rf"[.!?\u2026]{_CLOSING}(?=\s)|{_WIDE_STOPS}{_CLOSING}"
)
_SURE_END = re.compile(
  rf"[.!?\u2026]{_CLOSING}(?=\s+[\"'(\u201e\u201c\u00ab]*"
  rf"[^\s\"'(\u201e\u201c\u00aba-z\u00df-\u00ff\u0430-\u044f])"
  rf"|{_WIDE_STOPS}{_CLOSING}"
)
_CLAUSE_END = re.compile(rf"[,;:]{_CLOSING}(?=\s)|{_WIDE_COMMAS}{_CLOSING}")
_WORD_END = re.compile(r"\S(?=\s)")


class Piece(NamedTuple):
  """A part of a line.

  Attributes:
    text: without blanks at either end.
    joint: what stands between this piece and the one before it: a space, or
      nothing.
  """

  text: str
  joint: str


def cut_line(
  text: str, length: Callable[[str], int], longest: int
) -> list[Piece]:
  """Cuts a line into pieces.

  Args:
    text: a line that is not blank.
    length: of a text, in tokens.
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
    head, tail = piece.text[:place].rstrip(), piece.text[place:]
    joint = " " if tail[:1].isspace() or head != piece.text[:place] else ""
    rest.append(Piece(tail.lstrip(), joint))
    rest.append(Piece(head, piece.joint))
  return pieces


def _best_cut(text: str) -> int:
  """Returns where to cut a text that neither begins nor ends with a blank."""
  middle = len(text) // 2
  # No crumbs: the full stop of "Mr." alone would leave one.
  margin = len(text) // 8
  for pattern in (_SURE_END, _SENTENCE_END, _CLAUSE_END, _WORD_END):
    ends = (match.end() for match in pattern.finditer(text, margin))
    best = min(ends, key=lambda end: abs(end - middle), default=0)
    if margin <= best <= len(text) - margin and 0 < best < len(text):
      return best
  return middle
