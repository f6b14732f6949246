"""Proving a CTranslate2 model, and telling how to use it bare.

CTranslate2's search divides log-probabilities by another power of the length
than ours, and stops elsewhere: translations differ on some lines. What must be
equal is the probability of given translations; what its user is told is the
setting with which most translations are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from official_transformer.decoding.ctranslate2_model import both_entries
from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import RunError
from official_transformer.exporting.verification import (
  BATCH_SIZE,
  Samples,
  read_back,
)
from official_transformer.model.beam_search import enough
from official_transformer.model_params import (
  EOS_ID,
  PAD_ID,
  TransformerParams,
)

LENGTH_PENALTIES = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# How far the log-probability of a token may be from the model's, in the mean
# of all, by how the weights are kept.
MEAN_TOLERANCES = {
  "float32": 1e-4,
  "float16": 0.01,
  "int16": 0.02,
  "bfloat16": 0.05,
  "int8": 0.25,
  "int8_float16": 0.25,
}
# Of each token, if they are kept as they are.
TOLERANCE = 1e-3


class Verified(NamedTuple):
  """What was found of a CTranslate2 model.

  Attributes:
    setting: arguments of `translate_batch` that come nearest to our search.
    findings: what was proven, and how near that is.
  """

  setting: str
  findings: list[str]


def verify_ctranslate2(
  model: LoadedModel, directory: str, samples: Samples, quantization: str
) -> Verified:
  """Compares scores, and measures settings.

  Returns:
    What was found.

  Raises:
    RunError: if scores differ by more than rounding accounts for.
  """
  params = model.transformer.params
  sources, entries = both_entries(model.tokenizers, params)
  pairs = [
    (source, [*found.ids, EOS_ID])
    for source, (found, *_) in zip(samples.ids, samples.found, strict=True)
  ]
  answers = read_back(
    "ctranslate2",
    directory,
    {
      "sources": [[sources[i] for i in source[:-1]] for source, _ in pairs],
      "targets": [[entries[i] for i in target[:-1]] for _, target in pairs],
      "batch_size": BATCH_SIZE,
      "beam_size": params.beam_size,
      "patience": _patience(params),
      "length_penalties": LENGTH_PENALTIES,
      "longest": _longest(samples, params),
    },
  )
  scorer = Scorer(model.transformer, model.tokenizers)
  expected = [
    score.token_log_probabilities
    for start in range(0, len(pairs), BATCH_SIZE)
    for score in scorer.score_batch(pairs[start : start + BATCH_SIZE])
  ]
  differences = np.abs(
    np.concatenate(answers["scores"]) - np.concatenate(expected)
  )
  _require_equal_scores(differences, quantization)
  wanted = [
    [entries[i] for i in found.ids if i != PAD_ID]
    for found, *_ in samples.found
  ]
  equal = {
    penalty: sum(map(list.__eq__, translations, wanted))
    for penalty, translations in answers["translations"].items()
  }
  best = max(equal, key=equal.__getitem__)
  setting = f"beam_size={params.beam_size}, length_penalty={best}"
  if params.patience:
    setting += f", patience={_patience(params):g}"
  findings = [
    f"the log-probabilities of {len(differences)} tokens in {len(pairs)} "
    f"sentences differ from the model's by {differences.mean():.1e} in the "
    f"mean and by {differences.max():.1e} at most",
    f"with {setting}, its own search translates {equal[best]} of {len(pairs)} "
    "sentences as the model's does ("
    + ", ".join(f"{n} with {penalty}" for penalty, n in equal.items())
    + ")",
  ]
  return Verified(setting, findings)


def _require_equal_scores(differences: np.ndarray, quantization: str) -> None:
  """Refuses log-probabilities that rounding alone does not account for."""
  exact = quantization == "float32"
  # NaN is not within anything.
  if not differences.mean() <= MEAN_TOLERANCES[quantization] or (
    exact and not differences.max() <= TOLERANCE
  ):
    raise RunError(
      "the export does not score as the model does, and was removed: a token's "
      f"log-probability differs by {differences.mean():.4f} in the mean and by "
      f"{differences.max():.4f} at most"
    )


def _patience(params: TransformerParams) -> float:
  """Returns CTranslate2's; its own is 1, and none is too short to end."""
  if not params.patience:
    return 1.0
  return enough(params.beam_size, params.patience) / params.beam_size


def _longest(samples: Samples, params: TransformerParams) -> int:
  """Returns the most tokens that a translation of samples may have."""
  longest = max(map(len, samples.ids)) + params.extra_decode_length
  return min(longest, params.longest_output or longest)
