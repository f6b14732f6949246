"""Weights in Hugging Face's files, and the variables that they become."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.huggingface_names import (
  layer_name,
  turned,
)
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.checkpoint_files import (
  problem_of_weights,
)
from official_transformer.storage import file_system

_OF_STACKS = re.compile(r"model\.(encoder|decoder)\.layer")


def read_json(path: str) -> Any:
  """Reads a file of JSON.

  Raises:
    InputError: if the file cannot be read, or is not JSON.
  """
  try:
    with file_system.open_file(path, "rb") as stream:
      return json.loads(stream.read())
  except (OSError, ValueError, RecursionError) as error:
    raise InputError(
      f"{path} cannot be read ({error}). Give --checkpoint the directory that "
      "save_pretrained wrote, or the files of a model on the Hugging Face hub: "
      "config.json, model.safetensors and the vocabulary; of a Marian model, "
      "source.spm, target.spm and vocab.json"
    ) from None


def read_tensors(directory: str) -> dict[str, np.ndarray]:
  """Reads model.safetensors as float32.

  Raises:
    InputError: if it, or the library, is missing.
  """
  path = os.path.join(directory, "model.safetensors")
  try:
    from safetensors import SafetensorError, numpy
  except ImportError as error:
    raise InputError(
      f"safetensors cannot be imported ({error}): pip install "
      "'official-transformer[huggingface]'"
    ) from None
  try:
    tensors = numpy.load_file(path)
  except (OSError, SafetensorError) as error:
    raise InputError(
      f"{path} cannot be read ({error}). If there is a pytorch_model.bin, "
      "write the file with transformers, where PyTorch is installed: "
      "AutoModelForSeq2SeqLM.from_pretrained(DIR).save_pretrained(NEW)"
    ) from None
  for name, value in tensors.items():
    if problem := problem_of_weights(value):
      raise InputError(f"{path} is of no use: {name} {problem}")
  return {name: np.asarray(t, np.float32) for name, t in tensors.items()}


def stacks_of(
  tensors: Mapping[str, np.ndarray], paths: Iterable[str]
) -> dict[str, np.ndarray]:
  """Returns the variables of both stacks by their paths, as far as they exist.

  Args:
    tensors: tensors by Hugging Face's names.
    paths: paths of all variables of the model.
  """
  names = {path: layer_name(path) for path in paths}
  return {
    path: turned(tensors[name])
    for path, name in names.items()
    if name is not None and name in tensors
  }


def check_values(
  values: Mapping[str, np.ndarray],
  transformer: Transformer,
  tensors: Mapping[str, np.ndarray],
  directory: str,
) -> None:
  """Lists all variables that are missing, unknown or misshapen.

  Args:
    values: values by our paths.
    transformer: model that is to have them.
    tensors: tensors that values come from; the tensors of stacks must be among
      them.
    directory: where they are.

  Raises:
    InputError: if there are any.
  """
  wanted = {v.path: tuple(v.shape) for v in transformer.weights}
  problems = [f"missing: {path}" for path in sorted(wanted.keys() - values)]
  problems += [f"unknown: {path}" for path in sorted(values.keys() - wanted)]
  known = {layer_name(path) for path in wanted}
  problems += [
    f"unknown: {name}"
    for name in sorted(tensors.keys() - known)
    if _OF_STACKS.match(name)
  ]
  problems += [
    f"shape of {path}: needed {shape}, stored {values[path].shape}"
    for path, shape in wanted.items()
    if path in values and values[path].shape != shape
  ]
  if problems:
    raise InputError(
      f"{directory} does not make one model:\n  " + "\n  ".join(problems)
    )
