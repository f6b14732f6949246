"""Text in capitals or in title case, and the same text as a sentence.

Little training text is written so, and a vocabulary spells such words in many
short pieces: models translate them badly. They translate the sentence instead,
and the translation gets the letter case of the source.

Case is that of Unicode, without rules of languages: Turkish and Azeri, whose I
has another small letter, are not served.
"""

from __future__ import annotations

import enum
import itertools
import re

from official_transformer.text.sentences import sentence_ends

# The first letter of a word: neither after a letter, a digit or a mark that
# belongs to a letter, nor after an apostrophe or a soft hyphen.
_WORD_BEGIN = re.compile(r"(?<![\w'\u2019\u0300-\u036f\u00ad])\w")
# A word without digits; words with marks that are no letters are in parts.
_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
# Cherokee and Osage, whose ordinary text is in capitals.
_ALL_CAPITALS = re.compile(r"[\u13a0-\u13ff\uab70-\uabbf\U000104b0-\U000104ff]")
# Letters and digits in one word, as in X5.
_MIXED = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
# The first letter of a sentence, unless a digit comes before it.
_BEGINNING = re.compile(r"[\W_]*[^\W\d_]")
# Signs inside a list, or between two sentences.
_DIVIDING = re.compile(r"[,;:.!?](?=\s)")
# Letters that have no capital of their own: \u00df, \u0138, \u0149, \u00aa and
# \u00ba.
_WITHOUT_CAPITAL = frozenset("\u00df\u0138\u0149\u00aa\u00ba")
# Words of abbreviations are shorter.
_LEAST_LETTERS = 5
# Fewer words in title case may be a name. Other lists of names have no two
# words as short as articles, pronouns and prepositions are.
_LEAST_TITLE_WORDS = 5
_SHORT = 3


class LetterCase(enum.Enum):
  """A letter case of whole lines, other than that of a sentence."""

  CAPITALS = "capitals"
  TITLE = "title"

  def apply(self, text: str) -> str:
    """Returns a text in this case."""
    if self is LetterCase.CAPITALS:
      return text.upper()
    return _WORD_BEGIN.sub(lambda letter: letter[0].title(), text)


def case_of(text: str) -> LetterCase | None:
  """Returns the letter case of a text; None is that of ordinary sentences.

  Capitals: no small letters, and at least two words of two letters or more.
  One word has five letters or more, or there are three words without commas
  and without letters beside digits, so that abbreviations are ordinary text.

  Title case: five words or more, all with a capital, at least two of which
  have three letters or fewer; no commas or other signs between words, so that
  names, lists and addresses are ordinary text.
  """
  # Most text ends the search at its first or second word.
  if any(
    begin[0].islower() and begin[0] not in _WITHOUT_CAPITAL
    for begin in _WORD_BEGIN.finditer(text)
  ):
    return None
  letters = [c for c in text if c.isalpha() and c not in _WITHOUT_CAPITAL]
  if not letters or not all(c.isupper() or c.islower() for c in letters):
    return None  # None, or letters of a script without case.
  if _ALL_CAPITALS.search(text):
    return None
  words = _WORD.findall(text)
  sizes = [len(word) for word in words]
  if not any(c.islower() for c in letters):
    is_case = sum(size > 1 for size in sizes) > 1 and (
      max(sizes) >= _LEAST_LETTERS
      or not (len(words) < 3 or _MIXED.search(text) or "," in text)
    )
    return LetterCase.CAPITALS if is_case else None
  is_title = (
    len(words) >= _LEAST_TITLE_WORDS
    and sum(size <= _SHORT for size in sizes) > 1
    and not _DIVIDING.search(text)
    and _in_title_case(text)
  )
  return LetterCase.TITLE if is_title else None


def _in_title_case(text: str) -> bool:
  """Returns whether the first letter of each word is the only capital."""
  begins = [match.start() for match in _WORD_BEGIN.finditer(text)]
  inner = set(range(len(text))).difference(begins)
  # Some programs write capitals after apostrophes, too: It'S.
  return not any(text[n].islower() for n in begins) and not any(
    text[n].isupper() and text[n - 1] not in "'\u2019" for n in inner
  )


def as_sentence(text: str) -> str:
  """Returns a text in small letters, but for the first of each sentence."""
  ends = sorted({0, *sentence_ends(text), len(text)})
  return "".join(
    _one_sentence(text[start:end]) for start, end in itertools.pairwise(ends)
  )


def _one_sentence(text: str) -> str:
  # A small dotted I would be two characters.
  lower = text.replace("\u0130", "i").lower()
  beginning = _BEGINNING.match(lower)
  if beginning is None:
    return lower
  place = beginning.end() - 1
  return lower[:place] + lower[place].title() + lower[place + 1 :]
