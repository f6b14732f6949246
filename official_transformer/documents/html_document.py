"""HTML files, of which all but text stays byte for byte."""

from __future__ import annotations

from collections.abc import Sequence

from official_transformer.decoding.requests import LineRequest
from official_transformer.documents.document import Document, decode_text
from official_transformer.text.html_text import parse_html
from official_transformer.text.markup import Run


class HtmlDocument(Document):
  """An HTML file, or a part of one."""

  def __init__(self, content: bytes) -> None:
    self._parts = parse_html(decode_text(content))
    # What divides runs is not within them: each is HTML by itself.
    self.requests = [
      LineRequest(part.markup, markup=True)
      for part in self._parts
      if isinstance(part, Run)
    ]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(translations)
    parts = [
      part if isinstance(part, str) else next(rest) for part in self._parts
    ]
    return "".join(parts).encode("utf-8")
