"""Warnings about translations that need no knowledge of the language.

A warning is a guess, which shows the reader where to look.
"""

from __future__ import annotations

import collections
import re
import statistics
import unicodedata
from collections.abc import Iterator, Sequence

from official_transformer.evaluation.breakdowns import plain_words

COPIED = "copied"
REPETITION = "repetition"
LENGTH = "length"
UNFINISHED = "unfinished"
NUMBERS = "numbers"
EMPTY = "empty"
# Explanations in the report.
MEANINGS = {
  EMPTY: "there is no translation",
  COPIED: "most of the translation is words of the source",
  REPETITION: "a word or phrase comes again and again",
  LENGTH: "much longer or shorter for its source than the others are",
  UNFINISHED: "the model was still going on at its limit, or the source ends "
  "with a mark and the translation with none",
  NUMBERS: "the numbers of source and translation differ",
}

_MOST_COPIED = 0.7  # Of the translation's words.
_LEAST_COPIED = 4  # Fewer may be names.
# Times the usual ratio of characters; of so few, any ratio is usual.
_ODD_RATIO = 2.0
_LEAST_CHARACTERS = 12
# So often in a row, a word, or a phrase of up to so many words.
_TIMES_WORD, _TIMES_PHRASE, _PHRASE = 4, 3, 6
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def warnings_of(
  sources: Sequence[str],
  translations: Sequence[str],
  unfinished: Sequence[bool] | None = None,
) -> list[list[str]]:
  """Returns the warnings of each line.

  Args:
    sources: lines.
    translations: as many.
    unfinished: whether the model ended each translation at its limit; None if
      unknown.
  """
  ratio = _usual_ratio(sources, translations)
  return [
    list(_warnings(source, line, ratio, unfinished[n] if unfinished else None))
    for n, (source, line) in enumerate(zip(sources, translations, strict=True))
  ]


def _usual_ratio(sources: Sequence[str], translations: Sequence[str]) -> float:
  """Returns the middle of the ratios of characters."""
  ratios = [
    len(line) / len(source)
    for source, line in zip(sources, translations, strict=True)
    if len(source) >= _LEAST_CHARACTERS and line
  ]
  return statistics.median(ratios) if ratios else 1.0


def _warnings(
  source: str, line: str, ratio: float, unfinished: bool | None
) -> Iterator[str]:
  source, line = source.strip(), line.strip()
  if not source:
    return
  if not line:
    yield EMPTY
    return
  if _is_copied(source, line):
    yield COPIED
  if repeats(plain_words(line)) and not repeats(plain_words(source)):
    yield REPETITION
  expected = ratio * len(source)
  if max(len(line), expected) >= _LEAST_CHARACTERS and not (
    expected / _ODD_RATIO <= len(line) <= expected * _ODD_RATIO
  ):
    yield LENGTH
  if _is_mark(source[-1]) and not _is_mark(line[-1]):
    unfinished = unfinished is None or unfinished
  if unfinished:
    yield UNFINISHED
  if numbers_of(source) != numbers_of(line):
    yield NUMBERS


def _is_copied(source: str, line: str) -> bool:
  words = plain_words(line)
  if line == source:
    return len(words) >= 2
  if len(words) < _LEAST_COPIED:
    return False
  known = set(plain_words(source))
  return sum(word in known for word in words) >= _MOST_COPIED * len(words)


def repeats(words: Sequence[str]) -> bool:
  """Returns whether a word, or a phrase, follows itself too often."""
  for size in range(1, _PHRASE + 1):
    times = _TIMES_WORD if size == 1 else _TIMES_PHRASE
    run = 0
    for place in range(size, len(words)):
      run = run + 1 if words[place] == words[place - size] else 0
      if run >= size * (times - 1):
        return True
  return False


def numbers_of(text: str) -> collections.Counter[str]:
  """Returns the numbers in digits, without their separators."""
  found = (
    # Digits of any script; 1,000.5 and 1.000,5 are written for the same.
    "".join(str(unicodedata.digit(c)) for c in number if c.isdigit())
    for number in _NUMBER.findall(text)
  )
  return collections.Counter(found)


def _is_mark(character: str) -> bool:
  return unicodedata.category(character)[0] == "P"
