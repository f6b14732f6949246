"""Opening or making the model directory that a run trains."""

from __future__ import annotations

import dataclasses
import importlib.metadata

from absl import logging

import official_transformer
from official_transformer.data import data_directory
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError
from official_transformer.model_directory import (
  ModelDescription,
  ModelDirectory,
  check_agreement,
  check_vocabulary,
  vocabulary_identity,
)
from official_transformer.model_params import TransformerParams


def prepare_directory(
  directory: ModelDirectory,
  params: TransformerParams,
  params_given: bool,
  vocab_file: str | None,
  data_dir: str,
) -> TransformerParams:
  """Checks a model directory against the flags, or makes a new one.

  Args:
    directory: where the model is or will be.
    params: as the flags say; without a vocabulary size.
    params_given: whether the user chose them; if not, an existing model's
      are used.
    vocab_file: as the user gave it, or None: an existing model's own, else
      the one that the data names.
    data_dir: the prepared data.

  Returns:
    The parameters to train with, vocabulary size included.

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
  _check_data(data_dir, vocab_file, vocabulary["sha256"])
  if stored:
    check_vocabulary(vocab_file, tokenizer.vocab_size, stored, directory.path)
    if params_given:
      check_agreement(params, stored.params, directory.path)
    return stored.params
  params = dataclasses.replace(params, vocab_size=tokenizer.vocab_size)
  versions = {
    name: importlib.metadata.version(name) for name in ("tensorflow", "keras")
  }
  versions["official_transformer"] = official_transformer.__version__
  directory.write(ModelDescription(params, vocabulary, versions), vocab_file)
  logging.info("made the model directory %s", directory.path)
  return params


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
