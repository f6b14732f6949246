"""Importing directories that `--export_format=huggingface` has written.

`transformers` may have trained it further. A Pegasus model of anybody else has
another numbering of pieces and position encodings of its own: it is refused.

Shapes: V vocabulary, D hidden size, P positions.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.importing.formats import PEGASUS_HF
from official_transformer.importing.huggingface_files import (
  check_values,
  read_json,
  read_tensors,
  stacks_of,
)
from official_transformer.importing.huggingface_names import (
  BIAS,
  OWN_PARAMS,
  POSITION_TABLES,
  RESIDUAL_SCALE,
  SHARED,
  VOCABULARY,
  with_residual_scale,
)
from official_transformer.importing.marian_names import without_never
from official_transformer.importing.model_writing import (
  check_overrides,
  new_directory,
  summary,
  write_model,
)
from official_transformer.model.building import build_transformer
from official_transformer.model.transformer import Transformer
from official_transformer.model.variants import POSITIONS
from official_transformer.model_directory.description import Origin
from official_transformer.model_params import TransformerParams
from official_transformer.storage import file_system
from official_transformer.storage.typed_json import DAMAGE, read_record
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)


def import_pegasus(
  directory: str, model_dir: str, overrides: Mapping[str, Any]
) -> str:
  """Writes a model directory with the weights of an exported model.

  Args:
    directory: with config.json, model.safetensors and the vocabulary.
    model_dir: the model directory to make.
    overrides: parameters by field, such as `beam_size`.

  Returns:
    One line that describes the imported model.

  Raises:
    InputError: if the files are missing, or were not exported from here.
  """
  target = new_directory(model_dir)
  params, scale = _params(directory, overrides)
  tensors = read_tensors(directory)
  params = _with_biases(params, tensors)
  params = _with_positions(params, tensors, scale, directory)
  tensors = with_residual_scale(tensors, 1 / scale)
  transformer = build_transformer(params)
  values = _assemble(tensors, transformer, directory)
  check_values(values, transformer, tensors, directory)
  vocabulary = os.path.join(directory, VOCABULARY)
  if not file_system.exists(vocabulary):
    raise InputError(
      f"there is no {vocabulary}, which transformers does not copy: copy it "
      "from the export"
    )
  loaded = load_vocabularies(VocabFiles.joint(vocabulary))
  entries = loaded.tokenizers.target.vocab_size
  # A table may have spare rows.
  if entries > params.vocab_size:
    raise InputError(
      f"{vocabulary} is another model's: it has {entries} entries, and the "
      f"table {params.vocab_size} rows"
    )
  origin = Origin(PEGASUS_HF, file_system.absolute(directory), None)
  write_model(target, transformer, values, loaded, origin)
  return summary(values, params, model_dir)


def _params(
  directory: str, overrides: Mapping[str, Any]
) -> tuple[TransformerParams, float]:
  """Returns the parameters and the residual scale that the export has noted."""
  check_overrides(overrides)
  path = os.path.join(directory, "config.json")
  config = read_json(path)
  if not isinstance(config, dict) or OWN_PARAMS not in config:
    raise InputError(
      f"{path} has no {OWN_PARAMS}: it was not written by "
      "--export_format=huggingface, and no other Pegasus model is one of ours"
    )
  try:
    params = read_record(TransformerParams, config[OWN_PARAMS])
  except DAMAGE as error:
    raise InputError(f"{path}: {OWN_PARAMS} is damaged: {error}") from None
  # Earlier exports had no scale.
  scale = config.get(RESIDUAL_SCALE, 1.0)
  if type(scale) not in (int, float) or not 0 < scale < math.inf:
    raise InputError(f"{path}: {RESIDUAL_SCALE} is {scale!r}, no size")
  return dataclasses.replace(params, **overrides), scale


def _with_biases(
  params: TransformerParams, tensors: dict[str, np.ndarray]
) -> TransformerParams:
  """Returns parameters with biases in attention, if training has moved them.

  Else, they are removed from the tensors.
  """
  biases = [name for name in tensors if name.endswith("_proj.bias")]
  if params.attention_bias or any(tensors[name].any() for name in biases):
    return dataclasses.replace(params, attention_bias=True)
  for name in biases:
    del tensors[name]
  return params


def _assemble(
  tensors: Mapping[str, np.ndarray], transformer: Transformer, directory: str
) -> dict[str, np.ndarray]:
  """Returns the weights by our paths, in our shapes.

  Raises:
    InputError: if something has moved that is constant here.
  """
  params = transformer.params
  if missing := [name for name in (SHARED, BIAS) if name not in tensors]:
    raise InputError(f"{directory} has no {', '.join(missing)}")
  table = tensors[SHARED]
  values = stacks_of(tensors, [v.path for v in transformer.weights])
  values["transformer/embedding/weights"] = table[: params.vocab_size]
  if table[params.vocab_size :].any():
    raise InputError(
      f"{directory}: training has moved the row that the decoder starts with, "
      "which is a zero vector here; label smoothing over the whole vocabulary "
      "does that"
    )
  if params.output_bias:
    bias = tensors[BIAS][0, : params.vocab_size]
    values["transformer/output/bias"] = without_never(bias)
  if layers := transformer.positions.layers:
    paths = [layer.table.path for layer in layers]
    values |= zip(
      paths, (tensors[name] for name in POSITION_TABLES), strict=True
    )
  return values


def _with_positions(
  params: TransformerParams,
  tensors: Mapping[str, np.ndarray],
  scale: float,
  directory: str,
) -> TransformerParams:
  """Returns parameters with learnt positions, if they are not the formula's.

  They are not if training has moved them, or if they hold a target space
  embedding.

  Raises:
    InputError: if a table of positions is missing.
  """
  if missing := [name for name in POSITION_TABLES if name not in tensors]:
    raise InputError(f"{directory} has no {', '.join(missing)}")
  stored = [tensors[name] for name in POSITION_TABLES]
  if params.positions != "learned":
    formula = POSITIONS[params.positions](params).source(len(stored[0]))
    exact = formula.numpy() * np.float32(scale)
    if all(_is_rounded(exact, table) for table in stored):
      return params
  return dataclasses.replace(
    params,
    positions="learned",
    max_positions=len(stored[0]),
    target_space_embedding=False,
  )


def _is_rounded(exact: np.ndarray, stored: np.ndarray) -> bool:
  """Returns whether an array is another one, as 32 or as 16 bits have it."""
  kinds = (np.float32, np.float16, tf.bfloat16.as_numpy_dtype)
  return any(
    np.array_equal(exact.astype(kind).astype(np.float32), stored)
    for kind in kinds
  )
