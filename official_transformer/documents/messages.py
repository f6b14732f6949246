"""Messages of a program in gettext's format; only new ones are translated.

The format is described in GNU gettext's manual, "The Format of PO Files".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from absl import logging

from official_transformer.documents.document import (
  DecodedFile,
  Document,
  tagged_request,
)
from official_transformer.errors import InputError

# Nothing but a line feed ends a line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEYWORD = re.compile(
  r"\s*(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s*\"(.*)\"\s*"
)
_STRING = re.compile(r"\s*\"(.*)\"\s*")
_CHARSET = re.compile(r"charset=([\w.:-]+)")
_ESCAPES = {
  **{"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f"},
  **{"v": "\v", "\\": "\\", '"': '"'},
}
_UNESCAPED = {**_ESCAPES, "?": "?", "'": "'"}
# One character by its name, or bytes by octal or hexadecimal digits.
_ESCAPE = re.compile(r"(?:\\(?:[0-7]{1,3}|x[0-9a-fA-F]+))+|\\(.)")
_ESCAPED = {character: f"\\{name}" for name, character in _ESCAPES.items()}


@dataclasses.dataclass
class _Field:
  """A text of an entry, such as `msgid`.

  Attributes:
    first: the number of its first line.
    end: end of the first line behind it.
    text: without escapes.
  """

  first: int
  end: int
  text: str


# The fields of an entry by their keywords, in order.
_Entry = dict[str, _Field]


class Messages(Document):
  """A `.po` file, whose messages without a translation are translated.

  Each line of a message is translated alone. Existing translations are kept,
  also fuzzy ones.
  """

  def __init__(self, content: bytes) -> None:
    self._file = DecodedFile.of(content)
    self._lines = _LINE.findall(self._file.text)
    entries = list(_entries(self._lines))
    _check_charset(entries)
    messages = [entry for entry in entries if entry["msgid"].text]
    self._missing = [entry for entry in messages if not any(_written(entry))]
    logging.info(
      "%d of %d messages have no translation yet",
      len(self._missing),
      len(messages),
    )
    # Lines without their blanks, in the order of the entries' texts.
    self.requests = [
      tagged_request(line.strip())
      for entry in self._missing
      for text in _sources(entry)
      for line in text.split("\n")
      if line.strip()
    ]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(translations)

    def whole(text: str) -> str:
      return "\n".join(
        line.replace(line.strip(), next(rest)) if line.strip() else line
        for line in text.split("\n")
      )

    lines = list(self._lines)
    for entry in self._missing:
      found = [whole(text) for text in _sources(entry)]
      forms = [key for key in entry if key.startswith("msgstr")]
      for number, key in enumerate(forms):
        # Languages without a plural have one form, for any number.
        text = found[-1 if number or len(forms) == 1 else 0]
        field = entry[key]
        lines[field.first] = _quoted(key, text, self._lines[field.first])
        lines[field.first + 1 : field.end] = [""] * (
          field.end - field.first - 1
        )
    return self._file.encoded("".join(lines))


def _entries(lines: Sequence[str]) -> Iterator[_Entry]:
  """Yields the entries of a file that are in use.

  Raises:
    InputError: at the first line that does not belong there.
  """
  entry: _Entry = {}
  field: _Field | None = None
  for number, line in enumerate(lines):
    if not line.strip() or line.lstrip().startswith("#"):
      field = None
    elif match := _KEYWORD.fullmatch(line):
      key, text = match.groups()
      is_new = key == "msgctxt" or (key == "msgid" and "msgid" in entry)
      if entry and is_new:
        yield _checked(entry)
        entry = {}
      field = _Field(number, number + 1, _unescaped(text))
      entry[key] = field
    elif (match := _STRING.fullmatch(line)) and field:
      field.text += _unescaped(match[1])
      field.end = number + 1
    else:
      raise InputError(
        f"it is not a .po file: line {number + 1} is no comment, no string and "
        f"no msgid or msgstr: {line.strip()!r:.60}"
      )
  if entry:
    yield _checked(entry)


def _checked(entry: _Entry) -> _Entry:
  """Returns an entry that has all that one needs.

  Raises:
    InputError: if something is missing.
  """
  first = next(iter(entry.values())).first + 1
  is_plural = "msgid_plural" in entry
  wanted = "msgstr[0]" if is_plural else "msgstr"
  for key in ("msgid", wanted):
    if key not in entry:
      raise InputError(f"the message in line {first} has no {key}")
  return entry


def _check_charset(entries: Sequence[_Entry]) -> None:
  """Refuses a file that declares another charset than UTF-8.

  Raises:
    InputError: with the command that converts it.
  """
  for entry in entries:
    if entry["msgid"].text or "msgstr" not in entry:
      continue
    declared = _CHARSET.search(entry["msgstr"].text)
    # Templates declare the charset CHARSET.
    if declared and declared[1].lower() not in ("utf-8", "utf8", "charset"):
      raise InputError(
        f"its charset is {declared[1]}; convert it: msgconv --to-code=UTF-8"
      )


def _written(entry: _Entry) -> Iterator[str]:
  """Yields the translations of an entry; empty ones are missing."""
  return (f.text for key, f in entry.items() if key.startswith("msgstr"))


def _sources(entry: _Entry) -> list[str]:
  """Returns the texts to translate of an entry: singular and plural."""
  return [entry[k].text for k in ("msgid", "msgid_plural") if k in entry]


def _unescaped(text: str) -> str:
  """Returns the text of what stands between quotes, as C has it."""

  def characters(match: re.Match[str]) -> str:
    if match[1]:
      return _UNESCAPED.get(match[1], match[0])
    digits = match[0][1:].split("\\")
    codes = [int(d[1:], 16) if d[0] == "x" else int(d, 8) for d in digits]
    try:
      return bytes(codes).decode("utf-8")
    except ValueError:  # No bytes, or those of another charset.
      return match[0]

  return _ESCAPE.sub(characters, text)


def _escaped(character: str) -> str:
  if character in _ESCAPED:
    return _ESCAPED[character]
  is_control = character < " " or character == "\x7f"
  return f"\\{ord(character):03o}" if is_control else character


def _quoted(key: str, text: str, line: str) -> str:
  """Returns the lines of a field.

  Args:
    key: keyword of the field.
    text: text of the field.
    line: the earlier line, whose line ends are kept.
  """
  end = line[len(line.rstrip("\r\n")) :] or "\n"
  pieces = _LINE.findall(text) or [""]
  quoted = ['"' + "".join(map(_escaped, piece)) + '"' for piece in pieces]
  if len(quoted) > 1:
    quoted.insert(0, '""')
  return f"{key} {end.join(quoted)}{end}"
