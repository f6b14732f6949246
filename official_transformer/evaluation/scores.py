"""All the scores of one translation, and how they are shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from official_transformer.evaluation.bleu import (
  SacrebleuScore,
  official_bleu,
  sacrebleu_scores,
)

VARIANTS = ("uncased", "cased")


@dataclasses.dataclass(frozen=True)
class Scores:
  """Scores of a translation, each from 0 to 100.

  Attributes:
    uncased: the official model's BLEU, case ignored.
    cased: the same with case.
    sacrebleu: BLEU and chrF2 with their signatures.
  """

  uncased: float
  cased: float
  sacrebleu: list[SacrebleuScore]

  def report(self, variants: Sequence[str] = VARIANTS) -> str:
    """Returns the scores as lines of text.

    Args:
      variants: which of the official scores to show, `uncased` or `cased`.
    """
    lines = []
    if "uncased" in variants:
      lines.append(f"Case-insensitive results: {self.uncased:.6f}")
    if "cased" in variants:
      lines.append(f"Case-sensitive results: {self.cased:.6f}")
    lines += [
      f"sacreBLEU {s.name}|{s.signature} = {s.score:.2f}"
      for s in self.sacrebleu
    ]
    return "\n".join(lines)

  def scalars(self) -> dict[str, float]:
    """Returns the scores under short names."""
    return {
      "bleu_uncased": self.uncased,
      "bleu_cased": self.cased,
      **{f"sacrebleu_{s.name}": s.score for s in self.sacrebleu},
    }


def score(references: Sequence[str], translations: Sequence[str]) -> Scores:
  """Scores a translation.

  Raises:
    ValueError: if the numbers of lines differ.
  """
  return Scores(
    official_bleu(references, translations, case_sensitive=False),
    official_bleu(references, translations, case_sensitive=True),
    sacrebleu_scores(references, translations),
  )
