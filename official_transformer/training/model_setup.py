"""Opening or making the model directory that a run trains."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from typing import Any

from absl import logging

import official_transformer
from official_transformer.data import data_directory
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError
from official_transformer.model_directory import (
  ModelDescription,
  ModelDirectory,
  RequestedParams,
  check_vocabulary,
  vocabulary_identity,
)
from official_transformer.model_params import (
  DEFAULT_MAX_LENGTH,
  DEFAULT_PARAM_SET,
  TransformerParams,
)


def prepare_directory(
  directory: ModelDirectory,
  request: RequestedParams,
  batching: dict[str, Any],
  vocab_file: str | None,
  data_dir: str,
  num_replicas: int = 1,
) -> ModelDescription:
  """Checks a model directory against the flags, or makes a new one.

  Args:
    directory: where the model is or will be.
    request: the parameters the user chose.
    batching: `batch_size`, `max_length` and `static_batch`, those
      the user chose.
    vocab_file: as the user gave it, or None: an existing model's own, else
      the one that the data names.
    data_dir: the prepared data.
    num_replicas: devices that share a batch; above 1, `base` and `big` are
      the sets tuned for several.

  Returns:
    What to train with: the model's own parameters where it exists, decoded as
    the user chose.

  Raises:
    InputError: where model, flags and data contradict each other.
  """
  # A description without a checkpoint is what a run left that never started
  # training: it binds nobody.
  stored = directory.read() if directory.checkpoint_steps() else None
  if vocab_file is None:
    vocab_file = (
      directory.vocab_file()
      if stored
      else data_directory.find_vocabulary(data_dir)
    )
  tokenizer = load_tokenizer(vocab_file)
  vocabulary = vocabulary_identity(vocab_file, tokenizer.vocab_size)
  if stored:
    check_vocabulary(vocab_file, tokenizer.vocab_size, stored, directory.path)
  _check_data(data_dir, vocab_file, vocabulary["sha256"])
  if stored:
    params = request.for_existing_model(stored.params, directory.path)
    _check_batching(batching, stored.batching, directory.path)
    if not stored.batching:  # Imported: nobody has trained it here yet.
      chosen = {**_default_batching(params, num_replicas), **batching}
      stored = dataclasses.replace(stored, batching=chosen)
      directory.write(stored, vocab_file)
    return dataclasses.replace(stored, params=params)
  params = request.for_new_model(DEFAULT_PARAM_SET, num_replicas)
  params = dataclasses.replace(params, vocab_size=tokenizer.vocab_size)
  versions = {
    name: importlib.metadata.version(name) for name in ("tensorflow", "keras")
  }
  description = ModelDescription(
    params,
    vocabulary,
    {**_default_batching(params, num_replicas), **batching},
    {**versions, "official_transformer": official_transformer.__version__},
  )
  directory.write(description, vocab_file)
  logging.info("made the model directory %s", directory.path)
  return description


def _default_batching(
  params: TransformerParams, num_replicas: int
) -> dict[str, Any]:
  """Returns what decides the order of the data, where a user does not."""
  return {
    "batch_size": params.default_batch_size,
    "max_length": DEFAULT_MAX_LENGTH,
    "static_batch": False,
    "batch_divisor": num_replicas,
  }


def _check_batching(
  given: dict[str, Any], stored: dict[str, Any], where: str
) -> None:
  """Refuses batches that would change which examples a step trains on."""
  differences = [
    f"--{name}={value} given, {stored[name]} stored"
    for name, value in given.items()
    if name in stored and value != stored[name]
  ]
  if differences:
    raise InputError(
      f"{'; '.join(differences)} in {where}/model.json: a resumed run goes "
      "through the data where it stopped, and needs the same batches. Leave "
      "the flags out, or name another --model_dir"
    )


def _check_data(data_dir: str, vocab_file: str, digest: str) -> None:
  """Refuses data that another vocabulary has tokenized."""
  description = data_directory.read_description(data_dir)
  if description and description["vocabulary"]["sha256"] != digest:
    raise InputError(
      f"the data in {data_dir} was tokenized with another vocabulary (sha256 "
      f"{description['vocabulary']['sha256'][:12]}...) than {vocab_file} "
      f"({digest[:12]}...); prepare the data with --vocab_file="
      f"{vocab_file}, or train a new model"
    )
