"""The true word alignments of the demo grammar's sentences.

The grammar notes which German word stood for each English one; from the notes
of a single sentence follows which words of the two lines belong together. Where
a word occurs twice, links are possible but not sure, as annotators have it
(Och and Ney 2003).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from data_prep.demo import lexicon
from data_prep.demo.grammar import DemoGrammar
from official_transformer.decoding.alignment import Link

_MARKS = ".,?"


class AlignedPair(NamedTuple):
  """A sentence and its translation, word by word.

  Attributes:
    english: the source.
    german: the target.
    sure: links that hold.
    possible: links that may be meant, the sure ones among them.
  """

  english: str
  german: str
  sure: set[Link]
  possible: set[Link]


def second_words() -> set[str]:
  """Returns English words that belong to the one before them.

  Such as in `call up` and `on Sunday`.
  """
  times = itertools.chain(*lexicon.TIMES.values())
  found = {verb.particle for verb in _verbs()}
  found |= {word for english, _ in times for word in english.split()[1:]}
  return found | {"to"}


def draw_aligned(seed: int, count: int) -> list[AlignedPair]:
  """Draws sentences, each with its true alignment."""
  grammar = DemoGrammar(seed)
  pairs = []
  for _ in range(count):
    grammar.dictionary.clear()
    english, german = grammar.sentence()
    pairs.append(_align(english, german, grammar.dictionary))
  return pairs


def _align(english: str, german: str, dictionary: dict) -> AlignedPair:
  known = {
    source.lower(): [word for entry in targets for word in entry.split()]
    for source, targets in dictionary.items()
  }
  prefixes = {v.prefix for v in _verbs() if v.prefix}
  sources = [word.strip(_MARKS).lower() for word in english.split()]
  targets = [word.strip(_MARKS).lower() for word in german.split()]
  _divide_times(known, sources)
  possible = {
    Link(i, j)
    for i, source in enumerate(sources)
    for j, target in enumerate(targets)
    if any(
      _stands_for(word.lower(), target, prefixes)
      for word in known.get(source, [])
    )
  }
  sure = {
    link
    for link in possible
    if sources.count(sources[link.source]) == 1
    and targets.count(targets[link.target]) == 1
    and sum(other.target == link.target for other in possible) == 1
  }
  return AlignedPair(english, german, sure, possible)


def _divide_times(known: dict[str, list[str]], sources: list[str]) -> None:
  """Gives each word of a time, such as `on Sunday`, its own German one.

  The grammar notes all of them for the first.
  """
  for english, german in itertools.chain(*lexicon.TIMES.values()):
    words = english.lower().split()
    if len(words) == 2 and words in map(list, itertools.pairwise(sources)):
      first, second = words
      _, behind = german.split()
      known[first] = [w for w in known[first] if w.lower() != behind.lower()]
      known[second] = [behind]


def _stands_for(noted: str, target: str, prefixes: set[str]) -> bool:
  """Whether a German word is what the grammar noted, in some form."""
  if noted == target or (noted in ("in", "dem") and target == "im"):
    return True
  # Verb and prefix are noted apart, and written as one where they meet.
  return any(
    target == prefix + noted or (noted == prefix and target.startswith(prefix))
    for prefix in prefixes
  )


def _verbs() -> list:
  return [
    *lexicon.INTRANSITIVE_VERBS,
    *lexicon.TRANSITIVE_VERBS,
    *lexicon.PERSON_VERBS,
    *lexicon.DATIVE_VERBS,
    *lexicon.GIVING_VERBS,
  ]
