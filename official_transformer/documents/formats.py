"""The formats of documents, and how one is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from official_transformer.documents.document import Document
from official_transformer.documents.html_document import HtmlDocument
from official_transformer.documents.messages import Messages
from official_transformer.documents.subtitles import Subtitles
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.text.text_files import COMPRESSED

AUTO, LINES = "auto", "lines"


class DocumentFormat(NamedTuple):
  """A format.

  Attributes:
    read: makes a document of a file's content.
    is_text: whether it can be written to a terminal.
    kept: pattern of text that is not translated by default.
  """

  read: Callable[[bytes], Document]
  is_text: bool = True
  kept: re.Pattern[str] | None = None


def _read_word(content: bytes) -> Document:
  # lxml need not be installed for the other formats.
  from official_transformer.documents.word import WordDocument

  return WordDocument(content)


_ADDRESS = r"https?://[^\s<>\"]*[^\s<>\".,;:!?)]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
# Placeholders that programs fill: ICU's, templates', shells' and Python's,
# printf's.
_FILLED = (
  r"\{\w+,\s*(?:plural|select|selectordinal),.*\}|\{\{.*?\}\}"
  r"|[$%]?\{[^{}\s]*\}|%<\w+>"
  r"|%(?:\(\w+\)|\d+\$)?[-+#0]*[\d*]*(?:\.[\d*]+)?(?:hh?|ll?|[Lzjt])?[a-zA-Z%]"
)
FORMATS = {
  "html": DocumentFormat(HtmlDocument, kept=re.compile(_ADDRESS)),
  # Places on the screen, of some players.
  "srt": DocumentFormat(Subtitles, kept=re.compile(r"\{\\[^}]*\}")),
  "po": DocumentFormat(Messages, kept=re.compile(f"{_FILLED}|{_ADDRESS}")),
  "docx": DocumentFormat(_read_word, is_text=False, kept=re.compile(_ADDRESS)),
}
_BY_ENDING = {".htm": "html", ".xhtml": "html"} | {
  f".{name}": name for name in FORMATS
}


def format_of(path: str, file_format: str) -> DocumentFormat | None:
  """Returns the format of a file; None if it is lines.

  Args:
    path: path of the file.
    file_format: the name of a format, `LINES`, or `AUTO`, which decides by the
      end of the path.
  """
  if file_format == AUTO:
    # The ending before that of a compression decides.
    path, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
      ending = os.path.splitext(path)[1]
    file_format = _BY_ENDING.get(ending, LINES)
  return FORMATS.get(file_format)


def read_document(path: str, document_format: DocumentFormat) -> Document:
  """Reads a document.

  Raises:
    InputError: if the content is not of its format, or a library is missing.
  """
  if path.lower().endswith(COMPRESSED):
    raise InputError(f"{path} is a document, and compressed: unpack it first")
  try:
    return document_format.read(file_system.read_bytes(path))
  except ImportError as error:
    raise InputError(
      f"{path}: {error}: pip install 'official-transformer[documents]'"
    ) from None
  except InputError as error:
    raise InputError(f"{path}: {error}") from None
