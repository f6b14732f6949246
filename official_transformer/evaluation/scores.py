"""All the scores of one translation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from official_transformer.evaluation.bleu import official_bleu
from official_transformer.evaluation.comet import CometScore
from official_transformer.evaluation.metrics import (
  MetricScore,
  MetricSettings,
  References,
  corpus_scores,
  create_metrics,
)

VARIANTS = ("uncased", "cased")
# Metrics of evaluations during training, which must be fast.
IN_TRAINING = MetricSettings(metrics=("bleu", "chrf"), resamples=0)


@dataclasses.dataclass(frozen=True)
class Scores:
  """Scores of a translation.

  Attributes:
    uncased: the official model's BLEU, case ignored, from 0 to 100.
    cased: the same with case.
    sacrebleu: sacreBLEU's metrics, with their signatures.
    comet: score of a COMET model, if one was asked for.
  """

  uncased: float
  cased: float
  sacrebleu: list[MetricScore]
  comet: CometScore | None = None

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
    for found in self.sacrebleu:
      line = f"sacreBLEU {found.name}|{found.signature} = {found.score:.2f}"
      if found.interval:
        mean, half_width = found.interval
        line += f" (μ = {mean:.2f} ± {half_width:.2f})"
      lines.append(line)
    if self.comet:
      lines.append(f"COMET {self.comet.model} = {self.comet.score:.4f}")
    return "\n".join(lines)

  def scalars(self) -> dict[str, float]:
    """Returns the scores under short names."""
    return {
      "bleu_uncased": self.uncased,
      "bleu_cased": self.cased,
      **{f"sacrebleu_{s.name}": s.score for s in self.sacrebleu},
    }


def score(
  references: References,
  translations: Sequence[str],
  settings: MetricSettings,
) -> Scores:
  """Scores a translation.

  Official BLEU, which knows one reference, takes the first.

  Raises:
    ValueError: if the numbers of lines differ.
  """
  references.check(translations)
  return Scores(
    official_bleu(references.first, translations, case_sensitive=False),
    official_bleu(references.first, translations, case_sensitive=True),
    corpus_scores(
      create_metrics(settings, references), translations, settings.resamples
    ),
  )
