"""Shapes of batches: one for each range of lengths, or one for all examples.

Examples of similar length share a batch, and a batch has as many as fit into a
budget of tokens, so that little of it is padding and every batch costs about
the same.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from official_transformer.errors import InputError

MIN_BOUNDARY = 8
BOUNDARY_SCALE = 1.1
_MOST = 2**40


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


class BatchShape(NamedTuple):
  """Number and length of the examples of a batch.

  Attributes:
    sentences: pairs in it.
    length: tokens of the longest side.
  """

  sentences: int
  length: int


@dataclasses.dataclass(frozen=True)
class Batching:
  """Settings that decide, with a seed, which examples each step trains on.

  Attributes:
    batch_size: tokens a batch may hold, padding included, on its longer side.
    max_length: longest example, EOS included; longer ones are dropped.
    static_batch: whether all batches have one shape, [batch_size //
      max_length, max_length].
    batch_divisor: divisor of the number of sentences in each batch, so that
      replicas get equal shares.
    accumulate_steps: batches whose gradients make one update.

  Raises:
    InputError: if a number is out of range, or a batch cannot hold one example
      of the greatest length.
  """

  batch_size: int
  max_length: int
  static_batch: bool = False
  batch_divisor: int = 1
  accumulate_steps: int = 1

  def __post_init__(self) -> None:
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if field.type == "int" and not 1 <= value <= _MOST:
        raise InputError(f"{field.name} is {value}, must be in [1, {_MOST}]")
    if 0 in self.sizes:
      each = (
        "one sentence"
        if self.batch_divisor == 1
        else f"{self.batch_divisor} sentences, one a replica,"
      )
      least = self._widths[-1] * self.batch_divisor
      raise InputError(
        f"--batch_size={self.batch_size} tokens cannot hold {each} of "
        f"--max_length={self.max_length}: raise the one to {least} or lower "
        "the other"
      )

  @property
  def bounds(self) -> list[int]:
    """The exclusive upper bounds of all buckets."""
    inner = [] if self.static_batch else bucket_boundaries(self.max_length)
    return [*inner, self.max_length + 1]

  @property
  def _widths(self) -> list[int]:
    """The tokens that a sentence counts for, by bucket."""
    return [self.max_length] if self.static_batch else self.bounds

  @property
  def sizes(self) -> list[int]:
    """The number of sentences in a batch of each bucket."""
    divisor = self.batch_divisor
    return [
      self.batch_size // width // divisor * divisor for width in self._widths
    ]

  @property
  def tokens_per_update(self) -> int:
    """Tokens that one update's batches may hold."""
    return self.batch_size * self.accumulate_steps

  def sentences_of(self, length: int) -> int:
    """Returns the sentences in a batch of examples of one length."""
    return self.sizes[bisect.bisect_right(self.bounds, length)]

  def largest_batches(
    self, lengths: Iterable[int], growth: float = 1.0
  ) -> list[BatchShape]:
    """Returns the shapes of the batches that may need most memory.

    A batch takes memory by its tokens, and for the attention between them by
    the square of their length too.

    Args:
      lengths: lengths of the examples that there are, one of them within
        `max_length`.
      growth: largest factor by which other segmentations make an example longer
        after it is in a batch; `max_length` bounds the result.
    """
    shapes = [
      BatchShape(
        self.sentences_of(n), min(math.ceil(n * growth), self.max_length)
      )
      for n in lengths
      if n <= self.max_length
    ]
    if self.static_batch:
      return [max(shapes, key=lambda shape: shape.length)]
    tokens = max(shapes, key=lambda s: (s.sentences * s.length, s.length))
    squares = max(shapes, key=lambda s: (s.sentences * s.length**2, s.length))
    return sorted({tokens, squares}, key=lambda s: s.length, reverse=True)

  def count_updates(self, histogram: Mapping[int, int]) -> int:
    """Returns how many updates' batches examples fill.

    Args:
      histogram: number of examples by the length of their longer side.
    """
    examples = [0] * len(self.bounds)
    for length, number in histogram.items():
      if length <= self.max_length:
        examples[bisect.bisect_right(self.bounds, length)] += number
    batches = sum(
      n // size for n, size in zip(examples, self.sizes, strict=True)
    )
    return batches // self.accumulate_steps
