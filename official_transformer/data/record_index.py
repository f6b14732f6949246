"""The places and lengths of the records of some shards.

Shapes: N records, C chunks.
"""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Records that are always read together, one after the other.
CHUNK_RECORDS = 1024
# Around each record of a TFRecord file: its length, and two checksums.
_FRAME_BYTES = 16
_ARRAYS = ("lengths", "shards", "firsts", "counts", "offsets")


@dataclasses.dataclass(frozen=True, eq=False)
class RecordIndex:
  """The records of some shards, in chunks.

  Attributes:
    paths: the shards.
    lengths: int32 [N], tokens of each record's longer side, EOS included; 0 of
      one that cannot be used. Shard after shard.
    shards: int32 [C], each chunk's place among the paths.
    firsts: int64 [C], the number of its first record among all.
    counts: int32 [C], its records.
    offsets: int64 [C], the byte of its shard at which it begins.
  """

  paths: tuple[str, ...]
  lengths: np.ndarray
  shards: np.ndarray
  firsts: np.ndarray
  counts: np.ndarray
  offsets: np.ndarray

  @classmethod
  def of(
    cls,
    paths: Sequence[str],
    lengths: Sequence[np.ndarray],
    sizes: Sequence[np.ndarray],
  ) -> RecordIndex:
    """Makes an index.

    Args:
      paths: the shards.
      lengths: lengths of each shard, as in the attribute.
      sizes: sizes of each shard, the bytes of each record.
    """
    chunks = []
    before = 0
    for shard, of_shard in enumerate(sizes):
      ends = np.cumsum(np.asarray(of_shard, np.int64) + _FRAME_BYTES)
      for first in range(0, len(of_shard), CHUNK_RECORDS):
        count = min(CHUNK_RECORDS, len(of_shard) - first)
        offset = int(ends[first - 1]) if first else 0
        chunks.append((shard, before + first, count, offset))
      before += len(of_shard)
    columns = np.array(chunks, np.int64).reshape(-1, 4).T
    joined = np.concatenate([np.zeros(0, np.int32), *lengths])
    return cls(
      tuple(paths),
      joined.astype(np.int32),
      columns[0].astype(np.int32),
      columns[1],
      columns[2].astype(np.int32),
      columns[3],
    )

  def arrays(self) -> dict[str, np.ndarray]:
    """Returns all but the paths, by name."""
    return {name: getattr(self, name) for name in _ARRAYS}

  @classmethod
  def from_arrays(
    cls, paths: Sequence[str], arrays: Mapping[str, Any]
  ) -> RecordIndex:
    """Inverse of `arrays`.

    Raises:
      KeyError: if one is missing.
      ValueError: if they belong to no shards.
    """
    index = cls(tuple(paths), *(np.asarray(arrays[name]) for name in _ARRAYS))
    chunks = index.counts.shape
    if not (
      all(a.ndim == 1 and a.dtype.kind == "i" for a in index.arrays().values())
      and index.shards.shape == index.firsts.shape == chunks
      and index.offsets.shape == chunks
      and (index.counts > 0).all()
      and (index.firsts == np.cumsum(index.counts) - index.counts).all()
      and int(index.counts.sum()) == len(index.lengths)
      and (index.lengths >= 0).all()
      and (index.offsets >= 0).all()
      and ((index.shards >= 0) & (index.shards < len(paths))).all()
    ):
      raise ValueError("the arrays do not belong together")
    return index

  def histogram(self) -> dict[int, int]:
    """Returns how many usable records have each length."""
    counts = np.bincount(self.lengths)
    return {
      int(length): int(counts[length])
      for length in np.flatnonzero(counts)
      if length
    }

  def digest(self) -> int:
    """Returns a digest of the usable records."""
    names = "\n".join(map(os.path.basename, self.paths))
    return zlib.crc32(self.lengths.tobytes(), zlib.crc32(names.encode()))

  def records_of(self, chunks: np.ndarray) -> np.ndarray:
    """Returns the numbers of the records of some chunks, in their order."""
    counts = self.counts[chunks].astype(np.int64)
    starts = np.cumsum(counts) - counts
    shifts = np.repeat(self.firsts[chunks] - starts, counts)
    return np.arange(int(counts.sum())) + shifts

  def chunks_of(self, records: np.ndarray) -> np.ndarray:
    """Returns the chunk of each of some records."""
    return np.searchsorted(self.firsts, records, side="right") - 1
