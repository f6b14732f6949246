"""Fonts that have the characters of a text: Chinese, Arabic, any other."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable

from official_transformer.errors import InputError

_FIRST = "DejaVu Sans"  # matplotlib brings it along.
# Of no use: a box with the name of the block, for every character there is.
_EMPTY = ("Last Resort", "LastResort", "Adobe Blank")
# Debian's packages with fonts for scripts that others lack.
_PACKAGES = (
  ("CJK HIRAGANA KATAKANA HANGUL BOPOMOFO".split(), "fonts-wqy-microhei"),
  (["ARABIC", "HEBREW"], "fonts-dejavu-core"),
)


@functools.lru_cache(maxsize=256)
def _characters_of(path: str, index: int) -> frozenset[int]:
  """Returns the code points that a face of a font file has."""
  from matplotlib.ft2font import FT2Font

  try:
    return frozenset(FT2Font(path, face_index=index).get_charmap())
  except (RuntimeError, OSError):  # It is no font that can be read.
    return frozenset()


def families_for(text: Iterable[str]) -> list[str]:
  """Returns fonts' names, in the order in which to look for a character.

  Args:
    text: all that is to be drawn.

  Raises:
    InputError: if no font here has some of the characters, which it names.
  """
  wanted = {
    ord(c)
    for c in set("".join(text))
    if unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cn", "Co")
  }
  families: list[str] = []
  for entries in (_known, _unknown):
    faces = entries(wanted) if wanted or not families else []
    for name, path, index in faces:
      if not wanted and families:
        break
      found = wanted & _characters_of(path, index)
      if name == _FIRST or found:
        families.append(name)
        wanted -= found
  if wanted:
    raise InputError(_missing(wanted))
  return list(dict.fromkeys(families))


def _known(_: set[int]) -> list[tuple[str, str, int]]:
  """Returns names, files and faces that matplotlib knows, the default first."""
  from matplotlib.font_manager import fontManager

  faces = {
    entry.name: (entry.name, str(entry.fname), entry.index)
    for entry in fontManager.ttflist
    if not entry.name.startswith(_EMPTY)
    and entry.style == "normal"
    and entry.weight in (400, "normal", "regular")
  }
  return sorted(faces.values(), key=lambda face: (face[0] != _FIRST, face[0]))


def _unknown(wanted: set[int]) -> list[tuple[str, str, int]]:
  """Returns faces that have been installed since matplotlib last looked."""
  from matplotlib.font_manager import findSystemFonts, fontManager

  known = {str(entry.fname) for entry in fontManager.ttflist}
  for path in findSystemFonts():
    if path not in known:
      try:
        fontManager.addfont(path)
      except (RuntimeError, OSError):  # It is no font that can be read.
        continue
  return [face for face in _known(wanted) if face[1] not in known]


def _missing(wanted: set[int]) -> str:
  shown = sorted(map(chr, wanted))
  names = {unicodedata.name(c, "").split(" ")[0] for c in shown}
  packages = [
    package for blocks, package in _PACKAGES if names.intersection(blocks)
  ] or ["fonts-noto"]
  return (
    f"no font here has {' '.join(shown[:20])}"
    + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
    + f": install one, on Debian with apt-get install {' '.join(packages)}"
  )
