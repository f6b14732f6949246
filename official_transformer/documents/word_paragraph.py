"""A paragraph of a Word file as HTML, and back.

In the markup, formatting is an element `<b>`, a link `<a>`, and a range or the
field of a link `<i>`, each with an id; anything else without text is an
`<img>`, or a `<br>` if it divides text.
"""

from __future__ import annotations

import collections
import copy
import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml import etree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_FORMAT = re.compile(r'<b id="\d+">')
_TOKEN = re.compile(r"<(/?)([a-z]+)(?: id=\"(\d+)\")?>")
# Around runs, and translated with the paragraph.
_AROUND = frozenset(
  W + name
  for name in (
    *("hyperlink", "ins", "moveTo", "smartTag", "customXml", "bdo", "dir"),
    "sdt",
  )
)
_CONTENT = W + "sdtContent"
# Marks of a checker, and where pages ended last.
_DROPPED = frozenset(W + n for n in ("proofErr", "lastRenderedPageBreak"))
_DIVIDING = frozenset(W + name for name in ("tab", "br", "cr", "ptab"))
# Beginnings and ends of ranges that may be larger than a paragraph.
_BEGINS = ("RangeStart", "bookmarkStart")
_ENDS = ("RangeEnd", "bookmarkEnd")
_FIELD = W + "fldChar"


class _Part(NamedTuple):
  """The meaning of an id in a paragraph's markup.

  Attributes:
    elements: elements of the XML: formatting, a link without its text, or
      elements between text; for a range or a field, its beginning.
    run: run that such an element is alone in; None if it is in none.
    ends: ends of the range or field.
  """

  elements: list[etree._Element]
  run: etree._Element | None = None
  ends: Sequence[etree._Element] = ()


class Paragraph:
  """A paragraph as HTML; `replace` alone changes it.

  Attributes:
    markup: the paragraph as HTML for translation.
    has_text: whether there is any.
  """

  def __init__(self, element: etree._Element) -> None:
    self._element = element
    self._parts: list[_Part] = []
    # Numbers of formatting, by its XML, and how many characters have it.
    self._formats: dict[bytes, int] = {}
    self._lengths: collections.Counter[int] = collections.Counter()
    # Elements that stay before and after the text.
    self._first: list[etree._Element] = []
    self._last: list[etree._Element] = []
    self._field: list[etree._Element] = []
    self._depth = 0
    markup = _joined(self._written(element))
    if self._field:  # Never lost, whatever its marks.
      markup += f'<img id="{self._number(_Part(self._field))}">'
    self.has_text = bool(self._lengths)
    # Most text is in no element: it need not be aligned to have its format.
    self._usual = max(
      self._lengths, key=lambda number: self._lengths[number], default=0
    )
    usual = rf'<b id="{self._usual}">([^<]*)</b>'
    self.markup = re.sub(usual, r"\1", markup)

  def _written(self, parent: etree._Element) -> Iterator[str]:
    """Yields the markup of a paragraph's or a link's content."""
    ranges = self._ranges(parent)
    for child in parent:
      name = str(child.tag)
      if self._depth or child.find(_FIELD) is not None:
        yield from self._written_field(child)
      elif name == W + "pPr":
        self._first.insert(0, child)
      elif name.endswith(_BEGINS):
        if child in ranges:
          part = _Part([child], ends=[ranges[child]])
          yield f'<i id="{self._number(part)}">'
        else:
          self._first.append(child)
      elif name.endswith(_ENDS):
        if child in ranges.values():
          yield "</i>"
        else:
          self._last.append(child)
      elif name in _AROUND:
        around = copy.copy(child)
        content = _content(child)
        inner = _joined(self._written(content))
        for grandchild in list(_content(around)):
          _content(around).remove(grandchild)
        yield f'<a id="{self._number(_Part([around]))}">{inner}</a>'
      elif name == W + "r":
        yield from self._written_run(child)
      elif name not in _DROPPED:
        yield f'<img id="{self._number(_Part([child]))}">'

  def _written_field(self, child: etree._Element) -> Iterator[str]:
    """Yields a placeholder once a field is at its end."""
    self._field.append(child)
    self._depth += sum(field_steps(child, self._element))
    if self._depth > 0:
      return
    field, self._field, self._depth = self._field, [], 0
    if place := _link_text(field):
      part = _Part(field[:place], ends=field[-1:])
      inner = _joined(
        text for run in field[place:-1] for text in self._written_run(run)
      )
      yield f'<i id="{self._number(part)}">{inner}</i>'
    else:
      yield f'<img id="{self._number(_Part(field))}">'

  def _ranges(
    self, parent: etree._Element
  ) -> dict[etree._Element, etree._Element]:
    """Returns the ends of ranges by their beginnings.

    Ranges that cross others without being nested, extend beyond the parent, or
    begin or end inside a field, are left out.
    """
    found = {}
    is_open: list[etree._Element] = []
    depth = self._depth
    for child in parent:
      name = str(child.tag)
      step = sum(field_steps(child, self._element))
      if depth or step:
        depth += step
      elif name.endswith(_BEGINS):
        is_open.append(child)
      elif name.endswith(_ENDS):
        for place, start in reversed(list(enumerate(is_open))):
          if start.get(W + "id") == child.get(W + "id"):
            if place == len(is_open) - 1:
              found[start] = child
            del is_open[place:]
            break
    return found

  def _written_run(self, run: etree._Element) -> Iterator[str]:
    """Yields the text of a run, and its other content."""
    properties = run.find(W + "rPr")
    for child in run:
      if child.tag == W + "t":
        text = "".join(child.xpath("text()"))
        number = self._format(properties)
        if any(map(str.isalnum, text)):
          self._lengths[number] += len(text)
        yield f'<b id="{number}">{html.escape(text, quote=False)}</b>'
      elif child is not properties and child.tag not in _DROPPED:
        tag = "br" if child.tag in _DIVIDING else "img"
        yield f'<{tag} id="{self._number(_Part([child], run))}">'

  def _format(self, properties: etree._Element | None) -> int:
    """Returns the number of some formatting; equal ones have the same."""
    key = b"" if properties is None else etree.tostring(properties)
    if key not in self._formats:
      elements = [] if properties is None else [properties]
      self._formats[key] = self._number(_Part(elements))
    return self._formats[key]

  def _number(self, part: _Part) -> int:
    """Returns a new id for content that is no text."""
    self._parts.append(part)
    return len(self._parts) - 1

  def replace(self, markup: str) -> None:
    """Writes a translation in the place of the text."""
    for child in list(self._element):
      self._element.remove(child)
    self._element.extend(self._first)
    parents, formats = [self._element], [self._usual]
    ranges: list[int] = []
    tokens = list(_TOKEN.finditer(markup))
    # How often a range is still to be begun, as it may be in several pieces.
    pieces = collections.Counter(
      int(match[3]) for match in tokens if match[2] == "i" and match[3]
    )
    begun: set[int] = set()
    end = 0
    for match in tokens:
      self._add_text(parents[-1], formats[-1], markup[end : match.start()])
      end = match.end()
      is_end, tag, number = match[1], match[2], int(match[3] or 0)
      if is_end and tag == "i":
        number = ranges.pop()
        pieces[number] -= 1
        if not pieces[number]:  # The last one.
          parents[-1].extend(self._parts[number].ends)
      elif is_end:
        (formats if tag == "b" else parents).pop()
      elif tag == "b":
        formats.append(number)
      elif tag == "i":
        ranges.append(number)
        if number not in begun:
          begun.add(number)
          parents[-1].extend(self._parts[number].elements)
      elif tag == "a":
        (around,) = self._parts[number].elements
        parents[-1].append(copy.copy(around))
        parents.append(_content(parents[-1][-1]))
      else:
        self._add(parents[-1], self._parts[number])
    self._add_text(parents[-1], formats[-1], markup[end:])
    self._element.extend(self._last)

  def _add(self, parent: etree._Element, part: _Part) -> None:
    """Adds content that is no text."""
    if part.run is not None:
      properties = part.run.find(W + "rPr")
      parent = etree.SubElement(parent, part.run.tag, part.run.attrib)
      if properties is not None:
        parent.append(copy.copy(properties))
    parent.extend(part.elements)

  def _add_text(self, parent: etree._Element, number: int, text: str) -> None:
    """Adds a run of text in some format."""
    if not text:
      return
    run = etree.SubElement(parent, W + "r")
    run.extend(map(copy.copy, self._parts[number].elements))
    written = etree.SubElement(run, W + "t")
    written.text = html.unescape(text)
    written.set(_SPACE, "preserve")


def _content(around: etree._Element) -> etree._Element:
  """Returns the element that contains the runs of a link."""
  content = around.find(_CONTENT)
  return around if content is None else content


def _link_text(field: list[etree._Element]) -> int:
  """Returns where the text of a link begins among the runs of a field.

  Returns 0 for fields that are no links, or hold others.
  """
  if any(child.tag != W + "r" for child in field):
    return 0
  kinds = [
    mark.get(W + "fldCharType") for run in field for mark in run.iter(_FIELD)
  ]
  code = "".join(
    text
    for run in field
    for text in run.xpath(".//*[local-name()='instrText']/text()")
  )
  if kinds != ["begin", "separate", "end"] or "HYPERLINK" not in code:
    return 0
  for number, run in enumerate(field):
    for mark in run.iter(_FIELD):
      if mark.get(W + "fldCharType") == "separate":
        return number + 1
  return 0


def field_steps(
  element: etree._Element, paragraph: etree._Element
) -> Iterator[int]:
  """Yields 1 where a field of a paragraph begins, and -1 where one ends.

  Args:
    element: the paragraph, or an element in it.
    paragraph: the paragraph.
  """
  for mark in element.iter(_FIELD):
    # Marks inside a text box belong to another paragraph.
    if next(mark.iterancestors(W + "p")) is paragraph:
      yield {"begin": 1, "end": -1}.get(mark.get(W + "fldCharType"), 0)


def _joined(parts: Iterator[str]) -> str:
  """Joins markup; runs of one format that follow each other become one."""
  found: list[str] = []
  for part in parts:
    start = _FORMAT.match(part)
    if start and found and found[-1].startswith(start[0]):
      found[-1] = found[-1].removesuffix("</b>") + part[start.end() :]
    else:
      found.append(part)
  return "".join(found)
