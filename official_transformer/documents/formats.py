"""The formats of documents, and how one is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from official_transformer.documents.document import Document
from official_transformer.errors import InputError
from official_transformer.storage import file_system

AUTO, LINES = "auto", "lines"


class DocumentFormat(NamedTuple):
  """A format.

  Attributes:
    read: makes a document of a file's content.
    is_text: whether it can be written to a terminal.
    kept: what is not translated, if nobody says otherwise.
  """

  read: Callable[[bytes], Document]
  is_text: bool = True
  kept: re.Pattern[str] | None = None


# The libraries need not be installed.
def _read_html(content: bytes) -> Document:
  from official_transformer.documents.html_document import HtmlDocument

  return HtmlDocument(content)


def _read_subtitles(content: bytes) -> Document:
  from official_transformer.documents.subtitles import Subtitles

  return Subtitles(content)


def _read_messages(content: bytes) -> Document:
  from official_transformer.documents.messages import Messages

  return Messages(content)


def _read_word(content: bytes) -> Document:
  from official_transformer.documents.word import WordDocument

  return WordDocument(content)


FORMATS = {
  "html": DocumentFormat(_read_html),
  # Places on the screen, of some players.
  "srt": DocumentFormat(_read_subtitles, kept=re.compile(r"\{\\[^}]*\}")),
  # What a program fills: printf's, Python's and others' ways, and addresses.
  "po": DocumentFormat(
    _read_messages,
    kept=re.compile(
      r"%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lzjt])?[a-zA-Z%]"
      r"|\$?\{[^{}\s]*\}|https?://\S*[^\s.,;:!?)]"
    ),
  ),
  "docx": DocumentFormat(_read_word, is_text=False),
}
_BY_ENDING = {".htm": "html", ".xhtml": "html"} | {
  f".{name}": name for name in FORMATS
}


def format_of(path: str, file_format: str) -> DocumentFormat | None:
  """Returns the format of a file; None if it is lines.

  Args:
    path: of the file.
    file_format: the name of a format, `LINES`, or `AUTO`: the end of the path
      tells.
  """
  if file_format == AUTO:
    ending = os.path.splitext(path)[1].lower()
    file_format = _BY_ENDING.get(ending, LINES)
  return FORMATS.get(file_format)


def read_document(path: str, document_format: DocumentFormat) -> Document:
  """Reads a document.

  Raises:
    InputError: if it is not what its format says, or a library is missing.
  """
  try:
    return document_format.read(file_system.read_bytes(path))
  except ImportError as error:
    raise InputError(
      f"{path}: {error}: pip install 'official-transformer[documents]'"
    ) from None
  except InputError as error:
    raise InputError(f"{path}: {error}") from None
