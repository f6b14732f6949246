"""In which order examples are trained on, computed from their lengths alone.

The seed and the number of the epoch decide the order of the chunks of the data.
Up to `WINDOW_CHUNKS` chunks are a window, whose records are shuffled together.
They fill the batches of their length in this order; records that fill no batch
wait for the next window, also across epochs. The state of a run after any
number of batches is computed by counting: of the data that it has trained on, a
resumed run reads only the window that it stopped in, and the chunks of the
waiting records.

Shapes: N records, C chunks, W windows, P records of a window with the waiting
ones, Q buckets.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from official_transformer.data.buckets import Batching
from official_transformer.data.record_index import RecordIndex

# About as many records as upstream's shuffle buffer: all of a small corpus.
WINDOW_CHUNKS = 100
_CHUNKS, _RECORDS = 1, 2
# Between the states of SplitMix64, a generator of random numbers.
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class WindowPlan(NamedTuple):
  """Batches of a window's records and of records that waited before it.

  Places count the waiting records first, then those of the window.

  Attributes:
    chunks: int64 [C], chunks to read, in this order.
    places: int64, of the records of all its batches, batch after batch.
    ends: int64, where in `places` each batch ends.
    waiting: int64, places of records that wait for the next window.
  """

  chunks: np.ndarray
  places: np.ndarray
  ends: np.ndarray
  waiting: np.ndarray


class Start(NamedTuple):
  """State of a run between two batches.

  Attributes:
    epoch: epoch, from 0.
    window: window of the epoch, from 0.
    batches: batches of the window, that have been trained on.
    waiting: int64, the numbers of the records that waited for the window.
  """

  epoch: int
  window: int
  batches: int
  waiting: np.ndarray


@dataclasses.dataclass(frozen=True)
class DataOrder:
  """The batches of some records.

  Attributes:
    index: index of the records.
    batching: how they are grouped.
    seed: decides the order; None keeps the order of the files.
  """

  index: RecordIndex
  batching: Batching
  seed: int | None

  @functools.cached_property
  def _buckets(self) -> np.ndarray:
    """The bucket of each record, int16 [N]; -1 for omitted records."""
    lengths = self.index.lengths
    found = np.searchsorted(self.batching.bounds, lengths, side="right")
    is_used = (lengths > 0) & (lengths <= self.batching.max_length)
    return np.where(is_used, found, -1).astype(np.int16)

  @functools.cached_property
  def _sizes(self) -> np.ndarray:
    """The sentences in a batch of each bucket, int64 [Q]."""
    return np.array(self.batching.sizes, np.int64)

  @functools.cached_property
  def _records_by_bucket(self) -> list[np.ndarray]:
    """The numbers of each bucket's records, ascending."""
    order = np.argsort(self._buckets, kind="stable")
    ends = np.searchsorted(
      self._buckets[order], np.arange(len(self._sizes) + 1)
    )
    return [order[a:b] for a, b in itertools.pairwise(ends)]

  def plans(self, start: Start) -> Iterator[WindowPlan]:
    """Yields the plans of all windows from some point on, epoch after epoch.

    If there is no seed, one epoch is all, and its last batches are not full.

    Args:
      start: as `start` returned it; its batches are left out.
    """
    waiting, skipped, window = start.waiting, start.batches, start.window
    epoch = start.epoch
    while True:
      windows = self._windows(epoch)
      for number in range(window, len(windows)):
        is_last = self.seed is None and number == len(windows) - 1
        pool = np.concatenate([waiting, self.index.records_of(windows[number])])
        shuffled = len(waiting) + self._shuffled(pool[len(waiting) :], epoch)
        order = np.concatenate([np.arange(len(waiting)), shuffled])
        plan = self._plan(windows[number], pool, order, is_last)
        first = plan.ends[skipped - 1] if skipped else 0
        yield plan._replace(
          places=plan.places[first:], ends=plan.ends[skipped:] - first
        )
        waiting, skipped = pool[plan.waiting], 0
      if self.seed is None:
        return
      epoch, window = epoch + 1, 0

  def start(self, batches: int) -> Start:
    """Returns the state of a run after a number of batches.

    Args:
      batches: batches that it has trained on.

    Raises:
      ValueError: if no batch is ever filled.
    """
    totals = np.array([len(r) for r in self._records_by_bucket])
    if not totals.any():
      raise ValueError("there is no record to make a batch of")

    def made_before(epoch: int, seen: np.ndarray | int = 0) -> np.ndarray:
      return ((epoch * totals + seen) // self._sizes).sum(axis=-1)

    low, high = 0, 1
    while made_before(high) <= batches:
      high *= 2
    while high - low > 1:  # made_before(low) <= batches < made_before(high)
      middle = (low + high) // 2
      if made_before(middle) <= batches:
        low = middle
      else:
        high = middle
    window_of_chunk = self._window_of_chunk(low)
    seen = self._seen_before_windows(window_of_chunk)  # [W, Q]
    made = made_before(low, seen)
    window = int(np.searchsorted(made, batches, side="right")) - 1
    waiting = [
      self._waiting(bucket, (low, window), window_of_chunk, int(count))
      for bucket, count in enumerate(seen[window])
    ]
    return Start(
      low, window, batches - int(made[window]), np.concatenate(waiting)
    )

  def _windows(self, epoch: int) -> list[np.ndarray]:
    """Returns the chunks of each window of an epoch."""
    chunks = np.arange(len(self.index.counts))
    if self.seed is not None:
      keys = _keys(chunks, self.seed, epoch, _CHUNKS)
      chunks = np.argsort(keys, kind="stable")
    return [
      chunks[first : first + WINDOW_CHUNKS]
      for first in range(0, len(chunks), WINDOW_CHUNKS)
    ]

  def _window_of_chunk(self, epoch: int) -> np.ndarray:
    """Returns the window that each chunk is in, int64 [C]."""
    windows = self._windows(epoch)
    found = np.zeros(len(self.index.counts), np.int64)
    for number, chunks in enumerate(windows):
      found[chunks] = number
    return found

  def _shuffled(self, records: np.ndarray, epoch: int) -> np.ndarray:
    """Returns the places of a window's records in the order they come in."""
    if self.seed is None:
      return np.arange(len(records))
    return np.argsort(_keys(records, self.seed, epoch, _RECORDS), kind="stable")

  def _plan(
    self,
    chunks: np.ndarray,
    pool: np.ndarray,
    order: np.ndarray,
    is_last: bool,
  ) -> WindowPlan:
    """Makes batches of the waiting records.

    Args:
      chunks: chunks of the window.
      pool: int64 [P], the records that waited, then the window's.
      order: int64 [P], their places in the order they come in.
      is_last: whether nothing waits any longer.
    """
    buckets = self._buckets[pool[order]]
    batches: list[tuple[int, np.ndarray]] = []
    waiting = []
    for bucket, size in enumerate(self._sizes):
      come = np.flatnonzero(buckets == bucket)
      full = len(come) // size * size
      for batch in come[:full].reshape(-1, size):
        batches.append((int(batch[-1]), order[batch]))
      rest = order[come[full:]]
      if is_last and len(rest):
        batches.append((len(order) + bucket, rest))
      else:
        waiting.append(rest)
    # A batch is made when its last record comes.
    batches.sort(key=lambda batch: batch[0])
    none = [np.zeros(0, np.int64)]
    return WindowPlan(
      chunks,
      np.concatenate(none + [places for _, places in batches]),
      np.cumsum([len(places) for _, places in batches]).astype(np.int64),
      np.concatenate(none + waiting),
    )

  def _seen_before_windows(self, window_of_chunk: np.ndarray) -> np.ndarray:
    """Counts the records of each bucket in all windows before each, [W, Q]."""
    number = len(self._sizes)
    windows = int(window_of_chunk.max()) + 1
    of_records = np.repeat(window_of_chunk, self.index.counts)
    used = self._buckets >= 0
    counts = np.bincount(
      of_records[used] * number + self._buckets[used],
      minlength=windows * number,
    ).reshape(windows, number)
    return np.cumsum(counts, axis=0) - counts

  def _waiting(
    self,
    bucket: int,
    place: tuple[int, int],
    window_of_chunk: np.ndarray,
    seen: int,
  ) -> np.ndarray:
    """Returns the records of a bucket that wait for a window.

    Args:
      bucket: number of the bucket.
      place: epoch and window.
      window_of_chunk: window of each chunk, of the epoch.
      seen: how many of the epoch's windows before were of the bucket.
    """
    epoch, window = place
    records = self._records_by_bucket[bucket]
    number = (epoch * len(records) + seen) % int(self._sizes[bucket])
    found: list[np.ndarray] = []
    windows = window_of_chunk[self.index.chunks_of(records)]
    come = records[windows < window]
    while number:
      in_order = self._in_order(come, epoch, window_of_chunk)
      taken = in_order[max(0, len(in_order) - number) :]
      found.insert(0, taken)
      number -= len(taken)
      epoch -= 1
      if number:
        window_of_chunk, come = self._window_of_chunk(epoch), records
    return np.concatenate([np.zeros(0, np.int64), *found])

  def _in_order(
    self, records: np.ndarray, epoch: int, window_of_chunk: np.ndarray
  ) -> np.ndarray:
    """Returns some records in the order they come in, in an epoch."""
    windows = window_of_chunk[self.index.chunks_of(records)]
    if self.seed is None:
      return records[np.argsort(windows, kind="stable")]
    keys = _keys(records, self.seed, epoch, _RECORDS)
    return records[np.lexsort((keys, windows))]


def _keys(numbers: np.ndarray, seed: int, epoch: int, kind: int) -> np.ndarray:
  """Returns sort keys that shuffle numbers: uint64 hashes.

  Each number is hashed by itself (SplitMix64, Steele et al. 2014): the order of
  a few does not need the others, and is the same on every machine and for every
  version of NumPy.
  """
  key = np.zeros(1, np.uint64)
  for part in (seed, epoch, kind):
    key = _mixed(key ^ np.array([part], np.uint64))
  return _mixed(key ^ numbers.astype(np.uint64))


def _mixed(x: np.ndarray) -> np.ndarray:
  """Returns SplitMix64's next number of each state, uint64."""
  return mix_bits(x + GOLDEN_GAMMA)


def mix_bits(x: np.ndarray) -> np.ndarray:
  """Returns the bits of uint64, mixed as SplitMix64 mixes its states."""
  x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return x ^ (x >> np.uint64(31))
