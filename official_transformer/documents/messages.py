"""Messages of a program, as gettext has them."""

from __future__ import annotations

from collections.abc import Sequence

import polib
from absl import logging

from official_transformer.documents.document import (
  Document,
  as_in,
  decode_text,
  tagged_request,
)
from official_transformer.errors import InputError


class Messages(Document):
  """A `.po` file, whose messages without a translation are translated.

  Each line of a message is translated by itself. Translations that are there,
  fuzzy ones too, stay.
  """

  def __init__(self, content: bytes) -> None:
    text = decode_text(content)
    if "msgid" not in text:
      raise InputError("it is not a .po file: there is no msgid")
    try:
      self._file = polib.pofile(text, encoding="utf-8")
    except (OSError, ValueError) as error:
      raise InputError(f"it is not a .po file: {error}") from None
    self._entries = [entry for entry in self._file if _is_missing(entry)]
    logging.info(
      "%d of %d messages have no translation yet",
      len(self._entries),
      len(self._file),
    )
    # Lines without their blanks, in the order of the entries' texts.
    self._texts = [
      line.strip()
      for entry in self._entries
      for text in _sources(entry)
      for line in text.split("\n")
      if line.strip()
    ]
    self.requests = [tagged_request(text) for text in self._texts]

  def translated(self, translations: Sequence[str]) -> bytes:
    """Returns the file with translations in the place of the texts."""
    rest = iter(
      as_in(source, translation)
      for source, translation in zip(self._texts, translations, strict=True)
    )

    def whole(text: str) -> str:
      return "\n".join(
        line.replace(line.strip(), next(rest)) if line.strip() else line
        for line in text.split("\n")
      )

    for entry in self._entries:
      found = [whole(text) for text in _sources(entry)]
      if entry.msgid_plural:
        last = max(entry.msgstr_plural)
        # Languages without a plural have one form, for any number.
        entry.msgstr_plural = {
          number: found[number > 0 or number == last]
          for number in entry.msgstr_plural
        }
      else:
        entry.msgstr = found[0]
    return (str(self._file).rstrip("\n") + "\n").encode()


def _is_missing(entry: polib.POEntry) -> bool:
  """Returns whether an entry has no translation, and is in use."""
  if entry.obsolete or not entry.msgid:
    return False
  if entry.msgid_plural:
    return not any(entry.msgstr_plural.values())
  return not entry.msgstr


def _sources(entry: polib.POEntry) -> list[str]:
  """Returns what is translated of an entry: its text, and its plural."""
  return [text for text in (entry.msgid, entry.msgid_plural) if text]
