"""Guesses at the encoding of lines that are not UTF-8, and their conversion."""

from __future__ import annotations

import codecs

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Of bytes that stand at even, or at odd places of UTF-16 in a script whose
# letters come first in Unicode: so many are NUL.
_NUL_SHARE = 0.8
_FEWEST = 4
# Lines at the beginning of a file that are examined.
LOOKED_AT = 10


def is_utf16(line: bytes, number: int) -> bool:
  """Returns whether a line shows that a file is UTF-16.

  Args:
    line: line of the file, cut at line feeds; it may end with one.
    number: number of the line, from 1: the first one may begin with a mark, and
      up to `LOOKED_AT` lines need be looked at.
  """
  if number == 1 and line.startswith(_MARKS):
    return True
  return any(_nul_shares(line))


def conversion(line: bytes, number: int) -> str:
  """Returns how a file is converted, in a sentence without a full stop.

  Args:
    line: the first that is not UTF-8 or is UTF-16.
    number: number of the line, from 1.
  """
  if number == 1 and line.startswith(_MARKS):
    return (
      "The file begins with the mark of UTF-16. Convert it with "
      "iconv -f UTF-16 -t UTF-8"
    )
  big_endian, little_endian = _nul_shares(line)
  if big_endian or little_endian:
    orders = ["UTF-16BE" if big_endian else "UTF-16LE"]
    if number > 1:
      # Cut at line feeds, it may begin in the midst of a character.
      orders = ["UTF-16LE", "UTF-16BE"]
    return (
      "Every other byte is NUL: this is UTF-16. Convert the file with "
      + " or ".join(f"iconv -f {order} -t UTF-8" for order in orders)
    )
  return (
    "Convert the file with iconv -f ENCODING -t UTF-8, where ENCODING is what "
    "it was written in, such as LATIN1 or GB18030"
  )


def _nul_shares(line: bytes) -> tuple[bool, bool]:
  """Returns whether bytes at even, and at odd places are nearly all NUL."""
  content = line.rstrip(b"\r\n")
  even, odd = content[::2], content[1::2]
  if len(content) < _FEWEST:
    return False, False
  shares = [side.count(0) / len(side) for side in (even, odd)]
  return (
    shares[0] > _NUL_SHARE and shares[1] < 1 - _NUL_SHARE,
    shares[1] > _NUL_SHARE and shares[0] < 1 - _NUL_SHARE,
  )
