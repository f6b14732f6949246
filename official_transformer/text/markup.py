"""Text with markup in it, of which only the text is translated.

The names are those of localisation (XLIFF): an element lies over a part of a
text, such as `<b>`, and a placeholder stands at a place in it, such as `<img>`
or `{0}`.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_BLANK = " "
# Brackets and quotes: of English, German and French.
_PAIRS = {
  "(": ")",
  "[": "]",
  '"': '"',
  "'": "'",
  "\u201c": "\u201d",
  "\u201e": "\u201c",
  "\u00ab": "\u00bb",
}


class Element(NamedTuple):
  """An element over a part of a run: its two tags as they are written."""

  start: str
  end: str


class Placeholder(NamedTuple):
  """Something at a place in a run that is no text.

  Attributes:
    place: of the character that it stands before.
    markup: as it is written.
    elements: numbers of the elements that it is in, outermost first.
  """

  place: int
  markup: str
  elements: tuple[int, ...]


@dataclasses.dataclass
class Run:
  """Text that is translated together, and the markup in it.

  Attributes:
    text: without markup.
    elements: that lie over parts of it.
    within: of each character, numbers of the elements that it is in, outermost
      first.
    placeholders: in the order of their places.
    markup: all of it as it is written.
    is_html: whether characters such as `&` are written as references.
  """

  text: str = ""
  elements: list[Element] = dataclasses.field(default_factory=list)
  within: list[tuple[int, ...]] = dataclasses.field(default_factory=list)
  placeholders: list[Placeholder] = dataclasses.field(default_factory=list)
  markup: str = ""
  is_html: bool = False

  @property
  def has_text(self) -> bool:
    """Whether there is anything to translate."""
    return any(map(str.isalnum, self.text))

  def written(self, text: str) -> str:
    """Returns text as it is written in this run."""
    return html.escape(text, quote=False) if self.is_html else text


class RunBuilder:
  """Makes a run of its parts.

  Attributes:
    markup: of all parts so far.
  """

  def __init__(self, is_html: bool = False) -> None:
    self.markup = ""
    self._run = Run(is_html=is_html)
    self._open: list[tuple[int, int]] = []  # Numbers, and where they begin.

  def add_text(self, text: str) -> None:
    """Adds text within all elements that are open."""
    self._run.text += text
    within = tuple(number for number, _ in self._open)
    self._run.within += [within] * len(text)

  def add_placeholder(self, markup: str) -> None:
    """Adds what is no text."""
    within = tuple(number for number, _ in self._open)
    place = len(self._run.text)
    self._run.placeholders.append(Placeholder(place, markup, within))

  def open(self, element: Element) -> None:
    """Begins an element."""
    self._open.append((len(self._run.elements), len(self._run.text)))
    self._run.elements.append(element)

  def close(self) -> None:
    """Ends the innermost element; one without text is a placeholder."""
    number, start = self._open.pop()
    is_empty = start == len(self._run.text) and not any(
      number in placeholder.elements for placeholder in self._run.placeholders
    )
    if is_empty:
      self.add_placeholder("".join(self._run.elements[number]))

  def finish(self) -> list[str | Run]:
    """Returns the run, or its markup if there is nothing to translate."""
    self._run.markup = self.markup
    if self._run.has_text:
      return [self._run]
    return [self.markup] if self.markup else []


class _Part(NamedTuple):
  """A character of a run, or a placeholder."""

  written: str
  elements: tuple[int, ...]
  is_text: bool


def plain_run(line: str) -> Run:
  """Returns a run of text without markup."""
  return Run(line, within=[()] * len(line), markup=line)


def set_apart(run: Run, kept: re.Pattern[str] | None = None) -> Run:
  """Makes placeholders of what a pattern finds in the text of a run.

  Blanks and brackets around a placeholder belong to it, where the text would
  have none without it.
  """
  parts = []
  matches = kept.finditer(run.text) if kept else ()
  spans = iter([match.span() for match in matches if match[0]])
  start, end = next(spans, (len(run.text), len(run.text)))
  for place, part in _parts(run):
    if part.is_text and place == end:
      start, end = next(spans, (len(run.text), len(run.text)))
    if not part.is_text or place < start:
      parts.append(part)
    elif place == start:
      written = run.written(run.text[start:end])
      parts.append(_Part(written, part.elements, is_text=False))
  found = dataclasses.replace(run, text="", within=[], placeholders=[])
  for part in _with_surroundings(parts):
    if part.is_text:
      found.text += part.written
      found.within.append(part.elements)
    else:
      place = len(found.text)
      found.placeholders.append(Placeholder(place, part.written, part.elements))
  return found


def _parts(run: Run) -> Iterator[tuple[int, _Part]]:
  """Yields characters and placeholders in order, with their places."""
  rest = collections.deque(run.placeholders)
  for place, character in enumerate(run.text):
    while rest and rest[0].place == place:
      yield place, _Part(rest[0].markup, rest.popleft().elements, is_text=False)
    yield place, _Part(character, run.within[place], is_text=True)
  for placeholder in rest:
    yield (
      len(run.text),
      _Part(placeholder.markup, placeholder.elements, is_text=False),
    )


def _with_surroundings(parts: list[_Part]) -> list[_Part]:
  """Gives placeholders the blanks and brackets that are theirs alone.

  `See {0} now` is `See now` without `{0} `, `See {0}.` is `See.`, and
  `See ({0}).` likewise.
  """
  found: list[_Part] = []
  rest = collections.deque(parts)
  while rest:
    part = rest.popleft()
    if part.is_text:
      found.append(part)
      continue
    before, behind = _character(found, -1), _character(rest, 0)
    if behind and _PAIRS.get(before) == behind:
      found.pop()
      rest.popleft()
      part = part._replace(written=before + part.written + behind)
      before, behind = _character(found, -1), _character(rest, 0)
    if before == behind == _BLANK:
      rest.popleft()
      part = part._replace(written=part.written + _BLANK)
    elif before == _BLANK and behind and not behind.isalnum():
      found.pop()
      part = part._replace(written=_BLANK + part.written)
    found.append(part)
  return found


def _character(parts: Sequence[_Part], place: int) -> str:
  """Returns the character at a place, or nothing if there is none."""
  return parts[place].written if parts and parts[place].is_text else ""
