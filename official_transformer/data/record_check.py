"""Reading all records of some shards once, to find what is wrong with them.

It takes about a second for a hundred thousand pairs, and finds at the start
what would else end a run hours later.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_transformer.model_params import EOS_ID, PAD_ID

SIDES = ("inputs", "targets")

_RECORDS_AT_ONCE = 4096
_READ_BUFFER_BYTES = 8_000_000
# What TensorFlow raises of a file that is cut off, overwritten, gone, or not of
# this kind; its messages show bytes of a bad record, which may be no UTF-8.
READ_ERRORS = (
  tf.errors.DataLossError,
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
    path: its shard.
    number: among the shard's records, counted from 1.
    reason: what is wrong.
    ends_shard: whether nothing after it can be read either.
  """

  path: str
  number: int
  reason: str
  ends_shard: bool = False

  def __str__(self) -> str:
    return f"{self.path}, record {self.number}: {self.reason}"


class Omission(NamedTuple):
  """What of a shard is left out.

  Attributes:
    limit: how many records of it can be read at all.
    numbers: of those, the ones to leave out, counted from 0.
  """

  limit: int = 2**62
  numbers: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class RecordCheck:
  """What some shards hold.

  Attributes:
    paths: the shards.
    lengths: usable pairs by the length of their longer side, EOS included.
    source_tokens: of the usable pairs, EOS included.
    target_tokens: likewise.
    problems: what cannot be used.
    fingerprint: of all records in their order, if there is no problem.
  """

  paths: tuple[str, ...]
  lengths: Mapping[int, int]
  source_tokens: int
  target_tokens: int
  problems: tuple[Problem, ...] = ()
  fingerprint: int = 0

  @property
  def pairs(self) -> int:
    """How many pairs can be used."""
    return sum(self.lengths.values())

  def count_longer(self, max_length: int) -> int:
    """Counts the pairs with a side of more than `max_length` tokens."""
    return sum(n for length, n in self.lengths.items() if length > max_length)

  def omissions(self) -> dict[str, Omission]:
    """Returns what to leave out, by shard, of those with problems."""
    found: dict[str, list[Problem]] = collections.defaultdict(list)
    for problem in self.problems:
      found[problem.path].append(problem)
    result = {}
    for path, problems in found.items():
      numbers = tuple(p.number - 1 for p in problems if not p.ends_shard)
      result[path] = Omission(numbers=numbers)
      if problems[-1].ends_shard:
        result[path] = Omission(problems[-1].number - 1, numbers)
    return result


def describe_problems(problems: Sequence[Problem]) -> str:
  """Names the first problems, and how many more there are."""
  lines = [f"  {problem}" for problem in problems[:_SHOWN]]
  more = len(problems) - _SHOWN
  return "\n".join(lines + [f"  and {more} more"] * (more > 0))


def check_records(paths: Sequence[str], vocab_size: int) -> RecordCheck:
  """Reads all records.

  Args:
    paths: shards; one may be missing.
    vocab_size: ids must be below it.
  """
  try:
    check = _tally(paths, vocab_size)
  except READ_ERRORS:
    check = None
  # What is wrong, and where, takes a slower look.
  return check or inspect_records(paths, vocab_size)


def _tally(paths: Sequence[str], vocab_size: int) -> RecordCheck | None:
  """Counts at full speed; returns None if any record is wrong."""
  features = {side: tf.io.RaggedFeature(tf.int64) for side in SIDES}

  def count(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    parsed = tf.io.parse_example(records, features)
    lengths = tf.stack([parsed[side].row_lengths() for side in SIDES])
    ids = tf.concat([parsed[side].values for side in SIDES], 0)
    # PAD would end a sentence early, in silence.
    known = tf.reduce_all((ids > PAD_ID) & (ids < vocab_size))
    bare = [tf.reduce_any(_is_bare(parsed[side])) for side in SIDES]
    hashes = tf.strings.to_hash_bucket_fast(records, _HASHES)
    return lengths, known & ~tf.reduce_any(bare), hashes

  dataset = (
    tf.data.TFRecordDataset(list(paths), buffer_size=_READ_BUFFER_BYTES)
    .batch(_RECORDS_AT_ONCE)
    .map(count, num_parallel_calls=os.cpu_count() or 1, deterministic=True)
    .prefetch(1)
  )
  histogram: collections.Counter[int] = collections.Counter()
  tokens = np.zeros(2, np.int64)
  fingerprint = records = 0
  for lengths, usable, hashes in dataset.as_numpy_iterator():
    if not usable:
      return None
    # Places count: another order of the same records is another sum.
    places = np.arange(records + 1, records + 1 + len(hashes), dtype=np.uint64)
    fingerprint += int((places * hashes.astype(np.uint64)).sum())
    records += len(hashes)
    tokens += lengths.sum(axis=1)
    histogram.update(lengths.max(axis=0).tolist())
  source, target = tokens.tolist()
  return RecordCheck(
    tuple(paths),
    dict(histogram),
    source,
    target,
    fingerprint=fingerprint % 2**64,
  )


def _is_bare(ids: tf.RaggedTensor) -> tf.Tensor:
  """Returns, bool [B], which sentences are EOS alone, or nothing."""
  words = tf.cast(ids != EOS_ID, tf.int64)
  return tf.equal(tf.reduce_sum(words, axis=1), 0)


def inspect_records(paths: Sequence[str], vocab_size: int) -> RecordCheck:
  """Looks at each record by itself, and names what is wrong."""
  histogram: collections.Counter[int] = collections.Counter()
  source_tokens = target_tokens = 0
  problems: list[Problem] = []
  for path in paths:
    number = 0
    try:
      for number, sides in enumerate(_sides(path), start=1):
        reason = _reason(sides, vocab_size)
        if reason:
          problems.append(Problem(path, number, reason))
          continue
        source, target = map(len, sides)
        histogram[max(source, target)] += 1
        source_tokens += source
        target_tokens += target
    except READ_ERRORS as error:
      reason = str(error).split("\n")[0]
      problems.append(Problem(path, number + 1, reason, ends_shard=True))
  return RecordCheck(
    tuple(paths),
    dict(histogram),
    source_tokens,
    target_tokens,
    tuple(problems),
  )


def _sides(path: str) -> Iterator[list[list[int]]]:
  """Yields the ids of both sides of each record; an empty list of no pair."""
  for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
    try:
      feature = tf.train.Example.FromString(record).features.feature
    except Exception:  # Protobuf's error, whose module depends on its version.
      yield []
      continue
    yield [list(feature[side].int64_list.value) for side in SIDES]


def _reason(sides: list[list[int]], vocab_size: int) -> str | None:
  """Returns what is wrong with a record, if anything is."""
  if not sides:
    return "not a tf.train.Example"
  for name, ids in zip(SIDES, sides, strict=True):
    wrong = [n for n in ids if not PAD_ID < n < vocab_size]
    if wrong:
      return (
        f"{name} has the id {wrong[0]}, the vocabulary 1 to {vocab_size - 1}"
      )
    if all(n == EOS_ID for n in ids):
      return f"{name} is empty"
  return None
