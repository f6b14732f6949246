"""The interface of documents to the translator."""

from __future__ import annotations

import abc
import codecs
import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from official_transformer.decoding.requests import LineRequest
from official_transformer.errors import InputError
from official_transformer.text.html_text import parse_html


class Document(abc.ABC):
  """A file, of which some text is translated, and all else stays.

  Attributes:
    requests: the texts to translate, in order.
  """

  requests: list[LineRequest]

  @abc.abstractmethod
  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts.

    Args:
      translations: one for each request. It is called once.
    """


class DecodedFile(NamedTuple):
  """A text file's content.

  Attributes:
    text: without the mark of its encoding.
    mark: byte order mark of the file; may be empty.
    charset: encoding of the file.
  """

  text: str
  mark: bytes
  charset: str

  @classmethod
  def of(
    cls, content: bytes, charset: str = "utf-8", read_as: str | None = None
  ) -> DecodedFile:
    """Reads a file.

    Args:
      content: bytes of the file.
      charset: name of the charset that the file declares. A byte order mark of
        UTF-8 outweighs it.
      read_as: the charset to try first.

    Raises:
      InputError: if it is not in that charset.
    """
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    content = content[len(mark) :]
    if mark:
      charset, read_as = "utf-8", None
    if read_as:
      with contextlib.suppress(UnicodeDecodeError):
        return cls(content.decode(read_as), mark, read_as)
    try:
      return cls(content.decode(charset), mark, charset)
    except LookupError:
      raise InputError(
        f"it says that it is in {charset:.40}, which is no charset known here"
      ) from None
    except UnicodeDecodeError as error:
      if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        remedy = "it is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"
      elif charset == "utf-8":
        remedy = (
          f"byte {error.start + len(mark)} is not UTF-8; convert it: "
          "iconv -f LATIN1 -t UTF-8, say"
        )
      else:
        remedy = (
          f"it says that it is in {charset}, but byte {error.start} is not; "
          "convert it to UTF-8, and have it say so"
        )
      raise InputError(remedy) from None

  def encoded(self, text: str, errors: str = "strict") -> bytes:
    """Returns another text as this file is written."""
    return self.mark + text.encode(self.charset, errors)


def tagged_request(text: str) -> LineRequest:
  """Returns the request of a text that may hold tags such as `<i>`.

  Subtitles and messages have them, but no references such as `&amp;`.
  """
  return LineRequest(text, parts=parse_html(text, has_references=False))
