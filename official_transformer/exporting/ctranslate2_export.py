"""Writing and proving a CTranslate2 model, and telling how to use it bare.

CTranslate2's search divides log-probabilities by another power of the length
than ours, and stops elsewhere: translations differ on some lines. What must be
equal is the probability of given translations, before weights are rounded;
what its user is told is what rounding makes of it, and the setting with which
most translations are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from official_transformer.decoding.ctranslate2_model import (
  both_entries,
  write_ctranslate2_model,
)
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
# The most tokens of a line and of a translation.
POSITIONS = 4096
EXACT = "float32"
# How far the log-probability of a token may be from the model's in float32, in
# the mean of all and of each.
MEAN_TOLERANCE = 1e-4
TOLERANCE = 1e-3
# How far rounded weights take it in the mean, at most, if they are of a model
# that has been trained.
USUAL = {
  "float16": 0.01,
  "int16": 0.02,
  "bfloat16": 0.05,
  "int8": 0.25,
  "int8_float16": 0.25,
}
# Where a token has e times the probability, or a part of it, that is no
# rounding.
BROKEN = 1.0


class Verified(NamedTuple):
  """What was found of a CTranslate2 model.

  Attributes:
    setting: arguments of `translate_batch` that come nearest to our search.
    findings: what was proven, and how near that is.
  """

  setting: str
  findings: list[str]


def export_ctranslate2(
  model: LoadedModel, directory: str, samples: Samples, quantization: str
) -> Verified:
  """Writes a model, compares scores, and measures settings.

  Args:
    model: with weights in float32.
    directory: exists, and is empty.
    samples: to prove it with.
    quantization: how weights are kept; one of `engines.QUANTIZATIONS`.

  Returns:
    What was found.

  Raises:
    RunError: if scores differ in float32, or by more than rounding accounts
      for.
  """
  expected = _expected_scores(model, samples)
  findings = []
  if quantization != EXACT:
    # What rounding would hide is seen without.
    with tempfile.TemporaryDirectory() as exact:
      _write(model, exact, EXACT)
      answers = _answers(model, exact, samples, ())
    differences = np.abs(np.concatenate(answers["scores"]) - expected)
    _require_equal_scores(differences, EXACT)
    findings.append(_difference(differences, "before weights are rounded, "))
  _write(model, directory, quantization)
  answers = _answers(model, directory, samples, LENGTH_PENALTIES)
  differences = np.abs(np.concatenate(answers["scores"]) - expected)
  _require_equal_scores(differences, quantization)
  computed = answers["compute_type"]
  findings.append(_difference(differences, f"computed in {computed}, "))
  _warn_if_coarse(differences, quantization, computed)
  entries = both_entries(model.tokenizers, model.transformer.params)[1]
  setting, finding = _nearest_setting(
    answers["translations"], samples, entries, model.transformer.params
  )
  return Verified(setting, [*findings, finding])


def _write(model: LoadedModel, directory: str, quantization: str) -> None:
  """Writes a CTranslate2 model into an empty directory."""
  write_ctranslate2_model(
    model.transformer, model.tokenizers, directory, quantization, POSITIONS
  )


def _pairs(samples: Samples) -> list[tuple[list[int], list[int]]]:
  """Returns sources and what the model makes of them, with EOS."""
  return [
    (source, [*found.ids, EOS_ID])
    for source, (found, *_) in zip(samples.ids, samples.found, strict=True)
  ]


def _expected_scores(model: LoadedModel, samples: Samples) -> np.ndarray:
  """Returns the log-probability of each token that the model gives."""
  pairs = _pairs(samples)
  scorer = Scorer(model.transformer, model.tokenizers)
  return np.concatenate(
    [
      score.token_log_probabilities
      for start in range(0, len(pairs), BATCH_SIZE)
      for score in scorer.score_batch(pairs[start : start + BATCH_SIZE])
    ]
  )


def _answers(
  model: LoadedModel,
  directory: str,
  samples: Samples,
  penalties: Sequence[float],
) -> dict[str, Any]:
  """Returns what the written model makes of the samples."""
  params = model.transformer.params
  sources, entries = both_entries(model.tokenizers, params)
  pairs = _pairs(samples)
  return read_back(
    "ctranslate2",
    directory,
    {
      "sources": [[sources[i] for i in source[:-1]] for source, _ in pairs],
      "targets": [[entries[i] for i in target[:-1]] for _, target in pairs],
      "batch_size": BATCH_SIZE,
      "beam_size": params.beam_size,
      "patience": _patience(params),
      "length_penalties": penalties,
      "longest": _longest(samples, params),
    },
  )


def _require_equal_scores(differences: np.ndarray, quantization: str) -> None:
  """Refuses log-probabilities that rounding alone does not account for."""
  exact = quantization == EXACT
  # NaN is not within anything.
  if not differences.mean() <= (MEAN_TOLERANCE if exact else BROKEN) or (
    exact and not differences.max() <= TOLERANCE
  ):
    raise RunError(
      f"the export does not score as the model does in {quantization}, and was "
      f"removed: a token's log-probability differs by {differences.mean():.4f} "
      f"in the mean and by {differences.max():.4f} at most"
    )


def _warn_if_coarse(
  differences: np.ndarray, quantization: str, computed: str
) -> None:
  """Tells that rounding costs more than it does most models."""
  usual = USUAL.get(quantization, BROKEN)
  if differences.mean() > usual:
    logging.warning(
      "%s is coarse for this model: computed in %s, a token's log-probability "
      "differs by %.2f in the mean, and by less than %g where a model has been "
      "trained well; compare BLEU before it is used, or pass another "
      "--quantization",
      *(quantization, computed, differences.mean(), usual),
    )


def _difference(differences: np.ndarray, how: str) -> str:
  """Returns how far log-probabilities are apart, as a finding."""
  return (
    f"{how}the log-probabilities of {len(differences)} tokens differ from the "
    f"model's by {differences.mean():.1e} in the mean and by "
    f"{differences.max():.1e} at most"
  )


def _nearest_setting(
  translations: Mapping[str, list[list[str]]],
  samples: Samples,
  entries: Sequence[str],
  params: TransformerParams,
) -> tuple[str, str]:
  """Returns the setting that comes nearest to our search, and a finding."""
  wanted = [
    [entries[i] for i in found.ids if i != PAD_ID]
    for found, *_ in samples.found
  ]
  equal = {
    penalty: sum(map(list.__eq__, found, wanted))
    for penalty, found in translations.items()
  }
  best = max(equal, key=equal.__getitem__)
  setting = f"beam_size={params.beam_size}, length_penalty={best}"
  if params.patience:
    setting += f", patience={_patience(params):g}"
  finding = (
    f"with {setting}, its own search translates {equal[best]} of "
    f"{len(wanted)} sentences as the model's does ("
    + ", ".join(f"{n} with {penalty}" for penalty, n in equal.items())
    + ")"
  )
  return setting, finding


def _patience(params: TransformerParams) -> float:
  """Returns CTranslate2's; its own is 1, and none is too short to end."""
  if not params.patience:
    return 1.0
  return enough(params.beam_size, params.patience) / params.beam_size


def _longest(samples: Samples, params: TransformerParams) -> int:
  """Returns the most tokens that a translation of samples may have."""
  longest = max(map(len, samples.ids)) + params.extra_decode_length
  return min(longest, params.longest_output or longest)
