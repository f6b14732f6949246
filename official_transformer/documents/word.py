"""Word files: paragraphs are translated, their formatting comes back by words.

A `.docx` file is a ZIP archive of XML (ECMA-376, part 1, 17.3): paragraphs (p)
hold runs (r) of text (t), each with its formatting (rPr), and links around
runs. A paragraph becomes HTML whose elements stand for these, as
`--markup=html` translates it.
"""

from __future__ import annotations

import collections
import copy
import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml import etree

from official_transformer.decoding.requests import LineRequest
from official_transformer.documents.document import Document
from official_transformer.errors import InputError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MAIN = "word/document.xml"
_PARTS = re.compile(
  r"word/(document|(header|footer|footnotes|endnotes)\d*)\.xml"
)
_FORMAT = re.compile(r'<b id="\d+">')
_TOKEN = re.compile(r"<(/?)([a-z]+)(?: id=\"(\d+)\")?>")
# Around runs, and translated with the paragraph.
_AROUND = frozenset(_W + name for name in ("hyperlink", "ins", "smartTag"))
# Marks of a checker, and where pages ended last.
_DROPPED = frozenset(_W + n for n in ("proofErr", "lastRenderedPageBreak"))
_DIVIDING = frozenset(_W + name for name in ("tab", "br", "cr", "ptab"))
# What begins or ends something that may be larger than a paragraph.
_BEGINS = ("RangeStart", "bookmarkStart")
_ENDS = ("RangeEnd", "bookmarkEnd")
_FIELD = _W + "fldChar"


class WordDocument(Document):
  """A `.docx` file: its text, tables, headers, footers and notes.

  Fields, such as a table of contents, are left as they are: Word makes them
  anew.
  """

  def __init__(self, content: bytes) -> None:
    self._content = content
    self._parts = _read_parts(content)
    self._paragraphs = [
      paragraph
      for root in self._parts.values()
      for paragraph in _paragraphs(root)
    ]
    self.requests = [
      LineRequest(paragraph.markup, markup=True)
      for paragraph in self._paragraphs
    ]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    for paragraph, text in zip(self._paragraphs, translations, strict=True):
      paragraph.replace(text)
    found = io.BytesIO()
    with (
      zipfile.ZipFile(io.BytesIO(self._content)) as before,
      zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as after,
    ):
      for entry in before.infolist():
        data = before.read(entry)
        if entry.filename in self._parts:
          data = etree.tostring(
            self._parts[entry.filename],
            xml_declaration=True,
            encoding="UTF-8",
            standalone=True,
          )
        after.writestr(entry, data)
    return found.getvalue()


def _read_parts(content: bytes) -> dict[str, etree._Element]:
  """Returns the roots of the parts of a file that hold text, by their names.

  Raises:
    InputError: if it is no such file.
  """
  parser = etree.XMLParser(resolve_entities=False, no_network=True)
  try:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
      found = {
        name: etree.fromstring(archive.read(name), parser)
        for name in archive.namelist()
        if _PARTS.fullmatch(name)
      }
  except (zipfile.BadZipFile, zlib.error, RuntimeError) as error:
    # A RuntimeError: encrypted.
    raise InputError(f"it is not a .docx file: {error}") from None
  except etree.XMLSyntaxError as error:
    raise InputError(f"its XML is damaged: {error}") from None
  if _MAIN not in found:
    raise InputError(f"it is not a .docx file: there is no {_MAIN}")
  return found


def _paragraphs(root: etree._Element) -> Iterator[_Paragraph]:
  """Yields the paragraphs of a part that hold text outside of fields."""
  depth = 0
  for element in root.iter(_W + "p"):
    before = depth
    for mark in element.iter(_FIELD):
      # Those within a text box belong to another paragraph.
      if next(mark.iterancestors(_W + "p")) is element:
        depth += _field_step(mark)
    # A field may go on over paragraphs, as a table of contents does.
    if before == depth == 0:
      paragraph = _Paragraph(element)
      if paragraph.has_text:
        yield paragraph


class _Part(NamedTuple):
  """What an id of a paragraph's markup stands for.

  Attributes:
    elements: of the XML: formatting, a link without its text, or what stands
      between text.
    run: that such an element is alone in; None if it is in none.
  """

  elements: list[etree._Element]
  run: etree._Element | None = None


class _Paragraph:
  """A paragraph as HTML; what it is made of changes in `replace` alone.

  Attributes:
    markup: as it is translated.
    has_text: whether there is any.
  """

  def __init__(self, element: etree._Element) -> None:
    self._element = element
    self._parts: list[_Part] = []
    # Numbers of formatting, by its XML, and how many characters have it.
    self._formats: dict[bytes, int] = {}
    self._lengths: collections.Counter[int] = collections.Counter()
    # What stays before and behind the text.
    self._first: list[etree._Element] = []
    self._last: list[etree._Element] = []
    self._field: list[etree._Element] = []
    self._depth = 0
    markup = _joined(self._written(element))
    self.has_text = bool(self._lengths)
    # Most text is in no element: it need not be aligned to have its format.
    self._usual = max(
      self._lengths, key=lambda number: self._lengths[number], default=0
    )
    usual = rf'<b id="{self._usual}">([^<]*)</b>'
    self.markup = re.sub(usual, r"\1", markup)

  def _written(self, parent: etree._Element) -> Iterator[str]:
    """Yields the markup of what is in a paragraph, or in a link."""
    for child in parent:
      name = str(child.tag)
      if self._depth or child.find(_FIELD) is not None:
        yield from self._written_field(child)
      elif name == _W + "pPr":
        self._first.insert(0, child)
      elif name.endswith(_BEGINS):
        self._first.append(child)
      elif name.endswith(_ENDS):
        self._last.append(child)
      elif name in _AROUND:
        inner = _joined(self._written(child))
        around = copy.copy(child)
        for grandchild in list(around):
          around.remove(grandchild)
        yield f'<a id="{self._number(_Part([around]))}">{inner}</a>'
      elif name == _W + "r":
        yield from self._written_run(child)
      elif name not in _DROPPED:
        yield f'<img id="{self._number(_Part([child]))}">'

  def _written_field(self, child: etree._Element) -> Iterator[str]:
    """Yields a placeholder once a field is at its end."""
    self._field.append(child)
    self._depth += sum(map(_field_step, child.iterfind(_FIELD)))
    if not self._depth:
      yield f'<img id="{self._number(_Part(self._field))}">'
      self._field = []

  def _written_run(self, run: etree._Element) -> Iterator[str]:
    """Yields the text of a run, and what else it holds."""
    properties = run.find(_W + "rPr")
    for child in run:
      if child.tag == _W + "t":
        text = child.text or ""
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
    """Returns the id of what is no text."""
    self._parts.append(part)
    return len(self._parts) - 1

  def replace(self, markup: str) -> None:
    """Writes a translation in the place of the text."""
    for child in list(self._element):
      self._element.remove(child)
    self._element.extend(self._first)
    parents, formats = [self._element], [self._usual]
    end = 0
    for match in _TOKEN.finditer(markup):
      self._add_text(parents[-1], formats[-1], markup[end : match.start()])
      end = match.end()
      is_end, tag, number = match.groups()
      if is_end:
        (formats if tag == "b" else parents).pop()
      elif tag == "b":
        formats.append(int(number))
      elif tag == "a":
        (around,) = self._parts[int(number)].elements
        parents[-1].append(copy.copy(around))
        parents.append(parents[-1][-1])
      else:
        self._add(parents[-1], self._parts[int(number)])
    self._add_text(parents[-1], formats[-1], markup[end:])
    self._element.extend(self._last)

  def _add(self, parent: etree._Element, part: _Part) -> None:
    """Adds what is no text."""
    if part.run is not None:
      properties = part.run.find(_W + "rPr")
      parent = etree.SubElement(parent, part.run.tag, part.run.attrib)
      if properties is not None:
        parent.append(copy.copy(properties))
    parent.extend(part.elements)

  def _add_text(self, parent: etree._Element, number: int, text: str) -> None:
    """Adds a run of text in some format."""
    if not text:
      return
    run = etree.SubElement(parent, _W + "r")
    run.extend(map(copy.copy, self._parts[number].elements))
    written = etree.SubElement(run, _W + "t")
    written.text = html.unescape(text)
    written.set(_SPACE, "preserve")


def _field_step(mark: etree._Element) -> int:
  """Returns 1 where a field begins, and -1 where it ends."""
  return {"begin": 1, "end": -1}.get(mark.get(_W + "fldCharType"), 0)


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
