"""The places of words in a line.

A word ends at a blank. In scripts that write none between words, each character
is a word, with the marks that belong to it: finer than words, and everybody
cuts it alike.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from official_transformer.text.scripts import is_without_blanks

_JOINER = "\u200d"  # As in emoji of several people.
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


class Span(NamedTuple):
  """Characters of a line, from `start` up to `end`."""

  start: int
  end: int

  def of(self, text: str) -> str:
    """Returns the characters of a text in this span."""
    return text[self.start : self.end]


@functools.lru_cache(maxsize=1 << 16)
def stands_alone(character: str) -> bool:
  """Whether a character is a word by itself."""
  return is_without_blanks(character)


def is_mark(character: str) -> bool:
  """Whether a character is a vowel sign, an accent or a variation selector.

  They belong to the character before them.
  """
  return unicodedata.category(character)[0] == "M"


def is_within_character(text: str, place: int) -> bool:
  """Whether what is before and at a place is read as one character.

  The place is neither the beginning nor the end of the text.
  """
  return (
    is_mark(text[place])
    or _JOINER in text[place - 1 : place + 1]
    or text[place] in _SKIN_TONES
  )


def words_of(text: str) -> list[Span]:
  """Returns where the words of a line are."""
  return list(_words(text))


def _words(text: str) -> Iterator[Span]:
  start, alone = None, False
  for place, character in enumerate(text):
    if start is not None and is_mark(character):
      continue
    by_itself = stands_alone(character)
    if start is not None and (character.isspace() or alone or by_itself):
      yield Span(start, place)
      start = None
    if start is None and not character.isspace():
      start = place
    alone = by_itself
  if start is not None:
    yield Span(start, len(text))


def words_under(words: list[Span], spans: list[Span]) -> list[list[int]]:
  """Returns which words each of some spans has characters of.

  Args:
    words: result of `words_of`, in order.
    spans: spans in order.
  """
  found, first = [], 0
  for span in spans:
    while first < len(words) and words[first].end <= span.start:
      first += 1
    last = first
    while last < len(words) and words[last].start < span.end:
      last += 1
    found.append(list(range(first, last)))
  return found
