"""Puts markup back into a translation, by word alignments.

A translated word is in the elements of its source word. An element whose words
are not adjacent is written several times. An element without any word is
written empty at its place, and placeholders stay with their words. So all
markup is in the translation, and well-formed.
"""

from __future__ import annotations

import bisect
import collections
import difflib
import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from official_transformer.decoding.alignment import Alignment
from official_transformer.text.markup import Elements, Part, Run
from official_transformer.text.words import Span, is_mark, words_of


class _Where(enum.IntEnum):
  """A place at a word, which is marks, its core of letters, and marks."""

  BEFORE_WORD = 0
  BEFORE_CORE = 1
  BEHIND_CORE = 2
  BEHIND_WORD = 3


class _Segment(NamedTuple):
  """A part of the output, and the elements around it.

  None are those that its neighbours have in common.
  """

  markup: str
  elements: Elements | None


class _Placeholder(NamedTuple):
  """A placeholder, and the index of the source character that follows it."""

  place: int
  part: Part


class _WordElements(NamedTuple):
  """The elements of a word: of marks before it, of itself, and behind it."""

  before: Elements
  core: Elements
  behind: Elements


# Markup at the words of a translation.
_Slots = dict[tuple[int, _Where], list[Part]]


def put_back(run: Run, translation: str, alignment: Alignment) -> str:
  """Returns a run's translation with the run's elements and placeholders.

  Args:
    run: the source, as returned by `keep_out`.
    translation: text of the translation.
    alignment: which of its words come from which of the run's text.
  """
  placement = _Placement(run, translation.strip(), alignment)
  if not placement.targets:  # There is no word for elements to be around.
    return run.markup
  before, behind = run.margins
  return f"{before}{_written(run, placement.segments())}{behind}"


class _Placement:
  """Places of translated words in the elements of their source."""

  def __init__(self, run: Run, translation: str, alignment: Alignment) -> None:
    self._run = run
    self._translation = translation
    self._source = run.text
    # Of each character of the source.
    self._within: list[Elements] = []
    self._placeholders: list[_Placeholder] = []
    for part in run.parts:
      if part.is_text:
        self._within += [part.elements] * len(part.written)
      else:
        place = len(self._within)
        self._placeholders.append(_Placeholder(place, part))
    self._sources = words_of(self._source)
    self.targets = words_of(translation)
    # Of each target word, its source word; of each of these, the target words.
    self._origins: list[int | None] = [None] * len(self.targets)
    self._aligned: dict[int, list[int]] = collections.defaultdict(list)
    # A model's form of text, such as NFKC, may cut it into other words.
    of_sources = _matched(
      alignment.source_words, [s.of(self._source) for s in self._sources]
    )
    of_targets = _matched(
      alignment.target_words, [s.of(translation) for s in self.targets]
    )
    for link in alignment.links:
      self._origins[of_targets[link.target]] = of_sources[link.source]
    for target, origin in enumerate(self._origins):
      if origin is not None:
        self._aligned[origin].append(target)

  def segments(self) -> list[_Segment]:
    """Returns all that is written, in its order."""
    elements = self._elements_of_targets()
    first: list[Part] = []
    last: list[Part] = []
    slots: _Slots = collections.defaultdict(list)
    placeholders = [*self._placeholders, *self._lost(elements)]
    for place, part in sorted(placeholders, key=lambda p: p.place):
      if place == 0:
        first.append(part)
      elif place == len(self._source):
        last.append(part)
      else:
        slots[self._slot(place)].append(part)
    found = [s for part in first for s in _before(part)]
    for number, span in enumerate(self.targets):
      found += self._word(number, span, elements[number], slots)
      if number + 1 < len(self.targets):
        gap = self._translation[span.end : self.targets[number + 1].start]
        found.append(_Segment(gap, None))
    return found + [s for part in last for s in _behind(part)]

  def _word(
    self, number: int, span: Span, within: _WordElements, slots: _Slots
  ) -> list[_Segment]:
    """Returns a word with the placeholders at it."""
    before, core, behind = (
      [_Segment(self._run.written(marks), its)] if marks else []
      for marks, its in zip(
        _marks_apart(span.of(self._translation)), within, strict=True
      )
    )
    return [
      *(s for p in slots[number, _Where.BEFORE_WORD] for s in _before(p)),
      *before,
      *(s for p in slots[number, _Where.BEFORE_CORE] for s in _before(p)),
      *core,
      *(s for p in slots[number, _Where.BEHIND_CORE] for s in _behind(p)),
      *behind,
      *(s for p in slots[number, _Where.BEHIND_WORD] for s in _behind(p)),
    ]

  def _elements_of_targets(self) -> list[_WordElements]:
    """Returns the elements of each word of the translation."""
    sources = [self._elements_of_source(span) for span in self._sources]
    cores = self._cores([core for _, core, _ in sources])
    found = []
    for number, origin in enumerate(self._origins):
      core = cores[number]
      before = cores[number - 1] if number else ()
      behind = cores[number + 1] if number + 1 < len(cores) else ()
      first, last = _common(before, core), _common(core, behind)
      if origin is not None:
        own_first, _, own_last = sources[origin]
        first = first if own_first is None else own_first
        last = last if own_last is None else own_last
      found.append(_WordElements(first, core, last))
    return found

  def _cores(self, of_sources: Sequence[Elements]) -> list[Elements]:
    """Returns the elements of each word without the marks at its ends.

    A word without alignment is in the elements that the nearest aligned words
    before and after it have in common.
    """
    known = [None if o is None else of_sources[o] for o in self._origins]
    before = _filled(known)
    behind = _filled(known[::-1])[::-1]
    return [
      _common(before[n], behind[n]) if its is None else its
      for n, its in enumerate(known)
    ]

  def _elements_of_source(
    self, span: Span
  ) -> tuple[Elements | None, Elements, Elements | None]:
    """Returns the elements of a word, and of marks before and behind it."""
    within = self._within[span.start : span.end]
    first, core, last = map(len, _marks_apart(span.of(self._source)))
    # A tag may be inside a word: the elements of most of its characters count.
    most = collections.Counter(within[first : first + core]).most_common(1)
    return (
      within[first - 1] if first else None,
      most[0][0],
      within[first + core] if last else None,
    )

  def _lost(self, of_targets: Iterable[_WordElements]) -> list[_Placeholder]:
    """Returns elements that nothing is in any more, as placeholders."""
    kept = {
      number
      for span, its in zip(self.targets, of_targets, strict=True)
      for text, part in zip(
        _marks_apart(span.of(self._translation)), its, strict=True
      )
      if text
      for number in part
    }
    kept |= {n for _, part in self._placeholders for n in part.elements}
    # By the elements that are lost, the place and the elements of the first
    # character that is in them.
    first: dict[int, tuple[int, Elements]] = {}
    seen: set[Elements] = set()
    for place, elements in enumerate(self._within):
      if elements not in seen:
        seen.add(elements)
        for number in elements:
          if number not in kept:
            first.setdefault(number, (place, elements))
    found = []
    # Inner ones have larger numbers: they bring the outer ones along.
    for number in sorted(first, reverse=True):
      if number in kept:
        continue
      place, elements = first[number]
      outer = elements[: elements.index(number)]
      tags = "".join(self._run.elements[number])
      found.append(_Placeholder(place, Part(tags, outer, is_text=False)))
      kept.update(outer)
    return found

  def _slot(self, place: int) -> tuple[int, _Where]:
    """Returns where a placeholder goes, as the target word and the place at it.

    It stays with the word that it touches, else with the next one.

    Args:
      place: in the source; something is on either side.
    """
    number = self._words_before(place)
    touched = self._aligned.get(number - 1)
    if touched and self._sources[number - 1].end >= place:
      marks = self._source[self._sources[number - 1].start : place]
      if self._source[place].isspace():
        return touched[-1], _Where.BEHIND_WORD
      if any(map(str.isalnum, marks)):
        return touched[-1], _Where.BEHIND_CORE
      return touched[0], _Where.BEFORE_CORE
    if following := self._aligned.get(number):
      return following[0], _Where.BEFORE_WORD
    if touched:
      return touched[-1], _Where.BEHIND_WORD
    share = number / max(len(self._sources), 1)
    target = round(share * len(self.targets))
    if target < len(self.targets):
      return target, _Where.BEFORE_WORD
    return target - 1, _Where.BEHIND_WORD

  def _words_before(self, place: int) -> int:
    """Returns how many words of the source begin before a place."""
    return bisect.bisect_left(self._sources, place, key=lambda s: s.start)


def _before(part: Part) -> list[_Segment]:
  """Returns the text of a placeholder before a word."""
  blank = [_Segment(part.blanks, None)] if part.blanks else []
  return [_Segment(part.written, part.elements), *blank]


def _behind(part: Part) -> list[_Segment]:
  """Returns the text of a placeholder behind a word."""
  blank = [_Segment(part.blanks, None)] if part.blanks else []
  return [*blank, _Segment(part.written, part.elements)]


def _filled(known: Sequence[Elements | None]) -> list[Elements]:
  """Replaces None by the last entry before it that is not None, or ()."""
  found: list[Elements] = []
  for its in known:
    before = found[-1] if found else ()
    found.append(before if its is None else its)
  return found


def _matched(theirs: Sequence[str], ours: Sequence[str]) -> list[int]:
  """Returns for each of some words which of others is in its place."""
  if len(theirs) == len(ours):
    return list(range(len(ours)))
  found: list[int] = []
  matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
  for _, start, end, other_start, other_end in matcher.get_opcodes():
    size = max(other_end - other_start, 1)
    for n in range(end - start):
      place = other_start + n * size // (end - start)
      found.append(min(place, len(ours) - 1))
  return found


def _marks_apart(word: str) -> tuple[str, str, str]:
  """Cuts a word into marks before it, itself, and marks behind it."""
  letters = [
    n
    for n, character in enumerate(word)
    # Vowel signs and accents belong to the letter before them.
    if character.isalnum() or is_mark(character)
  ]
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
  known = [*segments, _Segment("", ())]
  before = _filled([elements for _, elements in known])
  behind = _filled([elements for _, elements in known[::-1]])[::-1]
  for (markup, _), *its in zip(known, before, behind, strict=True):
    elements = _common(*its)
    kept = len(_common(is_open, elements))
    parts += [run.elements[number].end for number in reversed(is_open[kept:])]
    parts += [run.elements[number].start for number in elements[kept:]]
    parts.append(markup)
    is_open = elements
  return "".join(parts)
