"""How far the log-probabilities of an export are from the model's."""

from __future__ import annotations

import numpy as np

from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import RunError
from official_transformer.exporting.verification import BATCH_SIZE, Samples

# How far the log-probability of a token may be from the model's in float32, in
# the mean of all and of each.
MEAN_TOLERANCE = 1e-4
TOLERANCE = 1e-3


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
  """Refuses log-probabilities that are not the model's."""
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
