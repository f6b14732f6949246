"""An external shuffle: records on the disk, in an order that a seed decides.

Every pair has a key, computed from the seed and its number in the corpus; the
key decides its shard, and its place in it. First, each block's records are
written to a file, by shard and key. Then each shard is gathered from all these
files. Neither step needs more memory than a block or a shard's part, and the
order does not depend on the processes and their timing.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from data_prep.encoding.filters import DUPLICATE
from data_prep.encoding.pair_encoder import EncodedBlock
from official_transformer.data.data_order import GOLDEN_GAMMA, mix_bits
from official_transformer.storage.durable_files import new_file

# Of a shard's records, held at a time, more or less.
_GATHERED_BYTES = 1 << 22
_INDEX = ".npz"
_LAST_KEY = (1 << 64) - 1
# Fingerprints that are sorted at a time.
_DUPLICATES_AT_ONCE = 1 << 22


def shuffle_keys(pairs: np.ndarray, seed: int) -> np.ndarray:
  """Returns a key for each pair, uint64: no two have the same.

  It is splitmix64 (Steele, Lea and Flood 2014), which mixes the bits of its
  counter; the counter starts at a place that it finds for the seed.

  Args:
    pairs: int64, the pairs' numbers.
    seed: seed of the shuffle.
  """
  start = _splitmix64(np.array([seed], np.uint64))
  return _splitmix64(start + pairs.astype(np.uint64))


def _splitmix64(state: np.ndarray) -> np.ndarray:
  """Returns the state's bits, mixed; unsigned numbers wrap around."""
  return mix_bits(state * GOLDEN_GAMMA)


@dataclasses.dataclass(frozen=True)
class Order:
  """The assignment of records to shards, and their order within a shard.

  Attributes:
    shards: how many files.
    seed: seed of the shuffle; None keeps the order, in one shard.
  """

  shards: int
  seed: int | None

  def keys(self, pairs: np.ndarray) -> np.ndarray:
    """Returns the key of each pair, uint64."""
    if self.seed is None:
      return pairs.astype(np.uint64)
    return shuffle_keys(pairs, self.seed)

  def shards_of(self, keys: np.ndarray) -> np.ndarray:
    """Returns the shard of each key, counted from 0."""
    if self.seed is None:
      return np.zeros(len(keys), np.int64)
    return (keys % np.uint64(self.shards)).astype(np.int64)


class BlockIndex(NamedTuple):
  """The index of a block's records, in the order of its file.

  Attributes:
    keys: uint64 [B], ascending in each shard.
    sizes: int64 [B], bytes.
    lengths: int32 [B, 2], tokens of source and target.
    pairs: int64 [B], their numbers.
    fingerprints: uint64 [B] or [0].
    shard_starts: int64 [shards + 1], the first record of each shard.
    dropped: pairs that were left out, by reason.
    kept_pairs: as in `EncodedBlock`.
    several_sentences: kept pairs whose source has several sentences.
  """

  keys: np.ndarray
  sizes: np.ndarray
  lengths: np.ndarray
  pairs: np.ndarray
  fingerprints: np.ndarray
  shard_starts: np.ndarray
  dropped: Mapping[str, int]
  kept_pairs: int
  several_sentences: int


def write_block(path: str, block: EncodedBlock, order: Order) -> None:
  """Writes a block's records, and then its index, which completes it.

  Raises:
    OSError: if the system refuses.
  """
  keys = order.keys(block.pairs)
  shards = order.shards_of(keys)
  rows = np.lexsort((keys, shards))
  records = [block.records[row] for row in rows.tolist()]
  with open(path, "wb") as stream:
    stream.write(b"".join(records))
  starts = np.searchsorted(shards[rows], np.arange(order.shards + 1))
  fingerprints = block.fingerprints
  index: dict[str, Any] = {
    "keys": keys[rows],
    "sizes": np.fromiter(map(len, records), np.int64, len(records)),
    "lengths": block.lengths[rows],
    "pairs": block.pairs[rows],
    "fingerprints": fingerprints[rows] if len(fingerprints) else fingerprints,
    "shard_starts": starts,
    "dropped": np.frombuffer(json.dumps(block.dropped).encode(), np.uint8),
    "kept_pairs": block.kept_pairs,
    "several_sentences": block.several_sentences,
  }
  # Not flushed to the disk: after a restart of the machine, the plan in the
  # scratch directory no longer matches, and all blocks are made again.
  with open(path + _INDEX + ".new", "wb") as stream:
    np.savez(stream, **index)
  os.replace(path + _INDEX + ".new", path + _INDEX)


def is_written(path: str) -> bool:
  """Returns whether a block is complete."""
  return os.path.exists(path + _INDEX)


def read_index(path: str) -> BlockIndex:
  """Returns the index of a block that has been written."""
  with np.load(path + _INDEX) as stored:
    fields = {name: stored[name] for name in stored.files}
  fields["dropped"] = json.loads(fields["dropped"].tobytes())
  for name in ("kept_pairs", "several_sentences"):
    fields[name] = int(fields[name])
  return BlockIndex(**fields)


class ShuffledCorpus:
  """All blocks of a corpus, to be gathered into shards.

  The index of all blocks is in a few flat files: the process of a shard reads
  only its part of them.

  Attributes:
    path: how the names of the index' files begin.
    order: where records belong.
    block_paths: paths of all blocks, in their order.
  """

  def __init__(
    self, path: str, order: Order, block_paths: Sequence[str]
  ) -> None:
    self.path = path
    self.order = order
    self.block_paths = list(block_paths)

  def join_indices(self, duplicates: np.ndarray) -> Statistics:
    """Writes the index of all blocks; returns their statistics.

    Args:
      duplicates: int64, ascending: numbers of pairs that are left out.

    Raises:
      OSError: if the system refuses.
    """
    statistics = Statistics()
    starts = np.zeros((len(self.block_paths), self.order.shards + 1), np.int64)
    byte_starts = np.zeros_like(starts)
    first = 0
    with (
      open(self._file("keys"), "wb") as keys,
      open(self._file("sizes"), "wb") as sizes,
      open(self._file("kept"), "wb") as kept,
    ):
      for number, path in enumerate(self.block_paths):
        index = read_index(path)
        keep = ~_is_among(index.pairs, duplicates)
        statistics.add(index, keep)
        starts[number] = index.shard_starts + first
        ends = np.concatenate([[0], np.cumsum(index.sizes)])
        byte_starts[number] = ends[index.shard_starts]
        keys.write(index.keys.tobytes())
        sizes.write(index.sizes.astype(np.int64).tobytes())
        kept.write(keep.tobytes())
        first += len(index.keys)
    np.save(self._file("starts.npy"), starts)
    np.save(self._file("byte_starts.npy"), byte_starts)
    return statistics

  def write_shard(self, shard: int, path: str) -> None:
    """Writes one shard's records in their order.

    Raises:
      OSError: if the system refuses; the file does not exist then.
    """
    parts = self._parts(shard)
    with new_file(path) as aside, open(aside, "wb") as stream:
      for low, high in _key_ranges(parts):
        stream.write(_gathered(parts, low, high))

  def _file(self, name: str) -> str:
    return f"{self.path}.{name}"

  def _parts(self, shard: int) -> list[_Part]:
    """Returns each block's part of a shard."""
    starts = np.load(self._file("starts.npy"), mmap_mode="r")
    byte_starts = np.load(self._file("byte_starts.npy"), mmap_mode="r")
    with (
      open(self._file("keys"), "rb") as keys,
      open(self._file("sizes"), "rb") as sizes,
      open(self._file("kept"), "rb") as kept,
    ):
      return [
        _Part(
          path,
          int(byte_start),
          _read(keys, np.dtype(np.uint64), first, last),
          _read(sizes, np.dtype(np.int64), first, last),
          _read(kept, np.dtype(np.bool_), first, last),
        )
        for path, (first, last), byte_start in zip(
          self.block_paths,
          starts[:, shard : shard + 2].tolist(),
          byte_starts[:, shard],
          strict=True,
        )
        if last > first
      ]


@dataclasses.dataclass
class Statistics:
  """Statistics of a corpus.

  Attributes:
    pairs: pairs that are written.
    tokens: tokens of source and target, EOS included.
    histogram: pairs by the length of their longer side.
    dropped: pairs that were left out, by reason.
    bytes: bytes of all records.
    kept_pairs: pairs that were kept, counted once, duplicates included.
    several_sentences: kept pairs whose source has several sentences.
  """

  pairs: int = 0
  tokens: tuple[int, int] = (0, 0)
  histogram: collections.Counter[int] = dataclasses.field(
    default_factory=collections.Counter
  )
  dropped: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  bytes: int = 0
  kept_pairs: int = 0
  several_sentences: int = 0

  def add(self, index: BlockIndex, keep: np.ndarray) -> None:
    """Counts a block's records.

    Args:
      index: index of the block.
      keep: bool [B], which of them are not duplicates.
    """
    lengths = index.lengths[keep]
    source, target = (int(n) for n in lengths.sum(0))
    dropped = collections.Counter(index.dropped)
    if duplicates := len(keep) - len(lengths):
      dropped[DUPLICATE] += duplicates
    self.add_all(
      Statistics(
        len(lengths),
        (source, target),
        collections.Counter(lengths.max(1, initial=0).tolist()),
        dropped,
        int(index.sizes.sum()),
        index.kept_pairs,
        index.several_sentences,
      )
    )

  def add_all(self, other: Statistics) -> None:
    """Adds other statistics."""
    self.pairs += other.pairs
    self.tokens = (
      self.tokens[0] + other.tokens[0],
      self.tokens[1] + other.tokens[1],
    )
    self.histogram.update(other.histogram)
    self.dropped.update(other.dropped)
    self.bytes += other.bytes
    self.kept_pairs += other.kept_pairs
    self.several_sentences += other.several_sentences

  def to_json(self) -> dict[str, Any]:
    """Returns all statistics as JSON."""
    return dict(vars(self))

  @classmethod
  def from_json(cls, content: Mapping[str, Any]) -> Statistics:
    """Reads the result of `to_json`."""
    source, target = content["tokens"]
    return cls(
      content["pairs"],
      (source, target),
      collections.Counter({int(k): n for k, n in content["histogram"].items()}),
      collections.Counter(content["dropped"]),
      content["bytes"],
      content["kept_pairs"],
      content["several_sentences"],
    )


class _Part(NamedTuple):
  """A block's records of one shard.

  Attributes:
    path: path of the block.
    start: where the first record's bytes begin.
    keys: uint64, ascending.
    sizes: int64, bytes.
    kept: bool, which are no duplicates.
  """

  path: str
  start: int
  keys: np.ndarray
  sizes: np.ndarray
  kept: np.ndarray


def _read(
  stream: BinaryIO, dtype: np.dtype, first: int, last: int
) -> np.ndarray:
  stream.seek(first * dtype.itemsize)
  return np.frombuffer(stream.read((last - first) * dtype.itemsize), dtype)


def _key_ranges(parts: Sequence[_Part]) -> Iterator[tuple[int, int]]:
  """Yields ranges of keys, the records of which fit into memory.

  Keys are spread evenly, or count all pairs: ranges of equal width hold about
  as many records each.
  """
  if not parts:
    return
  size = sum(int(part.sizes.sum()) for part in parts)
  ranges = max(-(-size // _GATHERED_BYTES), 1)
  first = min(int(part.keys[0]) for part in parts)
  end = max(int(part.keys[-1]) for part in parts) + 1
  bounds = [first + (end - first) * n // ranges for n in range(ranges + 1)]
  yield from itertools.pairwise(bounds)


def _gathered(parts: Sequence[_Part], low: int, high: int) -> bytes:
  """Returns the records with keys from `low` up to `high`, in their order."""
  found: list[tuple[int, bytes]] = []
  for part in parts:
    first = int(np.searchsorted(part.keys, np.uint64(low)))
    last = (
      len(part.keys)
      if high > _LAST_KEY
      else int(np.searchsorted(part.keys, np.uint64(high)))
    )
    if first == last:
      continue
    ends = np.cumsum(part.sizes[:last])
    start = int(ends[first - 1]) if first else 0
    with open(part.path, "rb") as stream:
      stream.seek(part.start + start)
      data = stream.read(int(ends[last - 1]) - start)
    begin = 0
    for key, end, kept in zip(
      part.keys[first:last].tolist(),
      (ends[first:] - start).tolist(),
      part.kept[first:last].tolist(),
      strict=True,
    ):
      if kept:
        found.append((key, data[begin:end]))
      begin = end
  found.sort()
  return b"".join(record for _, record in found)


def find_duplicates(block_paths: Sequence[str]) -> np.ndarray:
  """Returns the numbers of pairs that have come before, ascending, int64.

  Args:
    block_paths: blocks whose index has fingerprints; at least one.
  """
  records = sum(len(read_index(path).fingerprints) for path in block_paths)
  # Equal fingerprints have the same remainder.
  rounds = max(1, -(-records // _DUPLICATES_AT_ONCE))
  found = []
  for remainder in range(rounds):
    fingerprints, pairs = [], []
    for path in block_paths:
      index = read_index(path)
      which = index.fingerprints % np.uint64(rounds) == remainder
      fingerprints.append(index.fingerprints[which])
      pairs.append(index.pairs[which])
    all_fingerprints = np.concatenate(fingerprints)
    all_pairs = np.concatenate(pairs)
    order = np.lexsort((all_pairs, all_fingerprints))
    ordered = all_fingerprints[order]
    again = np.zeros(len(ordered), bool)
    again[1:] = ordered[1:] == ordered[:-1]
    found.append(all_pairs[order][again])
  return np.sort(np.concatenate(found))


def _is_among(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
  """Returns which values are in another array, bool."""
  if not len(ascending):
    return np.zeros(len(values), bool)
  places = np.searchsorted(ascending, values)
  places[places == len(ascending)] = 0
  return ascending[places] == values
