"""Scores by sentence length and word frequency, and counts of n-grams.

Sentences are grouped by length or by their rarest word, and each group is
scored by itself; n-grams show the words and phrases that a system misses.
"""

from __future__ import annotations

import collections
import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from official_transformer.evaluation.bleu import ngrams
from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  corpus_scores,
  create_metrics,
)
from official_transformer.text.words import words_of

# The last group takes all that is longer.
LENGTHS = (0, 1, 6, 11, 16, 21, 31, 41, 61)
# Of the rarest word in the text that is counted; first come lines without any.
_NO_WORD = -1
FREQUENCIES = (_NO_WORD, 0, 1, 2, 5, 10, 50, 100, 1000)


class Group(NamedTuple):
  """Some of the sentences.

  Attributes:
    name: such as `6-10`.
    lines: how many there are.
    scores: scores of each system, by metric.
  """

  name: str
  lines: int
  scores: list[dict[str, float]]


class NgramCount(NamedTuple):
  """Counts of an n-gram in references and in systems.

  Attributes:
    ngram: words of the n-gram.
    in_references: how often it is in the references.
    matched: how many of these each system has.
    in_translations: how often it is in each system's lines.
  """

  ngram: str
  in_references: int
  matched: list[int]
  in_translations: list[int]


@functools.lru_cache(maxsize=1)
def _marks() -> str:
  """Returns punctuation and symbols."""
  characters = map(chr, range(0x10000))
  return "".join(c for c in characters if unicodedata.category(c)[0] in "PS")


def plain_words(text: str) -> list[str]:
  """Returns a line's words in small letters, without marks at their ends."""
  marks = _marks()
  words = (span.of(text).lower().strip(marks) for span in words_of(text))
  return [word for word in words if word]


def by_length(
  systems: Sequence[Sequence[str]],
  references: References,
  settings: MetricSettings,
) -> list[Group]:
  """Scores groups of as many words in the reference."""
  lengths = [len(plain_words(line)) for line in references.first]
  return _groups(lengths, LENGTHS, systems, references, settings)


def by_rarest_word(
  systems: Sequence[Sequence[str]],
  references: References,
  settings: MetricSettings,
  text: Iterable[str],
) -> list[Group]:
  """Scores groups of sentences by the frequency of their rarest word in a text.

  Args:
    systems: translations.
    references: their references, the words of the first of which count.
    settings: metrics, and their options.
    text: lines, such as the target side of the training text.
  """
  counts: collections.Counter[str] = collections.Counter()
  for line in text:
    counts.update(plain_words(line))
  rarest = [
    min((counts[word] for word in plain_words(line)), default=_NO_WORD)
    for line in references.first
  ]
  return _groups(rarest, FREQUENCIES, systems, references, settings)


def _groups(
  values: Sequence[int],
  edges: Sequence[int],
  systems: Sequence[Sequence[str]],
  references: References,
  settings: MetricSettings,
) -> list[Group]:
  groups = []
  for low, high in itertools.zip_longest(edges, edges[1:]):
    lines = [
      n
      for n, value in enumerate(values)
      if value >= low and (high is None or value < high)
    ]
    if not lines:
      continue
    part = References([[s[n] for n in lines] for s in references.streams])
    metrics = create_metrics(settings, part)
    scores = [
      {
        found.name: found.score
        for found in corpus_scores(metrics, [system[n] for n in lines], 0)
      }
      for system in systems
    ]
    groups.append(Group(_name(low, high), len(lines), scores))
  return groups


def _name(low: int, high: int | None) -> str:
  if low == _NO_WORD:
    return "no word"
  if high is None:
    return f"{low} or more"
  return str(low) if high == low + 1 else f"{low}-{high - 1}"


def by_order(
  systems: Sequence[Sequence[str]], references: References, tokenize: str
) -> list[list[float]]:
  """Returns, for each system, BLEU's precisions of 1- to 4-grams, percent."""
  streams: Any = references.for_sacrebleu()  # An absent one is None.
  metric = BLEU(tokenize=tokenize, references=streams)
  return [
    list(map(float, metric.corpus_score(list(system), None).precisions))
    for system in systems
  ]


def count_ngrams(
  systems: Sequence[Sequence[str]], references: Sequence[str]
) -> list[NgramCount]:
  """Counts the n-grams, of one to four words, of all lines."""
  in_references: collections.Counter[tuple[str, ...]] = collections.Counter()
  matched = [collections.Counter(in_references) for _ in systems]
  in_translations = [collections.Counter(in_references) for _ in systems]
  for number, reference in enumerate(references):
    of_reference = ngrams(plain_words(reference))
    in_references.update(of_reference)
    for place, system in enumerate(systems):
      of_system = ngrams(plain_words(system[number]))
      in_translations[place].update(of_system)
      matched[place].update(of_system & of_reference)
  known = set(in_references).union(*in_translations)
  return [
    NgramCount(
      " ".join(ngram),
      in_references[ngram],
      [counter[ngram] for counter in matched],
      [counter[ngram] for counter in in_translations],
    )
    for ngram in known
  ]


def most(
  counts: Iterable[NgramCount],
  value: Callable[[NgramCount], int],
  number: int = 15,
) -> list[NgramCount]:
  """Returns the n-grams with the largest values above 1.

  If one phrase contains another that comes as often, only the longer one is
  returned.
  """
  ranked = sorted(
    (c for c in counts if value(c) > 1),
    key=lambda c: (-value(c), -c.ngram.count(" "), c.ngram),
  )
  kept: list[NgramCount] = []
  for count in ranked:
    if len(kept) == number:
      break
    inside = f" {count.ngram} "
    if not any(
      inside in f" {other.ngram} " and value(other) == value(count)
      for other in kept
    ):
      kept.append(count)
  return kept
