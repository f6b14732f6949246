"""Windows of lines, and batches of lines of similar length.

A stream is cut into windows, a window is sorted by length and cut into
batches: little is padding, and memory is bounded by the window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from official_transformer.errors import InputError
from official_transformer.model_params import PAD_ID

Item = TypeVar("Item")
Result = TypeVar("Result")

# A window ends at either.
WINDOW_ITEMS = 2048
WINDOW_SIZE = 1 << 20
_USUAL_BEAM = 4


@dataclasses.dataclass(frozen=True)
class BatchLimits:
  """How large a batch may be.

  Attributes:
    tokens: the number of lines times the tokens of the longest; a longer line
      is a batch of its own.
    lines: most lines. What a short line takes is less its own tokens than
      those it may be translated to.
  """

  tokens: int = 2048
  lines: int = 128

  def __post_init__(self) -> None:
    for name in ("tokens", "lines"):
      value = getattr(self, name)
      if value < 1:
        raise InputError(f"{name} is {value}, must be at least 1")

  def for_beam(self, beam_size: int) -> BatchLimits:
    """Returns the limits for so many hypotheses a line.

    Up to a beam of 4 they are these; the lines of a batch with a larger one are
    as many fewer, so that its hypotheses are no more.
    """
    share = max(beam_size, _USUAL_BEAM)
    return BatchLimits(
      max(1, self.tokens * _USUAL_BEAM // share),
      max(1, self.lines * _USUAL_BEAM // share),
    )

  def size(self, longest: int) -> int:
    """Returns the lines of a batch whose longest line has so many tokens."""
    return min(self.lines, max(1, self.tokens // max(1, longest)))


def check_n_best(n_best: int, beam_size: int) -> None:
  """Raises an `InputError` if a beam finds fewer hypotheses than are wanted."""
  if n_best > beam_size:
    raise InputError(
      f"n_best is {n_best}, but a beam of {beam_size} finds no more hypotheses "
      "than that; raise beam_size"
    )


def windows(
  items: Iterable[Item], size: Callable[[Item], int]
) -> Iterator[list[Item]]:
  """Cuts a stream into lists of up to `WINDOW_ITEMS` items.

  Args:
    items: as they come.
    size: of an item; a window ends if their sum exceeds `WINDOW_SIZE`.
  """
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
    lengths: of the items, in tokens.
    limits: of a batch.
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
    length: of an item, in tokens.
    limits: of a batch.
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
    rows: the least number of rows; those beyond the sequences hold PAD.
  """
  width = max(width, *map(len, sequences))
  batch = np.full([max(rows, len(sequences)), width], PAD_ID, np.int32)
  for row, ids in enumerate(sequences):
    batch[row, : len(ids)] = ids
  return batch
