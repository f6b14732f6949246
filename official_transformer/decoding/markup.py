"""Puts markup back into a translation, by word alignments.

A word of a translation is in the elements that its source word is in. An
element whose words are not side by side is written several times. One that no
word is in stands empty where it was, and placeholders stay with their words. So
all markup is there, and well-formed.
"""

from __future__ import annotations

import collections
import enum
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from official_transformer.decoding.alignment import Alignment
from official_transformer.text.markup import Placeholder, Run
from official_transformer.text.words import Span, words_of

# Numbers of elements, outermost first.
Elements = tuple[int, ...]


class _Where(enum.IntEnum):
  """A place at a word, which is marks, its core of letters, and marks."""

  BEFORE_WORD = 0
  BEFORE_CORE = 1
  BEHIND_CORE = 2
  BEHIND_WORD = 3


class _Segment(NamedTuple):
  """A part of what is written, and the elements that it is in."""

  markup: str
  elements: Elements


def put_back(run: Run, translation: str, alignment: Alignment) -> str:
  """Returns a run's translation with the run's elements and placeholders.

  Args:
    run: the source.
    translation: its text.
    alignment: which of its words come from which of the run's text.
  """
  placement = _Placement(run, translation, alignment)
  if not placement.targets:  # There is no word for elements to be around.
    return run.markup
  return _written(run, placement.segments())


# What stands at the words of a translation.
_Slots = dict[tuple[int, _Where], list[_Segment]]


class _Placement:
  """Where the words of a translation are in the elements of its source.

  Attributes:
    sources: the words of the source.
    targets: the words of the translation.
    origins: of each of these, the number of the source word that it is aligned
      with, or None.
  """

  def __init__(self, run: Run, translation: str, alignment: Alignment) -> None:
    self._run = run
    self._text = translation.strip()
    self.sources = words_of(run.text)
    self.targets = words_of(self._text)
    self.origins: list[int | None] = [None] * len(self.targets)
    # A model's form of text, such as NFKC, may cut it into other words.
    of_sources = _scaled(len(alignment.source_words), len(self.sources))
    of_targets = _scaled(len(alignment.target_words), len(self.targets))
    for link in alignment.links:
      self.origins[of_targets[link.target]] = of_sources[link.source]

  def segments(self) -> list[_Segment]:
    """Returns all that is written, in its order."""
    run, text = self._run, self._text
    elements = self._elements_of_targets()
    slots: _Slots = collections.defaultdict(list)
    first, last = [], []
    placeholders = [*run.placeholders, *self._lost(elements)]
    for placeholder in sorted(placeholders, key=lambda p: p.place):
      segment = _Segment(placeholder.markup, placeholder.elements)
      if placeholder.place == 0:
        first.append(segment)
      elif placeholder.place == len(run.text):
        last.append(segment)
      else:
        word, where = self._slot(placeholder.place)
        markup = _set_apart(segment.markup, where)
        slots[word, where].append(segment._replace(markup=markup))
    found = [*first, _Segment(self._margin(0), ())]
    for number, (span, within) in enumerate(
      zip(self.targets, elements, strict=True)
    ):
      marks = _marks_apart(span.of(text))
      for where, part, its in zip(_Where, marks, within, strict=False):
        found += slots[number, where]
        if part:
          found.append(_Segment(run.written(part), its))
      found += slots[number, _Where.BEHIND_WORD]
      if number + 1 < len(self.targets):
        gap = text[span.end : self.targets[number + 1].start]
        both = _common(within[-1], elements[number + 1][0])
        found.append(_Segment(gap, both))
    return [*found, _Segment(self._margin(1), ()), *last]

  def _margin(self, side: int) -> str:
    """Returns the blanks before or behind the source."""
    text = self._run.text
    start = len(text) - len(text.lstrip())
    return text[len(text.rstrip()) :] if side else text[:start]

  def _elements_of_targets(self) -> list[tuple[Elements, Elements, Elements]]:
    """Returns the elements of each word: of marks before, of it, and behind."""
    sources = [self._elements_of_source(span) for span in self.sources]
    cores = self._cores([core for _, core, _ in sources])
    found = []
    for number, origin in enumerate(self.origins):
      core = cores[number]
      before = cores[number - 1] if number else ()
      behind = cores[number + 1] if number + 1 < len(cores) else ()
      first, last = _common(before, core), _common(core, behind)
      if origin is not None:
        own_first, _, own_last = sources[origin]
        first = first if own_first is None else own_first
        last = last if own_last is None else own_last
      found.append((first, core, last))
    return found

  def _cores(self, of_sources: Sequence[Elements]) -> list[Elements]:
    """Returns the elements of each word without the marks at its ends.

    A word that is aligned with none is in those elements that the words around
    it are both in.
    """
    known = [None if o is None else of_sources[o] for o in self.origins]
    found = []
    for number, its in enumerate(known):
      if its is None:
        before = next((k for k in known[:number][::-1] if k is not None), ())
        behind = next((k for k in known[number:] if k is not None), ())
        its = _common(before, behind)
      found.append(its)
    return found

  def _elements_of_source(
    self, span: Span
  ) -> tuple[Elements | None, Elements, Elements | None]:
    """Returns the elements of a word, and of marks before and behind it."""
    within = self._run.within[span.start : span.end]
    first, core, last = map(len, _marks_apart(span.of(self._run.text)))
    # A tag may be within a word: the elements of most of it count.
    most = collections.Counter(within[first : first + core]).most_common(1)
    return (
      within[first - 1] if first else None,
      most[0][0],
      within[first + core] if last else None,
    )

  def _lost(
    self, of_targets: Sequence[tuple[Elements, Elements, Elements]]
  ) -> list[Placeholder]:
    """Returns elements that nothing is in any more, as placeholders."""
    run = self._run
    lost = {number for its in run.within for number in its}
    lost -= {n for its in of_targets for part in its for n in part}
    lost -= {n for p in run.placeholders for n in p.elements}
    found = []
    for number in sorted(lost, reverse=True):  # Inner ones have larger numbers.
      if number not in lost:
        continue
      place = next(n for n, its in enumerate(run.within) if number in its)
      outer = run.within[place][: run.within[place].index(number)]
      found.append(Placeholder(place, "".join(run.elements[number]), outer))
      lost -= set(outer)
    return found

  def _slot(self, place: int) -> tuple[int, _Where]:
    """Returns where a placeholder goes, as the target word and the place at it.

    It stays with the word that it touches, else with the next one.

    Args:
      place: in the source; something is on either side.
    """
    text = self._run.text
    before = [span for span in self.sources if span.start < place]
    touches_next = not text[place].isspace()
    if before and before[-1].end >= place:
      touched = self._targets_of(len(before) - 1)
      if touched and not touches_next:
        return touched[-1], _Where.BEHIND_WORD
      if touched and any(map(str.isalnum, text[before[-1].start : place])):
        return touched[-1], _Where.BEHIND_CORE
      if touched:
        return touched[0], _Where.BEFORE_CORE
    if following := self._targets_of(len(before)):
      return following[0], _Where.BEFORE_WORD
    if preceding := self._targets_of(len(before) - 1):
      return preceding[-1], _Where.BEHIND_WORD
    share = len(before) / max(len(self.sources), 1)
    number = round(share * len(self.targets))
    if number < len(self.targets):
      return number, _Where.BEFORE_WORD
    return number - 1, _Where.BEHIND_WORD

  def _targets_of(self, source: int) -> list[int]:
    """Returns the words that are aligned with one of the source."""
    return [n for n, origin in enumerate(self.origins) if origin == source]


def _set_apart(markup: str, where: _Where) -> str:
  """Returns a placeholder with its blank, if it has one, on the right side."""
  bare = markup.strip(" ")
  if bare == markup:
    return markup
  return f"{bare} " if where is _Where.BEFORE_WORD else f" {bare}"


def _scaled(count: int, wanted: int) -> list[int]:
  """Returns for each of `count` things which of `wanted` is in its place."""
  return [n * wanted // count for n in range(count)]


def _marks_apart(word: str) -> tuple[str, str, str]:
  """Cuts a word into marks before it, itself, and marks behind it."""
  letters = [n for n, character in enumerate(word) if character.isalnum()]
  if not letters:
    return "", word, ""
  first, last = letters[0], letters[-1] + 1
  return word[:first], word[first:last], word[last:]


def _common(one: Elements, other: Elements) -> Elements:
  """Returns the outer elements that both are in."""
  length = 0
  while one[length : length + 1] == other[length : length + 1] != ():
    length += 1
  return one[:length]


def _written(run: Run, segments: Iterable[_Segment]) -> str:
  """Returns segments with the tags of their elements around them."""
  parts: list[str] = []
  is_open: Elements = ()
  for markup, elements in itertools.chain(segments, [_Segment("", ())]):
    kept = len(_common(is_open, elements))
    parts += [run.elements[number].end for number in reversed(is_open[kept:])]
    parts += [run.elements[number].start for number in elements[kept:]]
    parts.append(markup)
    is_open = elements
  return "".join(parts)
