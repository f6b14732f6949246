"""Token ids as the bytes that protocol buffers pack them into.

A number is written with 7 bits a byte, the lowest first; all bytes but its last
have the highest bit set. A record needs only these bytes of a line and the
number of its ids, so that tokenizers return just these: a list of numbers for
each line would take several times as long.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# All bytes that do not end a number.
_INNER = bytes(range(0x80, 0x100))


class PackedLines(NamedTuple):
  """Lines of ids.

  Attributes:
    packed: the ids of each line.
    counts: how many ids each line has.
  """

  packed: list[bytes]
  counts: list[int]


def pack(ids: Sequence[int]) -> bytes:
  """Returns the bytes of some ids, none of which is negative."""
  return b"".join(map(_varint, ids))


def count(packed: bytes) -> int:
  """Returns how many ids some bytes are."""
  return len(packed.translate(None, _INNER))


def pack_lines(lines: Sequence[Sequence[int]]) -> PackedLines:
  """Packs the ids of many lines as `pack` does, but faster.

  Args:
    lines: ids from 0 to 2^63 - 1.
  """
  counts = list(map(len, lines))
  ids = np.fromiter(itertools.chain.from_iterable(lines), np.int64, sum(counts))
  sizes = np.ones(len(ids), np.int64)
  limit = 7
  while limit < 63 and (longer := ids >= 1 << limit).any():
    sizes += longer
    limit += 7
  ends = np.cumsum(sizes)
  starts = ends - sizes
  packed = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
  for n in range(limit // 7):
    # [P]: numbers that have one more byte.
    which = slice(None) if n == 0 else np.flatnonzero(sizes > n)
    bits = (ids[which] >> (7 * n)) & 0x7F
    packed[starts[which] + n] = bits | ((sizes[which] > n + 1) << 7)
  # Where each line ends, and the first begins.
  bounds = np.concatenate([[0], ends])[np.cumsum([0, *counts])].tolist()
  data = packed.tobytes()
  return PackedLines(
    [data[start:end] for start, end in itertools.pairwise(bounds)], counts
  )


def _varint(value: int) -> bytes:
  """Returns a number as protocol buffers write it."""
  encoded = bytearray()
  while value > 0x7F:
    encoded.append(value & 0x7F | 0x80)
    value >>= 7
  encoded.append(value)
  return bytes(encoded)
