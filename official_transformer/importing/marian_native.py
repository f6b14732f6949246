"""Importing a model in Marian's own files: `.npz`, and a vocabulary beside it.

An export by `--export_format=marian` is restored exactly; models that Marian
trained are imported if they are plain post-norm Transformers with one table and
a SentencePiece vocabulary.

Shapes: V vocabulary, D hidden size.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.formats import MARIAN, ROUNDED_ROWS
from official_transformer.importing.huggingface_files import check_values
from official_transformer.importing.marian_names import (
  ARCHITECTURE,
  BIAS,
  CONFIG,
  MODEL,
  OWN_PARAMS,
  TABLE,
  VOCABULARY,
  name_of,
  without_never,
)
from official_transformer.importing.model_writing import (
  check_overrides,
  new_directory,
  summary,
  write_model,
)
from official_transformer.model.building import build_transformer
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.checkpoint_files import (
  problem_of_weights,
)
from official_transformer.model_directory.description import Origin
from official_transformer.model_params import TransformerParams
from official_transformer.storage import file_system
from official_transformer.storage.typed_json import DAMAGE, read_record
from official_transformer.text.vocabulary_files import (
  LoadedVocabularies,
  VocabFiles,
  load_vocabularies,
)

_ATTENTION_BIASES = ("_bq", "_bk", "_bv", "_bo")


def import_marian_files(
  path: str,
  vocab_file: str | None,
  model_dir: str,
  overrides: Mapping[str, Any],
) -> str:
  """Writes a model directory with the weights of a Marian model.

  Args:
    path: path of the `.npz` file, or of the directory with `model.npz`.
    vocab_file: SentencePiece vocabulary of the model; None is `vocab.spm`
      beside it.
    model_dir: the model directory to make.
    overrides: parameters by field, such as `beam_size`.

  Returns:
    One line that describes the imported model.

  Raises:
    InputError: if the files are missing, or of another kind of model.
  """
  check_overrides(overrides)
  target = new_directory(model_dir)
  if file_system.is_directory(path):
    path = os.path.join(path, MODEL)
  arrays = _read_arrays(path)
  config = _config_of(arrays.pop(CONFIG), path)
  vocabularies = _read_vocabulary(path, vocab_file)
  entries = vocabularies.tokenizers.target.vocab_size
  params = dataclasses.replace(
    _params(config, arrays, entries, path), **overrides
  )
  transformer = build_transformer(params)
  values = _assemble(arrays, transformer, path)
  check_values(values, transformer, {}, path)
  origin = Origin(MARIAN, file_system.absolute(path), None)
  write_model(target, transformer, values, vocabularies, origin)
  return summary(values, params, model_dir)


def _read_arrays(path: str) -> dict[str, np.ndarray]:
  """Reads all arrays of a file.

  Raises:
    InputError: if it cannot be read, or is of no Marian model.
  """
  try:
    if not zipfile.is_zipfile(path):
      raise OSError("it is missing, or no .npz file")
    with np.load(path, allow_pickle=False) as stored:
      arrays = dict(stored)
  except (
    *(OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error),
  ) as error:
    raise InputError(
      f"{path} cannot be read ({error}); --checkpoint names Marian's .npz file"
    ) from None
  if missing := [name for name in (CONFIG, TABLE, BIAS) if name not in arrays]:
    raise InputError(
      f"{path} has no {', '.join(missing)}: it is of no Marian model with one "
      "table"
    )
  for name, array in arrays.items():
    if name != CONFIG and (problem := problem_of_weights(array)):
      raise InputError(f"{path} is of no use: {name} {problem}")
  return arrays


def _read_vocabulary(path: str, vocab_file: str | None) -> LoadedVocabularies:
  """Reads the vocabulary of both sides.

  Raises:
    InputError: if the vocabulary is missing, or was trained by Marian.
  """
  if vocab_file is None:
    vocab_file = os.path.join(os.path.dirname(path), VOCABULARY)
    if not file_system.exists(vocab_file):
      raise InputError(f"there is no {vocab_file}: pass --vocab_file")
  try:
    return load_vocabularies(VocabFiles.joint(vocab_file))
  except InputError as error:
    raise InputError(
      f"{error}. A vocabulary that Marian has trained itself has other ids: "
      "such a model is imported from Hugging Face's files, by "
      "--format=marian_hf"
    ) from None


def _config_of(content: np.ndarray, path: str) -> dict[str, Any]:
  """Returns a model's configuration.

  Raises:
    InputError: if it is damaged, or of another kind of model.
  """
  try:
    import yaml
  except ImportError:
    raise InputError(
      "a model in Marian's own files needs PyYAML, which is not installed: pip "
      "install 'official-transformer[marian]'"
    ) from None
  try:
    config = yaml.safe_load(content.tobytes().rstrip(b"\0").decode("utf-8"))
  except (UnicodeDecodeError, yaml.YAMLError) as error:
    raise InputError(f"{path}: {CONFIG} is damaged: {error}") from None
  if not isinstance(config, dict):
    raise InputError(f"{path}: {CONFIG} is damaged: it is no table")
  problems = [
    f"{name} is {config[name]!r:.50}, must be {value!r}"
    for name, value in ARCHITECTURE.items()
    if config.get(name, value) != value
  ]
  if problems:
    raise InputError(
      f"{path} is of no model that is known here: {'; '.join(problems)}"
    )
  return config


def _params(
  config: Mapping[str, Any],
  arrays: Mapping[str, np.ndarray],
  entries: int,
  path: str,
) -> TransformerParams:
  """Returns the parameters of an export, or those of Marian's configuration."""
  try:
    if OWN_PARAMS in config:
      params = read_record(
        TransformerParams, json.loads(str(config[OWN_PARAMS]))
      )
    else:
      params = TransformerParams(
        vocab_size=entries,
        hidden_size=int(config["dim-emb"]),
        num_hidden_layers=int(config["enc-depth"]),
        num_decoder_layers=int(config["dec-depth"]),
        num_heads=int(config["transformer-heads"]),
        filter_size=int(config["transformer-dim-ffn"]),
        activation=str(config.get("transformer-ffn-activation", "swish")),
        norm="post",
        # The nearest to Marian's --normalize, which divides by the length and
        # is not in its file.
        alpha=1.0,
      )
  except (*DAMAGE, KeyError) as error:
    raise InputError(f"{path}: {CONFIG} is damaged: {error}") from None
  spare = len(arrays[TABLE]) - entries
  if entries != params.vocab_size or not 0 <= spare <= ROUNDED_ROWS:
    raise InputError(
      f"the vocabulary has {entries} entries, and {path} was trained with "
      f"{len(arrays[TABLE])}: pass its own by --vocab_file"
    )
  bias = arrays[BIAS].reshape(-1)[:entries]
  biases = [name for name in arrays if name.endswith(_ATTENTION_BIASES)]
  return dataclasses.replace(
    params,
    attention_bias=params.attention_bias
    or any(arrays[name].any() for name in biases),
    # The number that keeps a token from being chosen is no bias of the model.
    output_bias=params.output_bias or bool(without_never(bias).any()),
  )


def _assemble(
  arrays: Mapping[str, np.ndarray], transformer: Transformer, path: str
) -> dict[str, np.ndarray]:
  """Returns the weights by our paths, in our shapes.

  Raises:
    InputError: if there are arrays that the model has no place for.
  """
  params = transformer.params
  shapes = {w.path: tuple(w.shape) for w in transformer.weights}
  names = {own: name_of(own) for own in shapes}
  known = {name for name in names.values() if name}
  # Further variables are accepted if they are zeros.
  unknown = [
    name
    for name, array in arrays.items()
    if name not in (*known, TABLE, BIAS) and array.any()
  ]
  if unknown:
    raise InputError(
      f"{path} is of no model that is known here: it has "
      f"{', '.join(sorted(unknown)[:5])}"
    )
  values = {
    own: arrays[name].reshape(-1) if len(shapes[own]) == 1 else arrays[name]
    for own, name in names.items()
    if name is not None and name in arrays
  }
  # Rows beyond the vocabulary round it up.
  values["transformer/embedding/weights"] = arrays[TABLE][: params.vocab_size]
  if params.output_bias:
    bias = arrays[BIAS].reshape(-1)[: params.vocab_size]
    values["transformer/output/bias"] = without_never(bias)
  return {own: np.asarray(v, np.float32) for own, v in values.items()}
