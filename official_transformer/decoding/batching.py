"""Windows of lines, and batches of lines of similar length.

A stream is cut into windows, a window is sorted by length and cut into
batches: little is padding, and memory is bounded by the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from official_transformer.decoding.options import BatchLimits
from official_transformer.model_params import PAD_ID

Item = TypeVar("Item")
Result = TypeVar("Result")

# A window ends at either.
WINDOW_ITEMS = 2048
WINDOW_SIZE = 1 << 20


def windows(
  items: Iterable[Item], size: Callable[[Item], int]
) -> Iterator[list[Item]]:
  """Cuts a stream into lists of up to `WINDOW_ITEMS` items.

  Args:
    items: as they come.
    size: size of an item; a window ends if their sum exceeds `WINDOW_SIZE`.

  Raises:
    TypeError: if the items are the characters of one string.
  """
  if isinstance(items, str):
    raise TypeError("one string is not a list of lines; pass [line]")
  window: list[Item] = []
  total = 0
  for item in items:
    window.append(item)
    total += size(item)
    if len(window) >= WINDOW_ITEMS or total >= WINDOW_SIZE:
      yield window
      window, total = [], 0
  if window:
    yield window


def batches_by_length(
  lengths: Sequence[int], limits: BatchLimits, parts: int = 1
) -> list[list[int]]:
  """Puts items of similar length together, the longest first.

  Args:
    lengths: lengths of the items, in tokens.
    limits: limits of a batch.
    parts: batches to make at least, if there are as many items.

  Returns:
    The indices of each batch's items.
  """
  # Longest first: a lack of memory shows at once.
  order = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
  share = -(-len(order) // parts)
  batches = []
  while order:
    size = min(limits.size(lengths[order[0]]), share)
    batches.append(order[:size])
    order = order[size:]
  return batches


def map_by_length(
  items: Sequence[Item],
  length: Callable[[Item], int],
  limits: BatchLimits,
  process: Callable[[Sequence[Item]], Sequence[Result]],
) -> list[Result]:
  """Processes items in batches of similar length, longest first.

  Args:
    items: in any order.
    length: length of an item, in tokens.
    limits: limits of a batch.
    process: maps a batch to as many results.

  Returns:
    The result of each item, in the order of `items`.
  """
  results: dict[int, Result] = {}
  for batch in batches_by_length([length(i) for i in items], limits):
    found = process([items[i] for i in batch])
    results.update(zip(batch, found, strict=True))
  return [results[i] for i in range(len(items))]


def pad(
  sequences: Sequence[Sequence[int]], width: int = 0, rows: int = 0
) -> np.ndarray:
  """Lays token lists out as int32 [len(sequences), longest], PAD behind them.

  Args:
    sequences: lists of ids.
    width: the least width.
    rows: the least number of rows; rows beyond the sequences contain PAD.
  """
  width = max(width, *map(len, sequences))
  batch = np.full([max(rows, len(sequences)), width], PAD_ID, np.int32)
  for row, ids in enumerate(sequences):
    batch[row, : len(ids)] = ids
  return batch
