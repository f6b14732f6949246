"""Differences between the log-probabilities of an export and of its model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import RunError
from official_transformer.exporting.verification import BATCH_SIZE, Samples

# How far the log-probability of a token may be from the model's in float32, in
# the mean of all and of each.
MEAN_TOLERANCE = 1e-4
TOLERANCE = 1e-3


class Rounding(NamedTuple):
  """The mean effect of rounding on the log-probability of a token.

  Attributes:
    coarse: a larger difference is warned about: few trained models reach it.
    broken: more than this is refused: it is no rounding.
  """

  coarse: float
  broken: float


# Bounds by the type of the weights or of the computation, the coarsest first.
# In int8, a model of Multi30k differs by 0.017, and models of 20 to 150 steps
# by 0.05 to 0.3.
ROUNDINGS = {
  "int8": Rounding(0.25, 1.0),
  "bfloat16": Rounding(0.05, 0.5),
  "int16": Rounding(0.02, 0.2),
  "float16": Rounding(0.01, 0.1),
}


def own_scores(model: LoadedModel, samples: Samples) -> np.ndarray:
  """Returns the model's log-probability of each token of the translations."""
  pairs = samples.pairs
  scorer = Scorer(model.transformer, model.tokenizers)
  return np.concatenate(
    [
      score.token_log_probabilities
      for start in range(0, len(pairs), BATCH_SIZE)
      for score in scorer.score_batch(pairs[start : start + BATCH_SIZE])
    ]
  )


def require_equal(differences: np.ndarray, how: str) -> None:
  """Refuses log-probabilities that differ from the model's."""
  # NaN is not within anything.
  if not (
    differences.mean() <= MEAN_TOLERANCE and differences.max() <= TOLERANCE
  ):
    raise refusal(difference(differences, how))


def refusal(why: str) -> RunError:
  """Returns the error of an export that does not score as its model."""
  return RunError(
    f"the export does not score as the model does, and was removed: {why}"
  )


def difference(differences: np.ndarray, how: str) -> str:
  """Returns how far log-probabilities are apart, as a finding."""
  return (
    f"{how}, the log-probabilities of {len(differences)} tokens differ from "
    f"the model's by {differences.mean():.1e} in the mean and by "
    f"{differences.max():.1e} at most"
  )


def coarse_rounding(
  differences: np.ndarray,
  quantization: str,
  how: str,
  rounding: Rounding,
  remedy: str,
) -> str | None:
  """Returns that rounding costs much, if it does.

  Args:
    differences: differences of log-probabilities from the model's.
    quantization: the type that weights are rounded to.
    how: how the differences were computed; the finding begins with it.
    rounding: bounds of a large and of a broken difference.
    remedy: advice for the user.

  Raises:
    RunError: if the differences are too large for rounding.
  """
  mean = differences.mean()
  if not mean <= rounding.broken:
    raise refusal(
      f"{difference(differences, how)}, which rounding to {quantization} does "
      f"not account for; {remedy}"
    )
  if mean <= rounding.coarse:
    return None
  return (
    f"{quantization} is coarse for this model: {how}, a token's "
    f"log-probability differs by {mean:.2f} in the mean, where "
    f"{rounding.coarse:g} is much; compare BLEU before it is used, or "
    f"{remedy}"
  )
