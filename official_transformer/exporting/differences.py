"""How far the log-probabilities of an export are from the model's."""

from __future__ import annotations

import numpy as np

from official_transformer.errors import RunError

# How far the log-probability of a token may be from the model's in float32, in
# the mean of all and of each.
MEAN_TOLERANCE = 1e-4
TOLERANCE = 1e-3


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
