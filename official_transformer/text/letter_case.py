"""Text in capitals or in title case, and the same text as a sentence.

Little training text is written so, and a vocabulary spells such words in many
short pieces: models translate them badly. They translate the sentence instead,
and the translation gets the letter case of the source.
"""

from __future__ import annotations

import enum
import re

# Letters of one word, across apostrophes: `don't`.
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_APOSTROPHE = re.compile("['\u2019]")
_LETTER = re.compile(r"[^\W\d_]")
# A letter that is neither inside a word nor after an apostrophe in one.
_WORD_BEGIN = re.compile(r"(?<![^\W_])(?<![^\W_]['\u2019])[^\W\d_]")
# Letters that have no capital of their own.
_WITHOUT_CAPITAL = frozenset("\u00df\u0138\u0149")
# Fewer words may be a name, or abbreviations.
_LEAST_TITLE_WORDS = 5
_LONGER_THAN_ABBREVIATIONS = 4


class LetterCase(enum.Enum):
  """A letter case of whole lines, other than that of a sentence."""

  CAPITALS = "capitals"
  TITLE = "title"

  def apply(self, text: str) -> str:
    """Returns a text in this case."""
    if self is LetterCase.CAPITALS:
      return text.upper()
    return _WORD_BEGIN.sub(lambda letter: letter[0].upper(), text)


def case_of(text: str) -> LetterCase | None:
  """Returns the letter case of a text; None is that of ordinary sentences.

  Names and abbreviations are ordinary. Capitals are a case of two words or
  more, one of which is longer than most abbreviations, or of three words. A
  title has five words or more, and all begin with a capital.
  """
  words = _WORD.findall(text)
  parts = [part for word in words for part in _APOSTROPHE.split(word)]
  letters = [c for c in "".join(parts) if c not in _WITHOUT_CAPITAL]
  if not all(c.isupper() or c.islower() for c in letters):
    return None  # Letters of a script without case.
  sizes = [len(word) for word in words]
  if all(c.isupper() for c in letters):
    is_case = sum(size > 1 for size in sizes) > 1 and (
      len(words) > 2 or max(sizes) >= _LONGER_THAN_ABBREVIATIONS
    )
    return LetterCase.CAPITALS if is_case else None
  is_title = (
    len(words) >= _LEAST_TITLE_WORDS
    and all(word[0].isupper() for word in words)
    and not any(c.isupper() for part in parts for c in part[1:])
  )
  return LetterCase.TITLE if is_title else None


def as_sentence(text: str) -> str:
  """Returns a text in small letters but for its first letter."""
  return _LETTER.sub(lambda letter: letter[0].upper(), text.lower(), count=1)
