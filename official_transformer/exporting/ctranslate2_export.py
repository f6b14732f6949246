"""Writing and proving a CTranslate2 model, and telling how to use it bare.

CTranslate2's search divides log-probabilities by another power of the length
than ours, and stops by another rule: translations differ on some lines. The
log-probabilities of given translations must be equal before weights are
rounded; the README of an export has the effect of rounding, and the length
penalty with which most translations are equal.
"""

from __future__ import annotations

import json
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
from official_transformer.decoding.model_weights import ModelWeights
from official_transformer.exporting.differences import (
  ROUNDINGS,
  Rounding,
  coarse_rounding,
  difference,
  own_scores,
  require_equal,
)
from official_transformer.exporting.verification import (
  BATCH_SIZE,
  Samples,
  read_back,
)
from official_transformer.model_params import (
  PAD_ID,
  UNK_ID,
  TransformerParams,
)
from official_transformer.search.rules import finishes_for_patience

LENGTH_PENALTIES = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# The most tokens of a line and of a translation.
POSITIONS = 4096
EXACT = "float32"


class Verified(NamedTuple):
  """Results of verifying a CTranslate2 model.

  Attributes:
    setting: arguments of `translate_batch` that come nearest to our search.
    findings: verified facts, with the differences.
  """

  setting: str
  findings: list[str]


class _Wanted(NamedTuple):
  """Questions to a CTranslate2 model, and the expected answers.

  Attributes:
    questions: for `read_back`.
    scores: the log-probability of each token, one sentence after another.
    translations: the entries of each.
  """

  questions: dict[str, Any]
  scores: np.ndarray
  translations: list[list[str]]

  @classmethod
  def of(cls, model: LoadedModel, samples: Samples) -> _Wanted:
    """Returns the questions and the model's answers."""
    params = model.transformer.params
    sources, entries = both_entries(model.tokenizers, params)
    questions = {
      "sources": [[sources[i] for i in ids[:-1]] for ids, _ in samples.pairs],
      "targets": [[entries[i] for i in ids[:-1]] for _, ids in samples.pairs],
      "batch_size": BATCH_SIZE,
      "beam_size": params.beam_size,
      "patience": _patience(params),
      "longest": _longest(samples, params),
      "suppress_sequences": (
        [[entries[UNK_ID]]] if params.suppress_unk else None
      ),
    }
    translations = [
      [entries[i] for i in found.ids if i != PAD_ID]
      for found, *_ in samples.found
    ]
    return cls(questions, own_scores(model, samples), translations)


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
    The setting that comes nearest to our search, and verified facts.

  Raises:
    RunError: if scores differ before weights are rounded, or then by more than
      rounding accounts for.
  """
  wanted = _Wanted.of(model, samples)
  findings = []
  if quantization != EXACT:
    # Without rounding, which would hide other differences.
    with tempfile.TemporaryDirectory() as exact:
      _, differences = _write_and_ask(model, exact, EXACT, wanted, ())
    require_equal(differences, f"before {quantization} rounds its weights")
    findings.append(difference(differences, "before weights are rounded"))
  answers, differences = _write_and_ask(
    model, directory, quantization, wanted, LENGTH_PENALTIES
  )
  how = f"computed in {answers['compute_type']} on this processor"
  findings.append(difference(differences, how))
  if quantization == EXACT:
    require_equal(differences, how)
  else:
    rounding = _coarsest(quantization, answers["compute_type"])
    coarse = coarse_rounding(
      differences,
      quantization,
      how,
      rounding,
      "pass another --quantization",
    )
    if coarse:
      logging.warning("%s", coarse)
      findings.append(coarse)
  setting, finding = _nearest_setting(
    answers["translations"], wanted, model.transformer.params
  )
  return Verified(setting, [*findings, finding])


def _write_and_ask(
  model: LoadedModel,
  directory: str,
  quantization: str,
  wanted: _Wanted,
  penalties: Sequence[float],
) -> tuple[dict[str, Any], np.ndarray]:
  """Writes a CTranslate2 model into an empty directory, and uses it.

  Returns:
    The answers of `read_back`, and the absolute difference of each token's
    log-probability from the model's.
  """
  write_ctranslate2_model(
    ModelWeights.of(model.transformer),
    both_entries(model.tokenizers, model.transformer.params),
    directory,
    quantization,
    POSITIONS,
  )
  questions = {**wanted.questions, "length_penalties": penalties}
  answers = read_back("ctranslate2", directory, questions)
  return answers, np.abs(np.concatenate(answers["scores"]) - wanted.scores)


def _coarsest(*types: str) -> Rounding:
  """Returns the rounding error of the coarsest number type."""
  return next(
    rounding
    for name, rounding in ROUNDINGS.items()
    if any(type_.startswith(name) for type_ in types)
  )


def _nearest_setting(
  translations: Mapping[str, list[list[str]]],
  wanted: _Wanted,
  params: TransformerParams,
) -> tuple[str, str]:
  """Returns the setting that comes nearest to our search, and a finding."""
  equal = {
    penalty: sum(map(list.__eq__, found, wanted.translations))
    for penalty, found in translations.items()
  }
  best = max(equal, key=equal.__getitem__)
  setting = f"beam_size={params.beam_size}, length_penalty={best}"
  if params.patience:
    setting += f", patience={_patience(params):g}"
  if suppressed := wanted.questions["suppress_sequences"]:
    setting += f", suppress_sequences={json.dumps(suppressed)}"
  finding = (
    f"with {setting}, its own search translates {equal[best]} of "
    f"{len(wanted.translations)} sentences as the model's does ("
    + ", ".join(f"{n} with {penalty}" for penalty, n in equal.items())
    + ")"
  )
  return setting, finding


def _patience(params: TransformerParams) -> float:
  """Returns CTranslate2's; its own is 1, and none is too short to end."""
  if not params.patience:
    return 1.0
  return (
    finishes_for_patience(params.beam_size, params.patience) / params.beam_size
  )


def _longest(samples: Samples, params: TransformerParams) -> int:
  """Returns the largest number of tokens of a translation of the samples."""
  longest = max(map(len, samples.ids)) + params.extra_decode_length
  return min(longest, params.longest_output or longest)
