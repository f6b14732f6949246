"""SubRip subtitles: numbers, times and line breaks stay."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

import srt

from official_transformer.documents.document import (
  Document,
  as_in,
  decode_text,
  tagged_request,
)
from official_transformer.errors import InputError

# Two people speak in one subtitle.
_SPEAKER = re.compile(r"\s*(?:<[^>]*>)*[-\u2013\u2014]")
# A tag, with the blanks in it, is part of a word.
_WORD = re.compile(r"(?:<[^>]*>|\S)+")
_TAG = re.compile(r"<[^>]*>")


class Subtitles(Document):
  """A `.srt` file.

  Lines of a subtitle are translated together, and the translation is divided
  into as many; where each is another speaker's, each by itself.
  """

  def __init__(self, content: bytes) -> None:
    self._has_mark = content.startswith(codecs.BOM_UTF8)
    text = decode_text(content.removeprefix(codecs.BOM_UTF8))
    self._line_end = "\r\n" if "\r\n" in text else "\n"
    try:
      self._subtitles = list(srt.parse(text.replace("\r\n", "\n")))
    except (srt.SRTParseError, ValueError) as error:
      raise InputError(f"it is not a .srt file: {error}") from None
    # Of each subtitle: groups of lines that are translated together.
    self._groups = [_groups(s.content.split("\n")) for s in self._subtitles]
    self._texts = [
      " ".join(line.strip() for line in group)
      for groups in self._groups
      for group in groups
    ]
    self.requests = [tagged_request(text) for text in self._texts]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(
      as_in(source, translation)
      for source, translation in zip(self._texts, translations, strict=True)
    )
    for subtitle, groups in zip(self._subtitles, self._groups, strict=True):
      subtitle.content = "\n".join(
        line for group in groups for line in _divide(next(rest), len(group))
      )
    text = srt.compose(self._subtitles, reindex=False, strict=False)
    mark = codecs.BOM_UTF8 if self._has_mark else b""
    return mark + text.replace("\n", self._line_end).encode("utf-8")


def _groups(lines: list[str]) -> list[list[str]]:
  """Groups lines that are translated together."""
  groups: list[list[str]] = []
  for line in lines:
    if groups and not _SPEAKER.match(line):
      groups[-1].append(line)
    else:
      groups.append([line])
  return groups


def _divide(text: str, count: int) -> list[str]:
  """Divides text into lines of about the same length; fewer if it is short."""
  words = _WORD.findall(text)
  lengths = [len(_TAG.sub("", word)) + 1 for word in words]
  lines: list[list[str]] = [[] for _ in range(count)]
  done = 0
  for word, length in zip(words, lengths, strict=True):
    # The line that the middle of the word is on.
    place = (done + length / 2) / sum(lengths)
    lines[min(int(place * count), count - 1)].append(word)
    done += length
  return [" ".join(line) for line in lines if line]
