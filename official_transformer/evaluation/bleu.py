"""BLEU as the official model reports it.

It is mteval-v14's international tokenization with doubling smoothing of empty
orders; figures of different variants differ by a point or more and must not be
compared.
"""

from __future__ import annotations

import collections
import functools
import math
import re
import sys
import unicodedata
from collections.abc import Sequence

MAX_ORDER = 4


@functools.lru_cache(maxsize=1)
def _tokenization_rules() -> tuple[tuple[re.Pattern[str], str], ...]:
  """Returns the patterns of mteval-v14's international tokenization."""

  def characters(category: str) -> str:
    return "".join(
      re.escape(chr(code))
      for code in range(sys.maxunicode)
      # Upstream's pattern does not count the backslash as punctuation; this
      # function reproduces upstream's figures.
      if unicodedata.category(chr(code))[0] == category and chr(code) != "\\"
    )

  punctuation, symbols = characters("P"), characters("S")
  return (
    (re.compile(rf"([^\d])([{punctuation}])"), r"\1 \2 "),
    (re.compile(rf"([{punctuation}])([^\d])"), r" \1 \2"),
    (re.compile(rf"([{symbols}])"), r" \1 "),
  )


def bleu_tokenize(text: str) -> list[str]:
  """Splits off punctuation that is not between digits, and all symbols.

  As in mteval-v14, a full stop after a number at the end of the line stays
  with the number.
  """
  for pattern, replacement in _tokenization_rules():
    text = pattern.sub(replacement, text)
  return text.split()


def ngrams(tokens: Sequence[str]) -> collections.Counter[tuple[str, ...]]:
  """Counts the n-grams of all orders up to the fourth."""
  return collections.Counter(
    tuple(tokens[i : i + order])
    for order in range(1, MAX_ORDER + 1)
    for i in range(len(tokens) - order + 1)
  )


def compute_bleu(
  references: Sequence[Sequence[str]], translations: Sequence[Sequence[str]]
) -> float:
  """Computes corpus BLEU of tokenized lines (Papineni et al. 2002).

  Args:
    references: one list of tokens for each line.
    translations: one list of tokens for each line.

  Returns:
    BLEU from 0 to 1. An order without any match counts as half a match the
    first time, a quarter the second, and so on; an order without any n-gram
    is left out of the product. Where there is no reference token, 0.
  """
  matches = [0] * MAX_ORDER
  possible = [0] * MAX_ORDER
  reference_length = translation_length = 0
  for reference, translation in zip(references, translations, strict=True):
    reference_length += len(reference)
    translation_length += len(translation)
    wanted, found = ngrams(reference), ngrams(translation)
    for ngram, count in found.items():
      matches[len(ngram) - 1] += min(count, wanted[ngram])
      possible[len(ngram) - 1] += count
  if not reference_length or not translation_length:
    return 0.0
  log_precision = 0.0
  smoothing = 1.0
  for matched, total in zip(matches, possible, strict=True):
    if matched:
      log_precision += math.log(matched / total)
    elif total:
      smoothing *= 2
      log_precision -= math.log(smoothing * total)
  ratio = translation_length / reference_length
  brevity = min(0.0, 1.0 - 1.0 / ratio)
  return math.exp(log_precision / MAX_ORDER + brevity)


def official_bleu(
  references: Sequence[str],
  translations: Sequence[str],
  case_sensitive: bool = False,
) -> float:
  """Computes the official model's BLEU.

  Args:
    references: lines of text.
    translations: as many lines.
    case_sensitive: whether case counts.

  Returns:
    BLEU from 0 to 100.

  Raises:
    ValueError: if the numbers of lines differ.
  """
  if not case_sensitive:
    references = [line.lower() for line in references]
    translations = [line.lower() for line in translations]
  return 100.0 * compute_bleu(
    [bleu_tokenize(line) for line in references],
    [bleu_tokenize(line) for line in translations],
  )
