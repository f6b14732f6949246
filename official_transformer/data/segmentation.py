"""Settings of subword sampling, without TensorFlow, because flags need them."""

from __future__ import annotations

import dataclasses

from official_transformer.errors import InputError

SIDES = ("both", "source", "target")


@dataclasses.dataclass(frozen=True)
class SubwordSampling:
  """Settings of subword sampling.

  Attributes:
    alpha: for a unigram model, how much better segmentations are preferred: 0
      is not at all; for BPE, the probability that a merge is left out.
    nbest: for a unigram model, how many of the best are drawn from; -1 is all.
    sides: of which text, one of `SIDES`.
  """

  alpha: float
  nbest: int = 64
  sides: str = "both"

  def __post_init__(self) -> None:
    if not 0 <= self.alpha <= 10:
      raise InputError(f"sampling_alpha is {self.alpha}, must be in [0, 10]")
    # SentencePiece takes no more.
    if self.nbest != -1 and not 2 <= self.nbest <= 512:
      raise InputError(
        f"sampling_nbest is {self.nbest}: give -1 for all segmentations, or 2 "
        "to 512"
      )
