"""Measures what a run waits for before its first batch, at any step.

  python benchmarks/data_start.py --lengths=data/data.json --pairs=4500000 \
    --step=400000

Writes synthetic pairs into a scratch directory, their lengths drawn as those
that a data.json describes, and prints one JSON object: seconds to read all
records, without and with one that is bad; seconds to the first batch of a new
run and of one that goes on; batches and pairs a second after that.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from data_prep.encoding.records import serialize_pair
from official_transformer.data.buckets import Batching
from official_transformer.data.data_pipeline import train_dataset
from official_transformer.data.record_check import check_records

VOCAB_SIZE = 4000
SHARDS = 100
BATCHES = 3000
# As many different pairs, drawn again and again.
POOL = 50_000


def write(directory: str, histogram: dict[str, int], pairs: int) -> None:
  """Writes the shards."""
  rng = np.random.default_rng(0)
  lengths = np.array([int(n) for n in histogram])
  weights = np.array(list(histogram.values()), float)
  drawn = rng.choice(lengths, POOL, p=weights / weights.sum())
  pool = [
    serialize_pair(
      [*rng.integers(3, VOCAB_SIZE, n - 1).tolist(), 1],
      [*rng.integers(3, VOCAB_SIZE, max(1, n - 3)).tolist(), 1],
    )
    for n in drawn
  ]
  for shard in range(SHARDS):
    path = f"{directory}/x-train-{shard + 1:05d}-of-{SHARDS:05d}"
    with tf.io.TFRecordWriter(path) as writer:
      for number in rng.integers(0, POOL, pairs // SHARDS):
        writer.write(pool[number])


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
  """Returns a function's result and the seconds it took."""
  start = time.perf_counter()
  return function(), time.perf_counter() - start


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--lengths", required=True, help="a data.json")
  parser.add_argument("--pairs", type=int, default=4_500_000)
  parser.add_argument("--step", type=int, default=400_000)
  parser.add_argument("--batch_size", type=int, default=2048)
  arguments = parser.parse_args()
  with open(arguments.lengths, encoding="utf-8") as stream:
    histogram = json.load(stream)["train"]["length_histogram"]
  with tempfile.TemporaryDirectory() as directory:
    write(directory, histogram, arguments.pairs)
    paths = sorted(glob.glob(os.path.join(directory, "*")))
    check_records(paths[:1], VOCAB_SIZE)  # Traces it.
    check, seconds = timed(lambda: check_records(paths, VOCAB_SIZE))
    found = {"pairs": check.pairs, "read_seconds": seconds}
    batching = Batching(arguments.batch_size, 256)
    for name, step in (("new", 0), ("resumed", arguments.step)):

      def first(step: int = step) -> Any:
        batches = iter(train_dataset(check.index, batching, 1, step))
        next(batches)
        return batches

      batches, found[f"{name}_first_batch_seconds"] = timed(first)

      def some(batches: Any = batches) -> int:
        return sum(next(batches)[0].shape[0] for _ in range(BATCHES))

      sentences, seconds = timed(some)
      found[f"{name}_batches_per_second"] = BATCHES / seconds
      found[f"{name}_pairs_per_second"] = sentences / seconds
    with tf.io.TFRecordWriter(f"{directory}/bad") as writer:
      writer.write(serialize_pair([1], [5, 1]))
    check, found["read_with_a_bad_record_seconds"] = timed(
      lambda: check_records([*paths, f"{directory}/bad"], VOCAB_SIZE)
    )
    assert len(check.problems) == 1
  print(json.dumps(found))


if __name__ == "__main__":
  main()
