"""Shards of given pairs, and blocks of them."""

import collections
import os
import random
from collections.abc import Iterable, Sequence

import numpy as np

from data_prep.encoding.pair_encoder import EncodedBlock
from data_prep.encoding.records import framed, serialize_pair
from official_transformer.data.data_directory import shard_name

Pair = tuple[Sequence[int], Sequence[int]]


def encoded_block(pairs: Sequence[Pair], first: int = 0) -> EncodedBlock:
  """Returns a block of pairs with nothing left out."""
  return EncodedBlock(
    [framed(serialize_pair(*pair)) for pair in pairs],
    np.arange(first, first + len(pairs)),
    np.array([[len(ids) for ids in pair] for pair in pairs], np.int32).reshape(
      -1, 2
    ),
    np.zeros(0, np.uint64),
    {},
    kept_pairs=len(pairs),
    several_sentences=0,
  )


def write_shards(
  pairs: Iterable[Pair],
  data_dir: str,
  prefix: str,
  tag: str,
  shards: int,
  seed: int | None,
) -> dict[int, int]:
  """Writes pairs to shards; returns how many have each length.

  Args:
    pairs: ids of both sides, ending in EOS.
    data_dir: where to write.
    prefix: how the names begin.
    tag: `train` or `dev`.
    shards: how many files.
    seed: of the shuffle; None keeps the order, in one shard.
  """
  rng = random.Random(seed)
  histogram: collections.Counter[int] = collections.Counter()
  records: list[list[bytes]] = [[] for _ in range(shards)]
  for pair in pairs:
    shard = 0 if seed is None else rng.randrange(shards)
    records[shard].append(framed(serialize_pair(*pair)))
    histogram[max(map(len, pair))] += 1
  for number, content in enumerate(records, start=1):
    if seed is not None:
      rng.shuffle(content)
    name = shard_name(prefix, tag, number, shards)
    with open(os.path.join(data_dir, name), "wb") as stream:
      stream.write(b"".join(content))
  return dict(histogram)
