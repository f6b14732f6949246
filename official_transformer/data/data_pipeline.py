"""The pipeline from TFRecord shards to padded batches.

Examples of similar length share a batch, and a batch holds as many as fit
into a budget of tokens, so that little of it is padding and every batch costs
about the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf

from official_transformer.errors import InputError

MIN_BOUNDARY = 8
BOUNDARY_SCALE = 1.1
SHUFFLE_BUFFER = 100_000
# Shards read in turn. A constant: were it the number of processors, the order
# of the data would differ from machine to machine.
SHARDS_AT_ONCE = 16
PREFETCHED_BATCHES = 16
_READ_BUFFER_BYTES = 8_000_000
_MAX_SEED = 2**31


def bucket_boundaries(
  max_length: int,
  min_boundary: int = MIN_BOUNDARY,
  boundary_scale: float = BOUNDARY_SCALE,
) -> list[int]:
  """Returns the exclusive upper bounds of all buckets but the last.

  Each is 1.1 times the one before, rounded down, but at least 1 more; all are
  below `max_length`. The last bucket ends with `max_length` included.
  """
  boundaries = []
  boundary = min_boundary
  while boundary < max_length:
    boundaries.append(boundary)
    boundary = max(boundary + 1, int(boundary * boundary_scale))
  return boundaries


def bucket_batch_sizes(batch_size: int, max_length: int) -> list[int]:
  """Returns the number of sentences in a batch of each bucket.

  Args:
    batch_size: tokens a batch may hold, padding included.
    max_length: longest example, EOS included.

  Raises:
    InputError: where a batch cannot hold one example of the longest bucket.
  """
  bounds = [*bucket_boundaries(max_length), max_length + 1]
  sizes = [batch_size // bound for bound in bounds]
  if 0 in sizes:
    raise InputError(
      f"--batch_size={batch_size} tokens cannot hold one sentence of "
      f"--max_length={max_length}: raise the one above {bounds[-1]} or lower "
      "the other"
    )
  return sizes


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


def _batch_by_length(
  dataset: tf.data.Dataset, batch_size: int, max_length: int
) -> tf.data.Dataset:
  """Drops what is too long and groups the rest into padded batches."""
  dataset = dataset.filter(lambda x, y: _length(x, y) <= max_length)
  return dataset.bucket_by_sequence_length(
    _length,
    bucket_boundaries=bucket_boundaries(max_length),
    bucket_batch_sizes=bucket_batch_sizes(batch_size, max_length),
  )


def _batch_statically(
  dataset: tf.data.Dataset, batch_size: int, max_length: int
) -> tf.data.Dataset:
  """Pads everything to one shape, [batch_size // max_length, max_length]."""
  return dataset.filter(lambda x, y: _length(x, y) <= max_length).padded_batch(
    static_batch_sentences(batch_size, max_length),
    ([max_length], [max_length]),
    drop_remainder=True,
  )


def static_batch_sentences(batch_size: int, max_length: int) -> int:
  """Returns the number of sentences in every static batch.

  Raises:
    InputError: where a batch cannot hold one.
  """
  if batch_size < max_length:
    raise InputError(
      f"--batch_size={batch_size} tokens cannot hold one sentence of "
      f"--max_length={max_length}: raise the one or lower the other"
    )
  return batch_size // max_length


def synthetic_dataset(batch_size: int, max_length: int) -> tf.data.Dataset:
  """Returns endless batches of ones, to measure a model without its data."""
  ones = tf.ones(
    [static_batch_sentences(batch_size, max_length), max_length], tf.int64
  )
  return tf.data.Dataset.from_tensors((ones, ones)).repeat()


def _read(paths: tf.data.Dataset, num_parallel_calls: int) -> tf.data.Dataset:
  """Yields the examples of several shards, interleaved in a fixed order."""
  threads = num_parallel_calls or os.cpu_count() or 1
  records = paths.interleave(
    lambda path: tf.data.TFRecordDataset(path, buffer_size=_READ_BUFFER_BYTES),
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
  batch_size: int,
  max_length: int,
  seed: int,
  skip_batches: int = 0,
  num_parallel_calls: int = 4,
  static_batch: bool = False,
  private_threads: int | None = None,
) -> tf.data.Dataset:
  """Returns endless training batches, in an order that the seed decides.

  The order of epoch e is a function of (seed, e) alone. Buckets fill across
  epochs, so that no epoch ends in small left-over batches; each example comes
  once an epoch.

  Args:
    paths: the training shards.
    batch_size: tokens in a batch, on the longer of its sides.
    max_length: longer examples are dropped.
    seed: decides the order.
    skip_batches: batches that a resumed run has trained on already.
    num_parallel_calls: threads that read shards; 0 for one a processor. The
      order does not depend on it.
    static_batch: whether all batches have one shape,
      [batch_size // max_length, max_length].
    private_threads: threads of the pipeline's own pool; None shares
      TensorFlow's.

  Returns:
    Batches of inputs [B, S] and targets [B, T], int64, padded with 0.
  """
  shards = tf.constant(list(paths))

  def epoch(number: tf.Tensor) -> tf.data.Dataset:
    epoch_seed = (seed + number * 1_000_003) % _MAX_SEED
    order = tf.data.Dataset.from_tensor_slices(shards).shuffle(
      len(paths), seed=epoch_seed
    )
    return _read(order, num_parallel_calls).shuffle(
      SHUFFLE_BUFFER, seed=epoch_seed
    )

  dataset = tf.data.Dataset.range(2**62).flat_map(epoch)
  batch = _batch_statically if static_batch else _batch_by_length
  dataset = batch(dataset, batch_size, max_length)
  return _ahead_of_the_model(dataset.skip(skip_batches), private_threads)


def has_examples(paths: Sequence[str], max_length: int) -> bool:
  """Tells whether any example is short enough to be trained on.

  Where none is, a run would wait for its first batch for ever.
  """
  shards = tf.data.Dataset.from_tensor_slices(list(paths))
  short = _read(shards, num_parallel_calls=0).filter(
    lambda x, y: _length(x, y) <= max_length
  )
  return any(True for _ in short.take(1))


def damaged_shards(paths: Sequence[str]) -> list[str]:
  """Returns the shards that cannot be read to their ends."""
  damaged = []
  for path in paths:
    try:
      for _ in tf.data.TFRecordDataset(path):
        pass
    except (tf.errors.DataLossError, tf.errors.NotFoundError):
      damaged.append(path)
  return damaged


def dev_dataset(
  paths: Sequence[str], batch_size: int, max_length: int
) -> tf.data.Dataset:
  """Returns the development batches once, in the order of the files."""
  shards = tf.data.Dataset.from_tensor_slices(list(paths))
  dataset = _read(shards, num_parallel_calls=0)
  dataset = _batch_by_length(dataset, batch_size, max_length)
  return _ahead_of_the_model(dataset)
