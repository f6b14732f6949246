"""Writing tokenized pairs as shuffled TFRecord shards."""

from __future__ import annotations

import collections
import contextlib
import os
import random
from collections.abc import Iterable, Sequence

import tensorflow as tf

from official_transformer.data.data_directory import shard_name
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import new_file

Pair = tuple[Sequence[int], Sequence[int]]


def serialize_pair(pair: Pair) -> bytes:
  """Returns a `tf.train.Example` of `inputs` and `targets`, int64 lists."""
  features = {
    name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
    for name, ids in zip(("inputs", "targets"), pair, strict=True)
  }
  example = tf.train.Example(features=tf.train.Features(feature=features))
  # Features are a map, whose order else changes from process to process.
  return example.SerializeToString(deterministic=True)


def write_shards(
  pairs: Iterable[Pair],
  data_dir: str,
  prefix: str,
  tag: str,
  shards: int,
  seed: int | None,
) -> dict[int, int]:
  """Writes pairs to shards, aside first, so that a half-made one never shows.

  Args:
    pairs: ids of both sides, ending in EOS.
    data_dir: where to write.
    prefix: how the names begin.
    tag: `train` or `dev`.
    shards: how many files.
    seed: of the shuffle; None keeps the order, round-robin over the shards.

  Returns:
    How many pairs have each length, that of their longer side.

  Raises:
    OSError: if the system refuses.
  """
  names = [shard_name(prefix, tag, n + 1, shards) for n in range(shards)]
  rng = random.Random(seed)
  histogram: collections.Counter[int] = collections.Counter()
  try:
    with contextlib.ExitStack() as files:
      asides = [
        files.enter_context(new_file(os.path.join(data_dir, name)))
        for name in names
      ]
      writers = [tf.io.TFRecordWriter(aside) for aside in asides]
      for number, pair in enumerate(pairs):
        shard = number % shards if seed is None else rng.randrange(shards)
        writers[shard].write(serialize_pair(pair))
        histogram[max(map(len, pair))] += 1
      for writer in writers:
        writer.close()
      if seed is not None:
        for aside in asides:
          _shuffle(aside, rng)
  except tf.errors.OpError as error:  # A full disk, too many open files.
    raise OSError(f"cannot write {data_dir}: {error.message}") from None
  return dict(histogram)


def _shuffle(path: str, rng: random.Random) -> None:
  """Shuffles the records of one shard, which must fit into memory."""
  records = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
  rng.shuffle(records)
  # Not every file system begins a file anew that is written again.
  file_system.remove_file(path)
  with tf.io.TFRecordWriter(path) as writer:
    for record in records:
      writer.write(record)
