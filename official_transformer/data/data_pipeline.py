"""The pipeline from TFRecord shards to padded batches."""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from official_transformer.data.buckets import Batching
from official_transformer.data.record_check import Omission

SHUFFLE_BUFFER = 100_000
# Shards read in turn. A constant: were it the number of processors, the order
# of the data would differ from machine to machine.
SHARDS_AT_ONCE = 16
PREFETCHED_BATCHES = 16
_READ_BUFFER_BYTES = 8_000_000
_MAX_SEED = 2**31


class Threads(NamedTuple):
  """The threads of a pipeline.

  Attributes:
    reading: that read shards; 0 for one a processor.
    private: of the pipeline's own pool; None shares TensorFlow's.
  """

  reading: int = 4
  private: int | None = None


def _parse_example(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns inputs and targets, int64 [L] each, of one record."""
  ids = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
  parsed = tf.io.parse_single_example(
    serialized, {"inputs": ids, "targets": ids}
  )
  return parsed["inputs"], parsed["targets"]


def _length(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
  """Returns the length of the longer side."""
  return tf.maximum(tf.size(inputs), tf.size(targets))


def _batch(dataset: tf.data.Dataset, batching: Batching) -> tf.data.Dataset:
  """Drops what is too long and groups the rest into padded batches."""
  limit = batching.max_length
  dataset = dataset.filter(lambda x, y: _length(x, y) <= limit)
  if batching.static_batch:
    (sentences,) = batching.sizes
    return dataset.padded_batch(
      sentences, ([limit], [limit]), drop_remainder=True
    )
  return dataset.bucket_by_sequence_length(
    _length,
    bucket_boundaries=batching.bounds[:-1],
    bucket_batch_sizes=batching.sizes,
  )


def synthetic_dataset(batching: Batching) -> tf.data.Dataset:
  """Returns endless static batches of ones, to measure a model alone."""
  (sentences,) = dataclasses.replace(batching, static_batch=True).sizes
  ones = tf.ones([sentences, batching.max_length], tf.int64)
  return tf.data.Dataset.from_tensors((ones, ones)).repeat()


def uniform_dataset(batching: Batching, length: int) -> tf.data.Dataset:
  """Returns endless batches of examples that all have one length.

  They go through what the data go through, and their length is not known to
  TensorFlow: to it they are of the same type, and a step is traced once.
  """
  lengths = tf.data.Dataset.from_tensors(length).repeat()
  examples = lengths.map(lambda n: (tf.ones([n], tf.int64),) * 2)
  return _ahead_of_the_model(_endless(_batch(examples, batching)))


def _endless(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Tells strategies that no replica ever runs out of data.

  They would have all replicas agree on it before every batch.
  """
  return dataset.apply(
    tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
  )


def _records(
  path: tf.Tensor, limit: tf.Tensor, omitted: tf.Tensor
) -> tf.data.Dataset:
  """Yields a shard's records.

  Args:
    path: string [].
    limit: int64 [], how many there are to read.
    omitted: int64 [N], the numbers, from 0, of those to leave out; -1 of none.
  """
  records = tf.data.TFRecordDataset(path, buffer_size=_READ_BUFFER_BYTES)
  if omitted.shape == [0]:
    return records
  numbered = records.take(limit).enumerate()
  return numbered.filter(lambda n, _: tf.reduce_all(n != omitted)).map(
    lambda _, record: record
  )


def _shards(
  paths: Sequence[str], omissions: Mapping[str, Omission]
) -> tf.data.Dataset:
  """Yields what `_records` takes, of each shard."""
  longest = max((len(o.numbers) + 1 for o in omissions.values()), default=0)
  rows = []
  for path in paths:
    limit, numbers = omissions.get(path, Omission())
    rows.append((limit, [*numbers, *[-1] * (longest - len(numbers))]))
  limits, omitted = zip(*rows, strict=True)
  return tf.data.Dataset.from_tensor_slices(
    (
      list(paths),
      tf.constant(limits, tf.int64),
      tf.constant(omitted, tf.int64, [len(paths), longest]),
    )
  )


def _read(shards: tf.data.Dataset, num_parallel_calls: int) -> tf.data.Dataset:
  """Yields the examples of several shards, interleaved in a fixed order."""
  threads = num_parallel_calls or os.cpu_count() or 1
  records = shards.interleave(
    _records,
    cycle_length=SHARDS_AT_ONCE,
    num_parallel_calls=min(threads, SHARDS_AT_ONCE),
    deterministic=True,
  )
  return records.map(
    _parse_example, num_parallel_calls=threads, deterministic=True
  )


def _ahead_of_the_model(
  dataset: tf.data.Dataset, private_threads: int | None = None
) -> tf.data.Dataset:
  """Prepares batches while the model works on others."""
  options = tf.data.Options()
  # Its thread at times sleeps on for up to a minute after the last batch, and
  # the run with it; with what is fixed here there is nothing to tune.
  options.autotune.enabled = False
  if private_threads is not None:
    options.threading.private_threadpool_size = private_threads
  return dataset.prefetch(PREFETCHED_BATCHES).with_options(options)


def train_dataset(
  paths: Sequence[str],
  batching: Batching,
  seed: int,
  skip_batches: int = 0,
  threads: Threads = Threads(),  # noqa: B008  # It is frozen.
  omissions: Mapping[str, Omission] = types.MappingProxyType({}),
) -> tf.data.Dataset:
  """Returns endless training batches, in an order that the seed decides.

  The order of epoch e is a function of (seed, e) alone. Buckets fill across
  epochs, so that no epoch ends in small left-over batches; each example comes
  once an epoch.

  Args:
    paths: the training shards.
    batching: how examples are grouped.
    seed: decides the order.
    skip_batches: batches that a resumed run has trained on already.
    threads: that read; the order does not depend on them.
    omissions: records to leave out, by shard.

  Returns:
    Batches of inputs [B, S] and targets [B, T], int64, padded with 0.
  """
  shards = _shards(paths, omissions)

  def epoch(number: tf.Tensor) -> tf.data.Dataset:
    # Of this function's graph alone: else whatever seed the process has would
    # count too, and TensorFlow cannot combine a 0 with a seed per epoch.
    tf.random.set_seed(seed or 1)
    epoch_seed = (seed + number * 1_000_003) % _MAX_SEED
    order = shards.shuffle(len(paths), seed=epoch_seed)
    return _read(order, threads.reading).shuffle(
      SHUFFLE_BUFFER, seed=epoch_seed
    )

  dataset = tf.data.Dataset.range(2**62).flat_map(epoch)
  dataset = _batch(dataset, batching)
  return _ahead_of_the_model(
    _endless(dataset.skip(skip_batches)), threads.private
  )


def dev_dataset(
  paths: Sequence[str],
  batching: Batching,
  omissions: Mapping[str, Omission] = types.MappingProxyType({}),
) -> tf.data.Dataset:
  """Returns the development batches once, in the order of the files.

  They are as large as one replica's share of a training batch, and grouped by
  length even if those are static: nothing is left out but records that
  cannot be used.
  """
  dataset = _read(_shards(paths, omissions), num_parallel_calls=0)
  share = batching.batch_size // batching.batch_divisor
  by_length = dataclasses.replace(
    batching,
    batch_size=max(share, batching.max_length + 1),
    static_batch=False,
    batch_divisor=1,
  )
  return _ahead_of_the_model(_batch(dataset, by_length))
