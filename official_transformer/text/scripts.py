"""The script of a text, by its letters."""

from __future__ import annotations

import collections
import functools
import re
import sys
import unicodedata
from collections.abc import Mapping

# How the names of each script's letters begin, in Unicode.
SCRIPTS = {
  "arabic": ("ARABIC",),
  "armenian": ("ARMENIAN",),
  "bengali": ("BENGALI",),
  "cyrillic": ("CYRILLIC",),
  "devanagari": ("DEVANAGARI",),
  "ethiopic": ("ETHIOPIC",),
  "georgian": ("GEORGIAN",),
  "greek": ("GREEK",),
  "gujarati": ("GUJARATI",),
  "gurmukhi": ("GURMUKHI",),
  "han": ("CJK", "IDEOGRAPHIC"),
  "hangul": ("HANGUL",),
  "hebrew": ("HEBREW",),
  "japanese": (
    "CJK",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "KATAKANA-HIRAGANA",
  ),
  "kannada": ("KANNADA",),
  "khmer": ("KHMER",),
  "korean": ("HANGUL", "CJK"),
  "lao": ("LAO",),
  "latin": ("LATIN",),
  "malayalam": ("MALAYALAM",),
  "myanmar": ("MYANMAR",),
  "sinhala": ("SINHALA",),
  "tamil": ("TAMIL",),
  "telugu": ("TELUGU",),
  "thai": ("THAI",),
  "tibetan": ("TIBETAN",),
}

# Written without blanks between words.
WITHOUT_BLANKS = frozenset(
  ("han", "japanese", "khmer", "lao", "myanmar", "thai", "tibetan")
)
# How the names of letters begin that belong to such a script, and are in none
# of `SCRIPTS`.
_OTHERS = ("BOPOMOFO", "FULLWIDTH", "HALFWIDTH", "HANGZHOU", "YI")

# Of kana, or Hangul, from which on text is Japanese, or Korean, which are
# written in several scripts.
_MIXED_SHARE = 0.05  # Of letters.


def is_without_blanks(letter: str) -> bool:
  """Whether a letter's script writes no blanks between words."""
  first = unicodedata.name(letter, "").split(" ")[0]
  return first in _WITHOUT_BLANKS


class Script:
  """A script's letters."""

  def __init__(self, name: str) -> None:
    self._letters = _letters(SCRIPTS[name])

  def share(self, text: str) -> float:
    """Returns how many of the letters are of the script; 1 without any."""
    letters = _LETTERS.findall(text)
    if not letters:
      return 1.0
    return sum(letter in self._letters for letter in letters) / len(letters)


_WITHOUT_BLANKS = frozenset(_OTHERS).union(
  *(SCRIPTS[name] for name in WITHOUT_BLANKS)
)
# Letters alone: no digits, and no underscore.
_LETTERS = re.compile(r"[^\W\d_]")


@functools.lru_cache
def _letters(beginnings: tuple[str, ...]) -> frozenset[str]:
  """Returns all letters whose names begin with one of some words."""
  return frozenset(
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.name(character, "").split(" ")[0] in beginnings
  )


def script_of(letter: str) -> str:
  """Returns the name of a letter's script, of `SCRIPTS` if it is there."""
  first = unicodedata.name(letter, "unnamed").split(" ")[0]
  for name, beginnings in SCRIPTS.items():
    if first in beginnings and name not in ("japanese", "korean"):
      return name
  return first.lower()


def script_shares(characters: Mapping[str, int]) -> list[tuple[str, float]]:
  """Returns the scripts of the letters with their shares, most first.

  Args:
    characters: how often each occurs.
  """
  found: collections.Counter[str] = collections.Counter()
  for character, count in characters.items():
    if unicodedata.category(character)[0] == "L":
      found[script_of(character)] += count
  total = sum(found.values()) or 1
  return [(name, count / total) for name, count in found.most_common()]


def main_script(characters: Mapping[str, int]) -> str | None:
  """Returns the script that text is in, one of `SCRIPTS`; None without any.

  Args:
    characters: how often each occurs.
  """
  shares = dict(script_shares(characters))
  if shares.get("hiragana", 0) + shares.get("katakana", 0) > _MIXED_SHARE:
    return "japanese"
  if shares.get("hangul", 0) > _MIXED_SHARE:
    return "korean"
  return next((name for name in shares if name in SCRIPTS), None)
