"""The sample of the text from which vocabularies are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from data_prep.encoding.pair_encoder import CleanPairs, PairCleaner
from data_prep.encoding.shuffle import shuffle_keys
from data_prep.reading.text_blocks import Block


class _Drawn(NamedTuple):
  """A pair that may be part of the sample."""

  key: int
  pair: int
  source: bytes
  target: bytes | None


def sample_pairs(
  blocks: Iterable[Block], cleaner: PairCleaner, most: int, seed: int
) -> Iterator[CleanPairs]:
  """Yields pairs of a corpus in its order: all, or as many as asked for.

  The pairs with the lowest keys of a shuffle are drawn, so that at most about
  twice the wanted pairs are in memory; pairs that the cleaner leaves out are
  then missing.

  Args:
    blocks: the corpus.
    cleaner: cleaner of its text.
    most: pairs to draw; 0 is all.
    seed: seed of the keys.

  Raises:
    InputError: as `PairCleaner.clean`, wherever the line is.
  """
  if not most:
    yield from map(cleaner.clean, blocks)
    return
  drawn: list[_Drawn] = []
  bound = np.uint64(np.iinfo(np.uint64).max)
  for block in blocks:
    _check_encoding(block, cleaner)
    numbers = np.arange(len(block.sources)) + block.first_pair
    keys = shuffle_keys(numbers, seed)
    for row in np.flatnonzero(keys <= bound).tolist():
      target = block.targets[row] if block.targets is not None else None
      drawn.append(
        _Drawn(int(keys[row]), int(numbers[row]), block.sources[row], target)
      )
    if len(drawn) > 2 * most:
      drawn = sorted(drawn)[:most]
      bound = np.uint64(drawn[-1].key)
  drawn = sorted(sorted(drawn)[:most], key=lambda d: d.pair)
  for have_target in (True, False):
    chosen = [d for d in drawn if (d.target is not None) == have_target]
    if chosen:
      yield cleaner.clean(_as_block(chosen))


def _as_block(drawn: list[_Drawn]) -> Block:
  sources = [_ended(d.source) for d in drawn]
  targets = [_ended(d.target) for d in drawn if d.target is not None]
  return Block(0, 0, "sample", "sample", 1, sources, targets or None)


def _ended(line: bytes) -> bytes:
  """Returns a line with its end: the last of a file may have none."""
  return line if line.endswith(b"\n") else line + b"\n"


def _check_encoding(block: Block, cleaner: PairCleaner) -> None:
  """Raises early for lines that are not UTF-8, with their numbers."""
  for lines in (block.sources, block.targets or ()):
    try:
      b"".join(lines).decode("utf-8")
    except UnicodeDecodeError:
      cleaner.clean(block)
      return
