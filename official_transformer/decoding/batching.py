"""Batches of lines of similar length, and the caller's order again.

A stream is cut into windows, a window is sorted by length and cut into
batches: little is padding, and memory is bounded by the window.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from official_transformer.model_params import PAD_ID

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCHES_PER_WINDOW = 64
# Up to this many tokens a line, batches are full. Longer lines come in smaller
# batches: the memory of attention grows with the square of the length.
FULL_BATCH_LINE_LENGTH = 256


def windows(items: Iterable[Item], batch_size: int) -> Iterator[list[Item]]:
  """Cuts a stream into lists of up to `BATCHES_PER_WINDOW` full batches."""
  iterator = iter(items)
  size = BATCHES_PER_WINDOW * batch_size
  while window := list(itertools.islice(iterator, size)):
    yield window


def map_by_length(
  items: Sequence[Item],
  length: Callable[[Item], int],
  batch_size: int,
  process: Callable[[Sequence[Item]], Sequence[Result]],
) -> list[Result]:
  """Processes items in batches of similar length, longest first.

  Args:
    items: in any order.
    length: of an item, in tokens.
    batch_size: most items in a batch.
    process: maps a batch to as many results.

  Returns:
    The result of each item, in the order of `items`.
  """
  # Longest first: a lack of memory shows at once.
  order = sorted(
    range(len(items)), key=lambda i: length(items[i]), reverse=True
  )
  results: dict[int, Result] = {}
  while order:
    tokens = batch_size * FULL_BATCH_LINE_LENGTH
    size = max(1, min(batch_size, tokens // length(items[order[0]])))
    batch, order = order[:size], order[size:]
    found = process([items[i] for i in batch])
    results.update(zip(batch, found, strict=True))
  return [results[i] for i in range(len(items))]


def pad(sequences: Sequence[Sequence[int]], width: int = 0) -> np.ndarray:
  """Lays token lists out as int32 [len(sequences), longest], PAD behind them.

  Args:
    sequences: lists of ids.
    width: the least width.
  """
  width = max(width, *map(len, sequences))
  batch = np.full([len(sequences), width], PAD_ID, np.int32)
  for row, ids in enumerate(sequences):
    batch[row, : len(ids)] = ids
  return batch
