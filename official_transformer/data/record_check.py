"""Checking all records of some shards.

The check takes about a second for a hundred thousand pairs. It finds at the
start the faults that would otherwise end a run hours later, and notes where
every record is.

Shapes: B records read at once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_transformer.data.record_index import RecordIndex
from official_transformer.model_params import EOS_ID, PAD_ID

SIDES = ("inputs", "targets")

_RECORDS_AT_ONCE = 4096
_READ_BUFFER_BYTES = 8_000_000
# Errors of TensorFlow for files that are cut off, overwritten, missing, or of
# another kind. Their messages show bytes of a bad record, which may not be
# UTF-8.
READ_ERRORS = (
  tf.errors.DataLossError,
  tf.errors.FailedPreconditionError,  # It is a directory.
  tf.errors.InvalidArgumentError,
  tf.errors.NotFoundError,
  tf.errors.PermissionDeniedError,
  tf.errors.UnknownError,
  UnicodeDecodeError,
)
_HASHES = 2**31 - 1
# A message names so many problems; a shard may have any number.
_SHOWN = 5


class Problem(NamedTuple):
  """A record that cannot be trained on.

  Attributes:
    path: shard of the record.
    number: among the shard's records, counted from 1.
    reason: the fault.
    ends_shard: whether nothing after it can be read either.
  """

  path: str
  number: int
  reason: str
  ends_shard: bool = False

  def __str__(self) -> str:
    return f"{self.path}, record {self.number}: {self.reason}"


@dataclasses.dataclass(frozen=True, eq=False)
class RecordCheck:
  """The content of some shards.

  Attributes:
    index: where their records are, and how long.
    source_tokens: source tokens of the usable pairs, EOS included.
    target_tokens: target tokens of the usable pairs, EOS included.
    problems: records that cannot be used.
    fingerprint: fingerprint of all records in their order.
  """

  index: RecordIndex
  source_tokens: int
  target_tokens: int
  problems: tuple[Problem, ...] = ()
  fingerprint: int = 0

  @property
  def paths(self) -> tuple[str, ...]:
    """The shards."""
    return self.index.paths

  @functools.cached_property
  def lengths(self) -> Mapping[int, int]:
    """Usable pairs by the length of their longer side, EOS included."""
    return self.index.histogram()

  @property
  def pairs(self) -> int:
    """Number of pairs that can be used."""
    return int(np.count_nonzero(self.index.lengths))

  def count_longer(self, max_length: int) -> int:
    """Counts the pairs with a side of more than `max_length` tokens."""
    return int(np.count_nonzero(self.index.lengths > max_length))


def describe_problems(problems: Sequence[Problem]) -> str:
  """Names the first problems, and how many more there are."""
  lines = [f"  {problem}" for problem in problems[:_SHOWN]]
  more = len(problems) - _SHOWN
  return "\n".join(lines + [f"  and {more} more"] * (more > 0))


def both_sizes(vocab_size: int | tuple[int, int]) -> tuple[int, int]:
  """Returns the entries of source and target."""
  if isinstance(vocab_size, int):
    return vocab_size, vocab_size
  return vocab_size


class _Tally(NamedTuple):
  """Findings about B records.

  Attributes:
    lengths: int64 [2, B], tokens of both sides.
    usable: bool [B].
    hashes: int64 [B], of the whole records.
    sizes: int32 [B], their bytes.
  """

  lengths: np.ndarray
  usable: np.ndarray
  hashes: np.ndarray
  sizes: np.ndarray


def check_records(
  paths: Sequence[str], vocab_size: int | tuple[int, int]
) -> RecordCheck:
  """Reads all records.

  Args:
    paths: shards; one may be missing.
    vocab_size: size of the vocabulary of both sides, or of source and target;
      ids must be below it.
  """
  vocab_sizes = both_sizes(vocab_size)
  problems: list[Problem] = []
  lengths: list[np.ndarray] = []
  sizes: list[np.ndarray] = []
  tokens = np.zeros(2, np.int64)
  fingerprint = records = 0
  for path in paths:
    tallies: list[_Tally] = []
    for batch, tally in _tallies(path, vocab_sizes, problems):
      before = sum(len(other.sizes) for other in tallies)
      for place in np.flatnonzero(~tally.usable):
        reason = _reason(batch[place].numpy(), vocab_sizes)
        problems.append(Problem(path, before + int(place) + 1, reason))
      # Places count: another order of the same records is another sum.
      places = np.arange(records + 1, records + 1 + len(tally.hashes))
      products = places.astype(np.uint64) * tally.hashes.astype(np.uint64)
      fingerprint += int(products.sum())
      records += len(tally.hashes)
      tokens += (tally.lengths * tally.usable).sum(axis=1)
      tallies.append(tally)
    longer = [t.lengths.max(axis=0) * t.usable for t in tallies]
    lengths.append(np.concatenate([np.zeros(0, np.int64), *longer]))
    sizes.append(
      np.concatenate([np.zeros(0, np.int32), *(t.sizes for t in tallies)])
    )
  # In the order of the shards; the faults of a shard's last records come before
  # the error that ends it.
  order = {path: place for place, path in enumerate(paths)}
  problems.sort(key=lambda problem: (order[problem.path], problem.number))
  source, target = tokens.tolist()
  return RecordCheck(
    RecordIndex.of(paths, lengths, sizes),
    source,
    target,
    tuple(problems),
    fingerprint % 2**64,
  )


def _tallies(
  path: str, sizes: tuple[int, int], problems: list[Problem]
) -> Iterator[tuple[tf.Tensor, _Tally]]:
  """Yields a shard's records, string [B], and the findings about them.

  Args:
    path: the shard.
    sizes: ids must be below them, by side.
    problems: list to which an early end of the shard is appended.
  """
  done = 0
  try:
    for batch in _records_of(path).batch(_RECORDS_AT_ONCE).prefetch(2):
      yield batch, _tally(batch, sizes)
      done += len(batch)
  except READ_ERRORS as first:
    # The records before the error may be fewer than a batch.
    error, rest = first, []
    try:
      for record in _records_of(path).skip(done):
        rest.append(record)
    except READ_ERRORS as again:
      error = again
    if rest:
      batch = tf.stack(rest)
      yield batch, _tally(batch, sizes)
    reason = str(error).split("\n")[0]
    number = done + len(rest) + 1
    problems.append(Problem(path, number, reason, ends_shard=True))


def parse_records(records: tf.Tensor) -> list[tf.RaggedTensor]:
  """Returns inputs and targets, int64 [B, ...] each, of records, string [B]."""
  features = {side: tf.io.RaggedFeature(tf.int64) for side in SIDES}
  parsed = tf.io.parse_example(records, features)
  return [parsed[side] for side in SIDES]


def _records_of(path: str) -> tf.data.TFRecordDataset:
  return tf.data.TFRecordDataset(path, buffer_size=_READ_BUFFER_BYTES)


def _tally(batch: tf.Tensor, sizes: tuple[int, int]) -> _Tally:
  """Looks at records, string [B], all at once if that is possible."""
  try:
    return _Tally(*(t.numpy() for t in _count(batch, tf.constant(sizes))))
  except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
    # One of them is no Example; the message may show its bytes.
    return _tally_one_by_one(batch, sizes)


@tf.function(
  input_signature=[
    tf.TensorSpec([None], tf.string),
    tf.TensorSpec([2], tf.int32),
  ],
  autograph=False,
)
def _count(records: tf.Tensor, sizes: tf.Tensor) -> tuple[tf.Tensor, ...]:
  """Returns the fields of a `_Tally`, given the sizes of each side, [2]."""
  sides = parse_records(records)
  wrong = []
  for ids, size in zip(sides, tf.unstack(sizes), strict=True):
    values = ids.values
    # PAD would end a sentence early, in silence.
    known = (values > PAD_ID) & (values < tf.cast(size, tf.int64))
    words = tf.cast(values != EOS_ID, tf.int64)
    wrong += [
      _count_in_rows(tf.cast(~known, tf.int64), ids) > 0,
      tf.equal(_count_in_rows(words, ids), 0),
    ]
  return (
    tf.stack([ids.row_lengths() for ids in sides]),
    ~tf.reduce_any(tf.stack(wrong), axis=0),
    tf.strings.to_hash_bucket_fast(records, _HASHES),
    tf.strings.length(records),
  )


def _count_in_rows(ones: tf.Tensor, ids: tf.RaggedTensor) -> tf.Tensor:
  """Sums values of 0 and 1 over the rows of ids, int64 [B]."""
  sums = tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(ones)], 0)
  ends = tf.gather(sums, ids.row_splits)
  return ends[1:] - ends[:-1]


def _tally_one_by_one(batch: tf.Tensor, sizes: tuple[int, int]) -> _Tally:
  """Tallies records one by one, because some are no Examples."""
  records = batch.numpy()
  sides = [_sides(record) or [[], []] for record in records]
  return _Tally(
    np.array([[len(ids) for ids in pair] for pair in sides], np.int64).T,
    np.array([not _reason(record, sizes) for record in records]),
    tf.strings.to_hash_bucket_fast(batch, _HASHES).numpy(),
    tf.strings.length(batch).numpy(),
  )


def _sides(record: bytes) -> list[list[int]]:
  """Returns the ids of both sides of a record; an empty list of no pair."""
  try:
    feature = tf.train.Example.FromString(record).features.feature
  except Exception:  # Protobuf's error, whose module depends on its version.
    return []
  return [list(feature[side].int64_list.value) for side in SIDES]


def _reason(record: bytes, sizes: tuple[int, int]) -> str:
  """Returns the fault of a record; an empty text if there is none."""
  sides = _sides(record)
  if not sides:
    return "not a tf.train.Example"
  for name, ids, size in zip(SIDES, sides, sizes, strict=True):
    wrong = [n for n in ids if not PAD_ID < n < size]
    if wrong:
      return f"{name} has the id {wrong[0]}, the vocabulary 1 to {size - 1}"
    if all(n == EOS_ID for n in ids):
      return f"{name} is empty"
  return ""
