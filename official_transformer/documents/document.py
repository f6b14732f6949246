"""What a file with text in it is to a translator."""

from __future__ import annotations

import abc
import codecs
import html
import re
from collections.abc import Sequence

from official_transformer.decoding.requests import LineRequest
from official_transformer.errors import InputError

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_REFERENCE = re.compile(r"&(?:#\w+|\w+);")


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


def decode_text(content: bytes) -> str:
  """Returns a file's text.

  Raises:
    InputError: if it is not UTF-8.
  """
  try:
    return content.decode("utf-8")
  except UnicodeDecodeError as error:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
      raise InputError(
        "it is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"
      ) from None
    raise InputError(
      f"byte {error.start} is not UTF-8; convert the file, from Latin-1, say: "
      "iconv -f LATIN1 -t UTF-8"
    ) from None


def tagged_request(text: str) -> LineRequest:
  """Returns the request of a text that may hold tags such as `<i>`."""
  return LineRequest(text, markup=_TAG.search(text) is not None)


def as_in(source: str, translation: str) -> str:
  """Returns what a `tagged_request` gave, with `&` written as in its source.

  Subtitles and messages have tags, but seldom references such as `&amp;`, which
  `--markup=html` writes.
  """
  if _TAG.search(source) is None or _REFERENCE.search(source):
    return translation
  return html.unescape(translation)
