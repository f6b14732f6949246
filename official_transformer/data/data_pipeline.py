"""The pipeline from TFRecord shards to padded batches.

Examples of similar length share a batch, and a batch holds as many as fit
into a budget of tokens, so that little of it is padding and every batch costs
about the same.
"""

from __future__ import annotations

import bisect
import collections
import os
from collections.abc import Mapping, Sequence

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


def bucket_batch_sizes(
  batch_size: int, max_length: int, divisor: int = 1
) -> list[int]:
  """Returns the number of sentences in a batch of each bucket.

  Args:
    batch_size: tokens a batch may hold, padding included.
    max_length: longest example, EOS included.
    divisor: of every number of sentences, so that replicas get equal shares.

  Raises:
    InputError: where a batch cannot hold one example of the longest bucket.
  """
  bounds = [*bucket_boundaries(max_length), max_length + 1]
  return [_sentences(batch_size, b, max_length, divisor) for b in bounds]


def static_batch_sentences(
  batch_size: int, max_length: int, divisor: int = 1
) -> int:
  """Returns the number of sentences in every static batch.

  Raises:
    InputError: where a batch cannot hold one.
  """
  return _sentences(batch_size, max_length, max_length, divisor)


def _sentences(
  batch_size: int, width: int, max_length: int, divisor: int
) -> int:
  """Returns how many sentences of `width` tokens a batch holds."""
  sentences = batch_size // width // divisor * divisor
  if not sentences:
    raise InputError(
      f"--batch_size={batch_size} tokens cannot hold "
      + ("one sentence" if divisor == 1 else f"{divisor} sentences, one a GPU,")
      + f" of --max_length={max_length}: raise the one above "
      f"{width * divisor - 1} or lower the other"
    )
  return sentences


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
  dataset: tf.data.Dataset, batch_size: int, max_length: int, divisor: int = 1
) -> tf.data.Dataset:
  """Drops what is too long and groups the rest into padded batches."""
  dataset = dataset.filter(lambda x, y: _length(x, y) <= max_length)
  return dataset.bucket_by_sequence_length(
    _length,
    bucket_boundaries=bucket_boundaries(max_length),
    bucket_batch_sizes=bucket_batch_sizes(batch_size, max_length, divisor),
  )


def _batch_statically(
  dataset: tf.data.Dataset, batch_size: int, max_length: int, divisor: int
) -> tf.data.Dataset:
  """Pads everything to one shape, [batch_size // max_length, max_length]."""
  return dataset.filter(lambda x, y: _length(x, y) <= max_length).padded_batch(
    static_batch_sentences(batch_size, max_length, divisor),
    ([max_length], [max_length]),
    drop_remainder=True,
  )


def synthetic_dataset(
  batch_size: int, max_length: int, divisor: int = 1
) -> tf.data.Dataset:
  """Returns endless batches of ones, to measure a model without its data."""
  sentences = static_batch_sentences(batch_size, max_length, divisor)
  ones = tf.ones([sentences, max_length], tf.int64)
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
  divisor: int = 1,
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
    divisor: of the number of sentences in each batch.
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
  dataset = batch(dataset, batch_size, max_length, divisor)
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


def length_histogram(paths: Sequence[str]) -> dict[int, int]:
  """Counts the examples of each length, that of their longer side."""
  shards = tf.data.Dataset.from_tensor_slices(list(paths))
  lengths = _read(shards, num_parallel_calls=0).map(_length)
  return dict(collections.Counter(map(int, lengths.as_numpy_iterator())))


def count_batches(
  histogram: Mapping[int, int],
  batch_size: int,
  max_length: int,
  divisor: int = 1,
  static_batch: bool = False,
) -> int:
  """Returns how many batches examples of these lengths fill.

  Args:
    histogram: number of examples by length, that of their longer side.
    batch_size: tokens in a batch.
    max_length: longer examples are dropped.
    divisor: of the number of sentences in each batch.
    static_batch: whether all batches have one shape.
  """
  if static_batch:
    bounds = [max_length + 1]
    sizes = [static_batch_sentences(batch_size, max_length, divisor)]
  else:
    bounds = [*bucket_boundaries(max_length), max_length + 1]
    sizes = bucket_batch_sizes(batch_size, max_length, divisor)
  examples = [0] * len(bounds)
  for length, number in histogram.items():
    if length <= max_length:
      examples[bisect.bisect_right(bounds, length)] += number
  return sum(n // size for n, size in zip(examples, sizes, strict=True))


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
