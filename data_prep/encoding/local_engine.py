"""Records and shards, by the processes of one machine.

They encode blocks of the text, then gather each shard from the files of all
blocks. Files of an interrupted run are not made again.
"""

from __future__ import annotations

import collections
import functools
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from absl import logging

from data_prep.encoding.making import (
  Made,
  Making,
  directory_beside,
  is_publishing,
  report,
)
from data_prep.encoding.pair_encoder import EncodingPlan, PairEncoder
from data_prep.encoding.shuffle import (
  Order,
  ShuffledCorpus,
  Statistics,
  find_duplicates,
  is_written,
  write_block,
)
from data_prep.encoding.workers import Workers
from data_prep.reading.text_blocks import Block, read_blocks
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import copy_file

# Up to here one process gathers the shards sooner than others are started.
_FEW_BYTES = 1 << 24
_SAID_EVERY = 30.0  # Seconds.


class _Encoded(NamedTuple):
  """A corpus whose records are made, in the order of its blocks.

  Attributes:
    tag: `train` or `dev`.
    blocks: blocks of its records.
    statistics: statistics of the corpus.
  """

  tag: str
  blocks: ShuffledCorpus
  statistics: Statistics


def make_locally(making: Making) -> Made:
  """Writes all shards by processes of this machine; an `Engine`."""
  # Development data first, so that their faults are found at once.
  encoded = {tag: _encode(tag, making) for tag in sorted(making.corpora)}
  shards = [path for part in encoded.values() for path in _gather(part, making)]
  return Made({tag: part.statistics for tag, part in encoded.items()}, shards)


def _encode(tag: str, making: Making) -> _Encoded:
  """Makes one corpus' records, as far as they are not there."""
  plan, order, scratch = making.plans[tag], making.order(tag), making.scratch
  paths: list[str] = []

  def to_do() -> Iterator[tuple[str, Block]]:
    for block in read_blocks(making.corpora[tag]):
      paths.append(scratch.path(f"{tag}-{block.number:06d}"))
      if not is_written(paths[-1]):
        yield paths[-1], block

  pairs = 0
  began = said = time.monotonic()
  for read in Workers(making.settings.workers).each(
    functools.partial(_BlockWriter, plan, order), _BlockWriter.write, to_do()
  ):
    pairs += read
    if time.monotonic() - said > _SAID_EVERY:
      said = time.monotonic()
      logging.info(
        "%s: %d pairs read, %d a second", tag, pairs, pairs / (said - began)
      )
  blocks = ShuffledCorpus(scratch.path(tag), order, paths)
  duplicates = np.zeros(0, np.int64)
  if plan.filters.duplicates and paths:
    duplicates = find_duplicates(paths)
  statistics = blocks.join_indices(duplicates)
  report(tag, statistics)
  return _Encoded(tag, blocks, statistics)


class _BlockWriter:
  """The inputs of a process that makes records of blocks."""

  def __init__(self, plan: EncodingPlan, order: Order) -> None:
    self._encoder = PairEncoder(plan)
    self._order = order

  def write(self, item: tuple[str, Block]) -> int:
    """Writes a block's records; returns the number of pairs it has."""
    path, block = item
    write_block(path, self._encoder.encode(block), self._order)
    return len(block.sources)


def _gather(part: _Encoded, making: Making) -> list[str]:
  """Writes a corpus' shards, as far as they are not there.

  Returns:
    The paths of the shards that are not in their place yet.
  """
  settings, blocks, scratch = making.settings, part.blocks, making.scratch
  paths = [
    (shard, scratch.path(name))
    for shard, name in enumerate(making.shard_names(part.tag))
    if not is_publishing(scratch)
    or not file_system.exists(os.path.join(settings.data_dir, name))
  ]
  few = part.statistics.bytes < _FEW_BYTES
  written = Workers(1 if few else settings.workers).each(
    functools.partial(
      ShuffledCorpus, blocks.path, blocks.order, blocks.block_paths
    ),
    _write_shard,
    [(shard, path) for shard, path in paths if not os.path.exists(path)],
  )
  if not file_system.is_remote(settings.data_dir):
    collections.deque(written, maxlen=0)
    return [path for _, path in paths]
  beside = directory_beside(making)
  uploaded = []
  for path in written:
    uploaded.append(os.path.join(beside, os.path.basename(path)))
    copy_file(path, uploaded[-1])
    os.remove(path)
  return uploaded


def _write_shard(blocks: ShuffledCorpus, item: tuple[int, str]) -> str:
  shard, path = item
  blocks.write_shard(shard, path)
  return path
