"""The pipeline from TFRecord shards to padded batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_transformer.data.buckets import Batching, BatchShape
from official_transformer.data.data_order import (
  WINDOW_CHUNKS,
  DataOrder,
  Start,
)
from official_transformer.data.record_check import parse_records
from official_transformer.data.record_index import CHUNK_RECORDS, RecordIndex
from official_transformer.hardware.cpu_threads import processors

# The functions below branch on no tensor: AutoGraph would only spend a second
# of each start on rewriting them.
_traced_as_it_is = tf.autograph.experimental.do_not_convert
# Chunks read side by side.
_CHUNKS_AT_ONCE = 16
PREFETCHED_BATCHES = 16
_READ_BUFFER_BYTES = 262_144
_MOST_RECORDS = 2**40


class Threads(NamedTuple):
  """The threads of a pipeline.

  Attributes:
    reading: threads that read shards; 0 for one a processor.
    private: threads of the pipeline's own pool; None shares TensorFlow's.
  """

  reading: int = 4
  private: int | None = None

  @property
  def number(self) -> int:
    """Number of reading threads."""
    return self.reading or processors()


def synthetic_dataset(batching: Batching) -> tf.data.Dataset:
  """Returns endless static batches of ones, to measure a model alone."""
  (sentences,) = dataclasses.replace(batching, static_batch=True).sizes
  ones = tf.ones([sentences, batching.max_length], tf.int64)
  return tf.data.Dataset.from_tensors((ones, ones)).repeat()


def uniform_dataset(batching: Batching, largest: BatchShape) -> tf.data.Dataset:
  """Returns endless batches of examples that all have one length.

  To TensorFlow they are of the same type as the data's, so that a step is
  traced once.

  Args:
    batching: how examples are grouped.
    largest: number of examples in a batch, and their length, at most
      `max_length`.
  """
  sentences, length = largest
  width = batching.max_length if batching.static_batch else length
  ids = np.zeros([sentences, width], np.int64)
  ids[:, :length] = 1
  shape = ids.shape if batching.static_batch else [None, None]
  batches = tf.data.Dataset.from_generator(
    lambda: iter([(ids, ids)]),
    output_signature=(tf.TensorSpec(shape, tf.int64),) * 2,
  )
  return _ahead_of_the_model(_endless(batches.repeat()))


def _endless(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Declares the dataset endless, so that strategies do not plan for its end.

  They would have all replicas agree on it before every batch.
  """
  return dataset.apply(
    tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
  )


def _ahead_of_the_model(
  dataset: tf.data.Dataset, private_threads: int | None = None
) -> tf.data.Dataset:
  """Prepares batches while the model works on others."""
  options = tf.data.Options()
  # Autotuning's thread may sleep for up to a minute after the last batch, and
  # the run waits for it; all settings here are fixed: there is nothing to tune.
  options.autotune.enabled = False
  if private_threads is not None:
    options.threading.private_threadpool_size = private_threads
  return dataset.prefetch(PREFETCHED_BATCHES).with_options(options)


def train_dataset(
  index: RecordIndex,
  batching: Batching,
  seed: int,
  skip_batches: int = 0,
  threads: Threads = Threads(),  # noqa: B008  # It is frozen.
  after_reading: Callable[[], None] | None = None,
) -> tf.data.Dataset:
  """Returns endless training batches, in an order that the seed decides.

  Buckets fill across epochs, so that no epoch ends in small left-over batches;
  each example comes once an epoch.

  Args:
    index: index of the training data.
    batching: how examples are grouped.
    seed: decides the order.
    skip_batches: batches that a resumed run has trained on already.
    threads: threads that read; the order does not depend on them.
    after_reading: called after a window of records has been read, before
      batches are made of it; an exception ends the dataset with an error.

  Returns:
    Batches of inputs [B, S] and targets [B, T], int64, padded with 0.
  """
  order = DataOrder(index, batching, seed)
  dataset = _batches(order, order.start(skip_batches), threads, after_reading)
  return _ahead_of_the_model(_endless(dataset), threads.private)


def dev_dataset(index: RecordIndex, batching: Batching) -> tf.data.Dataset:
  """Returns the development batches once, in the order of the files.

  Batches have the size of one replica's share of a training batch, and are
  grouped by length even if training batches are static. Only records that
  cannot be used, or are longer than `max_length`, are left out.
  """
  share = batching.batch_size // batching.batch_divisor
  by_length = dataclasses.replace(
    batching,
    batch_size=max(share, batching.max_length + 1),
    static_batch=False,
    batch_divisor=1,
  )
  start = Start(0, 0, 0, np.zeros(0, np.int64))
  order = DataOrder(index, by_length, seed=None)
  return _ahead_of_the_model(_batches(order, start, Threads(reading=0)))


def _batches(
  order: DataOrder,
  start: Start,
  threads: Threads,
  after_reading: Callable[[], None] | None = None,
) -> tf.data.Dataset:
  """Yields the batches of an order, from some point on."""
  index = order.index
  windows = tf.data.Dataset.from_generator(
    lambda: _readings(order, start),
    output_signature=_Reading(
      paths=tf.TensorSpec([None], tf.string),
      offsets=tf.TensorSpec([None], tf.int64),
      counts=tf.TensorSpec([None], tf.int64),
      places=tf.TensorSpec([None], tf.int64),
      ends=tf.TensorSpec([None], tf.int64),
      waiting=tf.TensorSpec([None], tf.int64),
    ),
  )
  read = windows.map(
    _traced_as_it_is(
      lambda reading: _read_window(reading, threads.number, after_reading)
    )
  ).prefetch(1)
  batches = read.scan(_records(index, start.waiting), _take_window).flat_map(
    _cut
  )
  batching = order.batching
  return batches.map(
    _traced_as_it_is(lambda records: _parse(records, batching)),
    num_parallel_calls=threads.number,
    deterministic=True,
  )


class _Reading(NamedTuple):
  """A `WindowPlan` with the places of its chunks for TensorFlow.

  Attributes:
    paths: string [C], the shard of each chunk.
    offsets: int64 [C], where it begins there.
    counts: int64 [C], its records.
    places: the plan's `places`.
    ends: the plan's `ends`.
    waiting: the plan's `waiting`.
  """

  paths: tf.Tensor
  offsets: tf.Tensor
  counts: tf.Tensor
  places: tf.Tensor
  ends: tf.Tensor
  waiting: tf.Tensor


def _readings(order: DataOrder, start: Start) -> Iterator[_Reading]:
  """Yields the chunks to read, window by window."""
  for plan in order.plans(start):
    yield _Reading(
      *_whereabouts(order.index, plan.chunks),
      plan.places,
      plan.ends,
      plan.waiting,
    )


def _whereabouts(
  index: RecordIndex, chunks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns paths, offsets and counts of chunks, [C] each."""
  paths = np.array(index.paths, dtype=object)[index.shards[chunks]]
  return paths, index.offsets[chunks], index.counts[chunks].astype(np.int64)


def _read_chunks(
  paths: tf.Tensor, offsets: tf.Tensor, counts: tf.Tensor, threads: int
) -> tf.Tensor:
  """Reads chunks one after the other; returns their records, string [N]."""

  @_traced_as_it_is
  def read(
    path: tf.Tensor, offset: tf.Tensor, count: tf.Tensor
  ) -> tf.data.Dataset:
    # The public class does not begin in the middle of a file.
    records = tf.raw_ops.TFRecordDatasetV2(
      filenames=path[None],
      compression_type="",
      buffer_size=tf.constant(_READ_BUFFER_BYTES, tf.int64),
      byte_offsets=offset[None],
    )
    spec = tf.TensorSpec([], tf.string)
    return tf.data.experimental.from_variant(records, spec).take(count)

  chunks = tf.data.Dataset.from_tensor_slices((paths, offsets, counts))
  records = chunks.interleave(
    read,
    cycle_length=_CHUNKS_AT_ONCE,
    block_length=CHUNK_RECORDS,  # A whole one: they are not mixed.
    num_parallel_calls=min(threads, _CHUNKS_AT_ONCE),
    deterministic=True,
  )
  return records.batch(_MOST_RECORDS).get_single_element()


def _read_window(
  reading: _Reading,
  threads: int,
  after_reading: Callable[[], None] | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the records of a window, string [N], and the rest of its plan."""
  records = _read_chunks(
    reading.paths, reading.offsets, reading.counts, threads
  )
  if after_reading:
    with tf.control_dependencies([records]):
      called = tf.numpy_function(_called(after_reading), [], tf.bool)
    with tf.control_dependencies([called]):
      records = tf.identity(records)
  return records, reading.places, reading.ends, reading.waiting


def _called(function: Callable[[], None]) -> Callable[[], bool]:
  """Returns a function that TensorFlow can wait for."""

  def call() -> bool:
    function()
    return True

  return call


@_traced_as_it_is
def _take_window(
  waited: tf.Tensor, window: tuple[tf.Tensor, ...]
) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
  """Makes batches of a window and of the records that waited for it.

  Args:
    waited: string [number].
    window: result of `_read_window`.

  Returns:
    The records that wait now, string; the records of all batches, string; and
    the end of each batch among these, int64.
  """
  records, places, ends, waiting = window
  pool = tf.concat([waited, records], 0)
  return tf.gather(pool, waiting), (tf.gather(pool, places), ends)


@_traced_as_it_is
def _cut(records: tf.Tensor, ends: tf.Tensor) -> tf.data.Dataset:
  """Yields the records of each batch, string [B]."""
  starts = tf.concat([tf.zeros([1], tf.int64), ends[:-1]], 0)[: tf.size(ends)]
  return tf.data.Dataset.from_tensor_slices((starts, ends)).map(
    _traced_as_it_is(lambda start, end: records[start:end])
  )


def _records(index: RecordIndex, numbers: np.ndarray) -> tf.Tensor:
  """Reads single records, by their numbers; returns string [number]."""
  if not len(numbers):
    return tf.zeros([0], tf.string)
  found = np.empty(len(numbers), dtype=object)
  of_numbers = index.chunks_of(numbers)
  chunks = np.unique(of_numbers)
  # Waiting records may come from most chunks: these are read in groups, so that
  # no more than a window is in memory.
  for first in range(0, len(chunks), WINDOW_CHUNKS):
    some = chunks[first : first + WINDOW_CHUNKS]
    read = _read_chunks(*_whereabouts(index, some), threads=_CHUNKS_AT_ONCE)
    here = np.isin(of_numbers, some)
    places = np.searchsorted(index.records_of(some), numbers[here])
    found[here] = tf.gather(read, places).numpy()
  return tf.constant(found, tf.string)


def _parse(
  records: tf.Tensor, batching: Batching
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns inputs [B, S] and targets [B, T], int64, of records, string [B]."""
  shape = None
  if batching.static_batch:
    (sentences,) = batching.sizes
    shape = [sentences, batching.max_length]
  inputs, targets = (
    ids.to_tensor(shape=shape) for ids in parse_records(records)
  )
  return inputs, targets
