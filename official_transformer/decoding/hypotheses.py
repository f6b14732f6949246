"""Results of a search."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from official_transformer.model_params import EOS_ID, PAD_ID


@dataclasses.dataclass(frozen=True)
class FoundSequence:
  """A hypothesis.

  Attributes:
    ids: tokens of the hypothesis, without EOS.
    score: normalised by length if `finished`, else its log-probability.
    finished: whether the model ended it with EOS, below its limit.
    utility: mean chrF to all hypotheses, itself included, 0 to 100, if `mbr`
      was asked for.
  """

  ids: list[int]
  score: float
  finished: bool
  utility: float | None = None


def found_sequences(
  rows: Iterable[Sequence[int]],
  scores: Iterable[float],
  finished: Sequence[bool],
) -> list[FoundSequence]:
  """Returns a sentence's hypotheses: the finished ones, if there are any.

  Args:
    rows: ids of each, which may go on after EOS.
    scores: score of each row.
    finished: whether each row has ended by EOS.
  """
  return [
    FoundSequence(without_end(ids), float(score), bool(flag))
    for ids, score, flag in zip(rows, scores, finished, strict=True)
    if flag or not any(finished)
  ]


def without_end(ids: Iterable[int]) -> list[int]:
  """Returns the ids before EOS, without PAD."""
  before_end = itertools.takewhile(lambda i: i != EOS_ID, ids)
  return [i for i in before_end if i != PAD_ID]


def as_one_line(text: str) -> str:
  """Returns a translation without the line feeds a vocabulary can spell."""
  return " ".join(text.replace("\r", "\n").split("\n"))
