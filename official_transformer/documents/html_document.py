"""HTML files, of which all but text stays byte for byte."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Sequence

from official_transformer.decoding.requests import LineRequest
from official_transformer.documents.document import DecodedFile, Document
from official_transformer.text.html_text import parse_html
from official_transformer.text.markup import Run

# Where browsers look for it.
_HEAD = 1024
_CHARSET = re.compile(
  rb"""<meta[^>]*\bcharset\s*=\s*["']?\s*([\w.:-]+)
  | ^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)""",
  re.IGNORECASE | re.VERBOSE,
)

# What browsers read for a charset, most often one that has more characters
# (WHATWG, Encoding Standard, section 4.2). The keys are Python's names, and
# names that Python lacks.
_READ_AS = {
  "ascii": "cp1252",
  "iso8859-1": "cp1252",
  "iso8859-9": "cp1254",
  "iso8859-11": "cp874",
  "tis-620": "cp874",
  "gb2312": "gb18030",
  "gbk": "gb18030",
  "big5": "big5hkscs",
  "shift_jis": "cp932",
  "euc_kr": "cp949",
  "x-sjis": "cp932",
  "windows-31j": "cp932",
  "x-gbk": "gb18030",
  "windows-949": "cp949",
  "windows-874": "cp874",
  "iso-8859-8-i": "iso8859-8",
  # A declaration that is readable as ASCII is not in UTF-16.
  "utf-16": "utf-8",
  "utf-16-le": "utf-8",
  "utf-16-be": "utf-8",
}


class HtmlDocument(Document):
  """An HTML file, or a part of one.

  It is read and written in the charset that browsers take for the declared one,
  or else in UTF-8; characters that this lacks become references.
  """

  def __init__(self, content: bytes) -> None:
    declared = _CHARSET.search(content[:_HEAD])
    names = [name for name in declared.groups() if name] if declared else []
    charset = names[0].decode("ascii") if names else "utf-8"
    self._file = DecodedFile.of(content, charset, _read_as(charset))
    self._parts = parse_html(self._file.text)
    self.requests = [
      LineRequest(part.text, parts=[part])
      for part in self._parts
      if isinstance(part, Run)
    ]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(translations)
    parts = [
      part if isinstance(part, str) else next(rest) for part in self._parts
    ]
    return self._file.encoded("".join(parts), "xmlcharrefreplace")


def _read_as(charset: str) -> str | None:
  """Returns the charset that browsers read for one, if it is another."""
  name = charset.lower()
  with contextlib.suppress(LookupError):
    name = codecs.lookup(name).name
  return _READ_AS.get(name)
