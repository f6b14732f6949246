"""SubRip subtitles, of which all but their text stays byte for byte."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from official_transformer.documents.document import (
  DecodedFile,
  Document,
  tagged_request,
)
from official_transformer.errors import InputError

_TIME = r"\d+:\d\d?:\d\d?(?:[,.:]\d+)?"
# Numbers may be missing, and blank lines be more or fewer.
_HEAD = re.compile(
  rf"^(?:[^\S\n]*\d[^\n]*\n)?[^\S\n]*{_TIME}[^\S\n]*-->[^\S\n]*{_TIME}"
  r"[^\n]*\n?",
  re.MULTILINE,
)
# Two people speak in one subtitle.
_SPEAKER = re.compile(r"\s*(?:<[^>]*>)*[-\u2013\u2014]")
# A tag, with the blanks in it, is part of a word.
_WORD = re.compile(r"(?:<[^>]*>|\S)+")
_TAG = re.compile(r"<[^>]*>")


class Subtitles(Document):
  """A `.srt` file.

  The lines of a subtitle are translated together, and the translation is
  divided into as many lines, or fewer if it is short; lines of different
  speakers are translated separately.
  """

  def __init__(self, content: bytes) -> None:
    self._file = DecodedFile.of(content)
    text = self._file.text.replace("\r\n", "\n")
    self._line_end = "\r\n" if "\r\n" in self._file.text else "\n"
    heads = list(_HEAD.finditer(text))
    if text.strip() and not heads:
      raise InputError(
        "it is not a .srt file: no line is like 00:00:01,000 --> "
        f"00:00:02,000; the first is {text.strip().splitlines()[0]!r:.60}"
      )
    # Text to keep, and groups of lines that are translated together.
    self._parts: list[str | list[str]] = []
    place = 0
    for head, following in itertools.pairwise([*heads, None]):
      assert head is not None
      end = following.start() if following else len(text)
      lines = text[head.end() : end].rstrip()
      self._parts.append(text[place : head.end()])
      for group in _groups(lines.split("\n")) if lines else []:
        self._parts += [group, "\n"]
      if lines:
        self._parts.pop()
      place = head.end() + len(lines)
    self._parts.append(text[place:])
    self.requests = [
      tagged_request(" ".join(line.strip() for line in part))
      for part in self._parts
      if not isinstance(part, str)
    ]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(translations)
    text = "".join(
      part
      if isinstance(part, str)
      else "\n".join(_divide(next(rest), len(part)))
      for part in self._parts
    )
    return self._file.encoded(text.replace("\n", self._line_end))


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
  whole = sum(lengths)
  lines: list[list[str]] = [[] for _ in range(count)]
  done = 0
  for word, length in zip(words, lengths, strict=True):
    # The line that the middle of the word is on.
    place = (done + length / 2) / whole
    lines[min(int(place * count), count - 1)].append(word)
    done += length
  return [" ".join(line) for line in lines if line]
