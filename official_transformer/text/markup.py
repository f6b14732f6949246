"""Text with markup in it, of which only the text is translated.

The names are those of localisation (XLIFF): an element such as `<b>` covers a
part of a text, and a placeholder such as `<img>` or `{0}` is at a place in it.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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

# Numbers of the elements that something is in, outermost first.
Elements = tuple[int, ...]


class Element(NamedTuple):
  """An element over a part of a run: its two tags as they are written."""

  start: str
  end: str


class Part(NamedTuple):
  """Text of a run in the same elements, or a placeholder.

  Attributes:
    written: text without markup, or a placeholder such as `<img>`, as it is in
      the source.
    elements: elements that it is in.
    is_text: whether it is text.
    blanks: blanks that set a placeholder apart from the text beside it, and are
      not in the text itself.
  """

  written: str
  elements: Elements
  is_text: bool = True
  blanks: str = ""


@dataclasses.dataclass(frozen=True)
class Run:
  """Text that is translated together, and the markup in it.

  Every element holds a character that is no blank, or a placeholder.

  Attributes:
    parts: in order.
    elements: elements that cover parts.
    markup: the whole run as it is in the source, with its tags and references.
    is_html: whether characters such as `&` are written as references.
    margins: blanks before and behind all parts.
  """

  parts: tuple[Part, ...]
  elements: tuple[Element, ...]
  markup: str
  is_html: bool = False
  margins: tuple[str, str] = ("", "")

  @property
  def text(self) -> str:
    """The text alone."""
    return "".join(part.written for part in self.parts if part.is_text)

  @property
  def has_text(self) -> bool:
    """Whether there is anything to translate."""
    return any(map(str.isalnum, self.text))

  def written(self, text: str) -> str:
    """Returns a text in the spelling of this run, such as `&amp;` for `&`."""
    return html.escape(text, quote=False) if self.is_html else text


class RunBuilder:
  """Makes a run of its parts."""

  def __init__(self, is_html: bool = False) -> None:
    self._is_html = is_html
    self._parts: list[Part] = []
    self._elements: list[Element] = []
    self._markup: list[str] = []
    # Of each open element, its number, and how many parts are before it.
    self._open: list[tuple[int, int]] = []

  def add_text(self, text: str, markup: str | None = None) -> None:
    """Adds text within all elements that are open.

    Args:
      text: without markup.
      markup: the same text as it is in the source, if it differs, such as
        `&amp;` for `&`.
    """
    if text:
      self._parts.append(Part(text, self._within()))
    self._markup.append(text if markup is None else markup)

  def add_placeholder(self, markup: str) -> None:
    """Adds content that is no text."""
    self._parts.append(Part(markup, self._within(), is_text=False))
    self._markup.append(markup)

  def open(self, element: Element) -> None:
    """Begins an element."""
    self._open.append((len(self._elements), len(self._parts)))
    self._elements.append(element)
    self._markup.append(element.start)

  def close(self) -> None:
    """Ends the innermost element; one that holds nothing is a placeholder."""
    number, start = self._open.pop()
    element = self._elements[number]
    self._markup.append(element.end)
    inner = self._parts[start:]
    if all(part.is_text and not part.written.strip() for part in inner):
      del self._parts[start:]
      content = "".join(part.written for part in inner)
      whole = f"{element.start}{content}{element.end}"
      self._parts.append(Part(whole, self._within(), is_text=False))

  def finish(self) -> Run:
    """Returns the run; all elements are closed."""
    return Run(
      tuple(self._parts),
      tuple(self._elements),
      "".join(self._markup),
      self._is_html,
    )

  def _within(self) -> Elements:
    return tuple(number for number, _ in self._open)


def plain_run(text: str) -> Run:
  """Returns a run of text without markup."""
  return Run((Part(text, ()),), (), text)


def keep_out(run: Run, kept: re.Pattern[str] | None = None) -> Run:
  """Returns a run for translation: its text as if there were no markup.

  Matches of a pattern become placeholders. Adjacent placeholders are joined.
  Blanks and brackets that belong to a placeholder are left out of the text:
  `See {0} now` is `See now`, `See {0}.` is `See.`, and `See ({0}).` is, too.

  Args:
    run: the run with its markup.
    kept: pattern of text that is not translated; None if all is translated.
  """
  parts = list(_kept_apart(run, kept) if kept else run.parts)
  parts = _bracketed(_joined(_cut(parts)))
  before, parts = _margin(parts)
  behind, parts = _margin(parts[::-1])
  parts = _set_apart(_joined(parts[::-1], over_blanks=True))
  return dataclasses.replace(
    run, parts=tuple(_joined(parts)), margins=(before, behind[::-1])
  )


def _kept_apart(run: Run, kept: re.Pattern[str]) -> Iterator[Part]:
  """Yields parts, with placeholders for the matches of a pattern.

  A match across the border of an element becomes several placeholders.
  """
  found = [match.span() for match in kept.finditer(run.text) if match[0]]
  spans = iter(found)
  nowhere = (len(run.text), len(run.text) + 1)
  start, end = next(spans, nowhere)
  place = 0
  for part in run.parts:
    if not part.is_text:
      yield part
      continue
    stop = place + len(part.written)
    while place < stop:
      if place >= end:
        start, end = next(spans, nowhere)
      is_text = place < start
      until = min(stop, start if is_text else end)
      written = part.written[len(part.written) - (stop - place) :][
        : until - place
      ]
      if is_text:
        yield Part(written, part.elements)
      else:
        yield Part(run.written(written), part.elements, is_text=False)
      place = until


def _cut(parts: Iterable[Part]) -> list[Part]:
  """Returns parts whose text is in single characters beside placeholders.

  Blanks and brackets there can be taken away, and the rest stays whole.
  """
  found: list[Part] = []
  for part in parts:
    text = part.written
    pieces = [text]
    if part.is_text:
      first = len(text) - len(text.lstrip()) + 2
      last = max(len(text.rstrip()) - 2, first)
      pieces = [*text[:first], text[first:last], *text[last:]]
    found += [part._replace(written=piece) for piece in pieces if piece]
  return found


def _joined(parts: Iterable[Part], over_blanks: bool = False) -> list[Part]:
  """Joins placeholders that are side by side in the same elements.

  Args:
    parts: in order.
    over_blanks: whether placeholders with blanks between them are joined, too.
  """
  found: list[Part] = []
  # A placeholder, and parts that may be joined to it.
  group: list[Part] = []
  for part in parts:
    fits = bool(group) and group[0].elements == part.elements
    if fits and (not part.is_text or (over_blanks and _is_blank(part))):
      group.append(part)
      continue
    found += _as_one(group)
    group = []
    if part.is_text:
      found.append(part)
    else:
      group = [part]
  return found + _as_one(group)


def _as_one(group: list[Part]) -> list[Part]:
  """Joins placeholders and the blanks between them, without trailing blanks."""
  last = max((n for n, p in enumerate(group) if not p.is_text), default=-1)
  if last < 1:
    return group
  written = "".join(part.written for part in group[: last + 1])
  return [group[0]._replace(written=written), *group[last + 1 :]]


def _is_blank(part: Part) -> bool:
  return part.is_text and part.written.isspace()


def _bracketed(parts: list[Part]) -> list[Part]:
  """Gives placeholders the brackets or quotes that nothing else is in."""
  found: list[Part] = []
  rest = iter(range(len(parts)))
  for n in rest:
    part = parts[n]
    before = found[-1] if found else None
    behind = parts[n + 1] if n + 1 < len(parts) else None
    if (
      not part.is_text
      and before
      and behind
      and before.is_text
      and behind.is_text
      and before.elements == part.elements == behind.elements
      and _PAIRS.get(before.written) == behind.written
    ):
      found.pop()
      next(rest)
      part = part._replace(
        written=before.written + part.written + behind.written
      )
    found.append(part)
  return found


def _margin(parts: list[Part]) -> tuple[str, list[Part]]:
  """Returns the blanks at the beginning, and the rest."""
  number = sum(1 for _ in itertools.takewhile(_is_blank, parts))
  return "".join(part.written for part in parts[:number]), parts[number:]


def _set_apart(parts: list[Part]) -> list[Part]:
  """Takes away the blanks behind a placeholder, or those before it.

  Behind it only if there is a blank before it, too, or no text at all.
  """
  found: list[Part] = []
  last_text: Part | None = None
  place = 0
  while place < len(parts):
    part = parts[place]
    place += 1
    if part.is_text:
      last_text = part
      found.append(part)
      continue
    blanks = ""
    if last_text is None or _is_blank(last_text):
      while place < len(parts) and _is_outside(parts[place], part):
        blanks += parts[place].written
        place += 1
    if not blanks:
      most = _blanks_to_leave(parts[place] if place < len(parts) else None)
      while len(blanks) < most and found and _is_outside(found[-1], part):
        blanks = found.pop().written + blanks
    found.append(part._replace(blanks=blanks))
  return found


def _blanks_to_leave(behind: Part | None) -> float:
  """Returns how many blanks before a placeholder go with it, at most.

  All of them at the end of a text; one before a mark, which is then where it
  would be without the placeholder.
  """
  if behind is None:
    return math.inf
  return 1 if behind.is_text and not behind.written[0].isalnum() else 0


def _is_outside(blank: Part, placeholder: Part) -> bool:
  """Returns whether something is a blank in no element that is not around."""
  return (
    _is_blank(blank)
    and placeholder.elements[: len(blank.elements)] == blank.elements
  )
