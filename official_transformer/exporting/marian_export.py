"""Exports to Marian's own files and to Bergamot's, with their verification.

The probabilities of given translations must be equal, as NumPy computes them
from the written files. Bergamot's file keeps weights in 8 bits; the effect of
that is reported.
"""

from __future__ import annotations

import json
import os

import numpy as np
from absl import logging

from official_transformer.decoding.loading import LoadedModel
from official_transformer.errors import InputError
from official_transformer.exporting.differences import (
  ROUNDINGS,
  coarse_rounding,
  difference,
  own_scores,
  require_equal,
)
from official_transformer.exporting.marian_files import (
  MarianFile,
  read_binary,
  read_npz,
)
from official_transformer.exporting.marian_model import (
  arrays_of,
  write_binary,
  write_npz,
)
from official_transformer.exporting.numpy_model import NumpyModel
from official_transformer.exporting.verification import Samples
from official_transformer.importing.marian_names import (
  MODEL,
  VOCABULARY,
  config_of,
)
from official_transformer.storage import file_system
from official_transformer.text.tokenizer import (
  SentencePieceTokenizer,
  Tokenizer,
)
from official_transformer.text.vocabulary_files import VocabFiles

BINARY = "model.intgemm8.bin"
# The most tokens of a line; Marian drops further tokens.
LONGEST = 1024
_DECODER, _CONFIG = "decoder.yml", "config.yml"
_INT8 = "int8"


def check_vocabulary(tokenizer: Tokenizer) -> None:
  """Refuses a vocabulary that Marian cannot have.

  Raises:
    InputError: with the reason.
  """
  if not isinstance(tokenizer, SentencePieceTokenizer):
    raise InputError(
      "Marian cuts text by a SentencePiece model alone, without another form "
      "of text such as --lowercase, and not into subtokens or words: "
      "--export_format=saved_model or ctranslate2 takes this model"
    )


def export_marian(
  model: LoadedModel, files: VocabFiles, directory: str, samples: Samples
) -> list[str]:
  """Writes a model for Marian, and compares scores with ours.

  Args:
    model: with weights in float32.
    files: files of its vocabularies, which are one.
    directory: exists, and is empty.
    samples: to prove it with.

  Returns:
    Verified facts.

  Raises:
    RunError: if the export scores otherwise.
  """
  params = model.transformer.params
  path = os.path.join(directory, MODEL)
  write_npz(path, arrays_of(model.transformer), params)
  file_system.copy(files.source, os.path.join(directory, VOCABULARY))
  _write_settings(
    os.path.join(directory, _DECODER),
    {
      "models": [MODEL],
      "beam-size": params.beam_size,
      "normalize": samples.length_power(params.alpha),
      "allow-unk": not params.suppress_unk,
      "max-length": LONGEST,
      "max-length-crop": True,
    },
  )
  differences = np.abs(
    _scores(read_npz(path), samples) - own_scores(model, samples)
  )
  how = "as NumPy computes them from the export"
  require_equal(differences, how)
  return [difference(differences, how)]


def export_bergamot(
  model: LoadedModel, files: VocabFiles, directory: str, samples: Samples
) -> list[str]:
  """Writes a model for Bergamot, and compares scores with ours.

  Args:
    model: with weights in float32.
    files: files of its vocabularies, which are one.
    directory: exists, and is empty.
    samples: to prove it with.

  Returns:
    Verified facts.

  Raises:
    RunError: if scores differ by more than rounding accounts for.
  """
  params = model.transformer.params
  path = os.path.join(directory, BINARY)
  arrays = arrays_of(model.transformer)
  write_binary(path, arrays, params)
  file_system.copy(files.source, os.path.join(directory, VOCABULARY))
  _write_settings(
    os.path.join(directory, _CONFIG),
    {
      "models": [BINARY],
      "beam-size": 1,
      "normalize": 1.0,
      "skip-cost": True,
      "allow-unk": not params.suppress_unk,
      "gemm-precision": "int8shiftAll",
    },
  )
  # Without rounding, which would hide other differences.
  exact = MarianFile(config_of(params), arrays)
  how = f"before {_INT8} rounds the weights"
  wanted = own_scores(model, samples)
  require_equal(np.abs(_scores(exact, samples) - wanted), how)
  differences = np.abs(_scores(read_binary(path), samples) - wanted)
  how = "with weights in 8 bits, and products in 32"
  findings = [difference(differences, how)]
  coarse = coarse_rounding(
    differences,
    _INT8,
    how,
    ROUNDINGS[_INT8],
    "take --export_format=marian, in 32 bits",
  )
  if coarse:
    logging.warning("%s", coarse)
    findings.append(coarse)
  return findings


def _write_settings(path: str, settings: dict[str, object]) -> None:
  """Writes how Marian is to decode, in YAML, of which JSON is a part."""
  settings = {
    "relative-paths": True,
    "vocabs": [VOCABULARY, VOCABULARY],
    **settings,
  }
  with open(path, "w", encoding="utf-8") as stream:
    for name, value in settings.items():
      stream.write(f"{name}: {json.dumps(value)}\n")


def _scores(written: MarianFile, samples: Samples) -> np.ndarray:
  """Returns the log-probability of each token of the translations."""
  export = NumpyModel.of_marian(*written)
  found = [export.token_log_probabilities(*pair) for pair in samples.pairs]
  return np.concatenate(found)
