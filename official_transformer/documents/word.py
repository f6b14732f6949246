"""Word files: paragraphs are translated, their formatting comes back by words.

A `.docx` file is a ZIP archive of XML (ECMA-376, part 1, 17.3): paragraphs (p)
have runs (r) of text (t), each with its formatting (rPr), and links around
runs. A paragraph becomes HTML with an element for each of these, which is
translated as by `--markup=html`.
"""

from __future__ import annotations

import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence

from absl import logging
from lxml import etree

from official_transformer.decoding.requests import LineRequest
from official_transformer.documents.document import Document
from official_transformer.documents.word_paragraph import (
  Paragraph,
  W,
  field_steps,
)
from official_transformer.errors import InputError
from official_transformer.text.html_text import parse_html

_MAIN = "word/document"
_PARTS = re.compile(r"word/(document|header|footer|footnotes|endnotes)\d*\.xml")
# They may hold text, too.
_LEFT_OUT = re.compile(r"word/(comments|charts|diagrams)\b.*\.xml")
_STRICT = "http://purl.oclc.org/ooxml/"
# Bytes of XML; larger files are refused, because no person writes them.
_MOST = 100_000_000


class WordDocument(Document):
  """A `.docx` file: its text, tables, headers, footers and notes.

  Fields other than links, such as a table of contents, are not translated,
  because Word updates them.
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
      LineRequest(paragraph.markup, parts=parse_html(paragraph.markup))
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
    InputError: if it is not a Word file.
  """
  parser = etree.XMLParser(resolve_entities=False, no_network=True)
  try:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
      parts = [i for i in archive.infolist() if _PARTS.fullmatch(i.filename)]
      if (size := sum(part.file_size for part in parts)) > _MOST:
        raise InputError(
          f"its text takes {size:,} bytes, more than {_MOST:,}: divide it"
        )
      if damaged := archive.testzip():
        raise InputError(f"{damaged} in it is damaged")
      left_out = {
        match[1]
        for name in archive.namelist()
        if (match := _LEFT_OUT.fullmatch(name))
      }
      if left_out:
        logging.info("not translated: %s", ", ".join(sorted(left_out)))
      found = {
        part.filename: etree.fromstring(archive.read(part), parser)
        for part in parts
      }
  except InputError:
    raise
  except (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, ValueError),
  ) as error:
    raise InputError(
      f"it is not a .docx file ({error}); save a .doc or .odt file as .docx"
    ) from None
  except RuntimeError:
    raise InputError("it is encrypted; save it without a password") from None
  except etree.XMLSyntaxError as error:
    raise InputError(f"its XML is damaged: {error}") from None
  if not any(name.startswith(_MAIN) for name in found):
    raise InputError(f"it is not a .docx file: there is no {_MAIN}.xml")
  if any(str(root.tag).startswith(f"{{{_STRICT}") for root in found.values()):
    raise InputError("it is Strict Open XML; save it as an ordinary .docx")
  return found


def _paragraphs(root: etree._Element) -> Iterator[Paragraph]:
  """Yields the paragraphs of a part that hold text outside of fields."""
  depth = 0
  for element in root.iter(W + "p"):
    before = depth
    for step in field_steps(element, element):
      depth = max(depth + step, 0)
    # A field may go on over paragraphs, as a table of contents does.
    if before == depth == 0:
      paragraph = Paragraph(element)
      if paragraph.has_text:
        yield paragraph
