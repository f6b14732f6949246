"""Opening model directories and loading their checkpoints.

TensorFlow is imported where a model is made for it, and not before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from absl import logging

from official_transformer.decoding.engines import TENSORFLOW, check_number
from official_transformer.decoding.model_weights import ModelWeights
from official_transformer.errors import InputError
from official_transformer.hardware.processor import is_fast_dtype
from official_transformer.model_directory.checkpoint_files import (
  AVERAGED_STEPS,
  best_weights_group,
  check_sizes,
  first_readable,
  read_integers,
  read_weights,
  stored_shapes,
)
from official_transformer.model_directory.description import (
  DESCRIPTION_FILE,
  ModelDescription,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  LATEST,
  ModelDirectory,
)
from official_transformer.model_params import DECODING_FIELDS
from official_transformer.text.tokenizer import fitting_params
from official_transformer.text.vocabulary_files import (
  Tokenizers,
  VocabFiles,
  load_vocabularies,
)

if TYPE_CHECKING:
  from official_transformer.model.transformer import Transformer

Model = TypeVar("Model")


class LoadedCheckpoint(NamedTuple):
  """The checkpoint that a model was loaded from.

  Attributes:
    step: finished updates; of the newest, if several are averaged.
    averaged: steps of the averaged checkpoints; empty otherwise.
    prefix: path prefix of its files.
  """

  step: int
  averaged: tuple[int, ...] = ()
  prefix: str = ""

  def __str__(self) -> str:
    """Returns its name in a report."""
    if self.averaged:
      return f"average of steps {', '.join(map(str, self.averaged))}"
    return f"step {self.step}"

  @property
  def file_name(self) -> str:
    """Its name as a part of a file's name."""
    if self.averaged:
      return f"average-of-{len(self.averaged)}-step-{self.step}"
    return f"step-{self.step}"


class LoadedModel(NamedTuple, Generic[Model]):
  """A model to decode or score with.

  Attributes:
    transformer: with the checkpoint's weights: TensorFlow's model, or
      `ModelWeights` for another library.
    tokenizers: tokenizers of source and target.
    longest_piece: most tokens of text that it translates in one piece.
    checkpoint: whose weights they are.
    splits_sentences: whether it was trained on sentences, not on paragraphs.
  """

  transformer: Model
  tokenizers: Tokenizers
  longest_piece: int
  checkpoint: LoadedCheckpoint
  splits_sentences: bool = True


def fast_dtype(dtype: str) -> str:
  """Returns a `--dtype`; `fp32`, with a warning, if that is faster here."""
  if is_fast_dtype(dtype):
    return dtype
  logging.warning(
    "--dtype=%s: this processor has no fast units for it; computing in float32",
    dtype,
  )
  return "fp32"


def open_model(
  model_dir: str, **decoding: float | None
) -> tuple[ModelDirectory, ModelDescription]:
  """Reads the description of a model directory.

  Args:
    model_dir: as training or import made it; nothing else is needed.
    **decoding: values of `DECODING_FIELDS` instead of the model's own; None
      changes nothing.

  Raises:
    InputError: if it is no model directory.
    TypeError: if a field is not about decoding.
  """
  if unknown := decoding.keys() - set(DECODING_FIELDS):
    raise TypeError(f"{', '.join(sorted(unknown))}: not of {DECODING_FIELDS}")
  directory = ModelDirectory(model_dir)
  stored = directory.describe()
  changes: dict[str, Any] = {
    name: value for name, value in decoding.items() if value is not None
  }
  params = dataclasses.replace(stored.params, **changes)
  return directory, dataclasses.replace(stored, params=params)


def read_model(
  directory: ModelDirectory,
  description: ModelDescription,
  checkpoint: str = LATEST,
) -> LoadedModel[ModelWeights]:
  """Reads a checkpoint of a model directory, and its vocabulary.

  Args:
    directory: the model directory.
    description: description of its model, with the parameters to decode with.
    checkpoint: `latest`, instead of which an older one is taken if it cannot
      be read; `best`; `average`; or a step.

  Raises:
    InputError: if the directory holds no usable model.
  """
  kind, steps = directory.choose_checkpoints(checkpoint)
  tokenizers = _load_tokenizers(directory, description)
  params = fitting_params(description.params, tokenizers.target)
  weights: dict[str, np.ndarray] = {}

  def read(prefix: str) -> None:
    check_sizes(prefix, params)
    group = best_weights_group(prefix)
    found = read_weights(prefix, stored_shapes(prefix, group))
    weights.update(
      (name.removeprefix(f"{group}/"), value) for name, value in found.items()
    )

  step, damaged = first_readable(directory, steps, kind, read)
  for problem in damaged:
    logging.error("%s; using the one of step %d", problem, step)
  averaged = _averaged_steps(directory, step) if kind == AVERAGE else ()
  prefix = directory.checkpoint_prefix(step, kind)
  return LoadedModel(
    ModelWeights(params, weights, prefix),
    tokenizers,
    description.longest_piece,
    LoadedCheckpoint(step, averaged, prefix),
    description.splits_sentences,
  )


def load_model(
  directory: ModelDirectory,
  description: ModelDescription,
  dtype: str = "fp32",
  checkpoint: str = LATEST,
  as_asked: bool = False,
) -> LoadedModel[Transformer]:
  """Loads a checkpoint into a model of TensorFlow's.

  Args:
    directory: as in `read_model`.
    description: as in `read_model`.
    dtype: type of the computation: `fp32`, `bf16` or `fp16`; float32 is used if
      nothing here computes faster in that type, as on most processors.
    checkpoint: as in `read_model`.
    as_asked: whether it is of `dtype` even if that is slow here: it is meant
      for elsewhere.

  Raises:
    InputError: if the directory holds no usable model.
  """
  from official_transformer.model.building import build_transformer

  stored = read_model(directory, description, checkpoint)
  weights = stored.transformer
  transformer = build_transformer(
    weights.params,
    dtype if as_asked else fast_dtype(dtype),
    is_train=False,
  )
  weights.check({w.path: tuple(w.shape) for w in transformer.weights})
  for variable in transformer.weights:
    variable.assign(weights.arrays[variable.path])
  return LoadedModel(transformer, *stored[1:])


def load_models(
  opened: Sequence[tuple[ModelDirectory, ModelDescription]],
  dtype: str = "fp32",
  checkpoint: str = LATEST,
  engine: str = TENSORFLOW,
) -> list[LoadedModel]:
  """Loads models that are to decide together, for an engine.

  Args:
    opened: results of `open_model`.
    dtype: as in `load_model`.
    checkpoint: checkpoint of each, as in `load_model`.
    engine: one of `ENGINES`; for another than TensorFlow, models are only read.

  Returns:
    The models. All hide the unknown token if the first is asked to.

  Raises:
    InputError: as `load_model`; if they have not all the same vocabularies.
  """
  check_number(engine, len(opened))
  first, described = opened[0]
  for directory, description in opened[1:]:
    if (
      not description.vocabularies.are_as(described.vocabularies)
      or description.form != described.form
    ):
      raise InputError(
        f"the model in {directory.path} has the vocabulary "
        f"{description.vocabularies} ({description.form}), that in "
        f"{first.path} {described.vocabularies} ({described.form}): only "
        "models of one vocabulary can decide together"
      )
  models: list[LoadedModel] = []
  for directory, description in opened:
    params = dataclasses.replace(
      description.params, suppress_unk=described.params.suppress_unk
    )
    description = dataclasses.replace(description, params=params)
    if engine == TENSORFLOW:
      models.append(load_model(directory, description, dtype, checkpoint))
    else:
      models.append(read_model(directory, description, checkpoint))
  return models


def _load_tokenizers(
  directory: ModelDirectory, description: ModelDescription
) -> Tokenizers:
  """Loads a model's vocabularies and checks them against its description."""
  vocabularies = description.vocabularies
  loaded = load_vocabularies(
    VocabFiles.within(directory.path, vocabularies), vocabularies
  )
  for path, size, stored in zip(
    loaded.files, loaded.identity.sizes, vocabularies.sizes, strict=True
  ):
    if size != stored:
      raise InputError(
        f"{path} has {size} entries, {DESCRIPTION_FILE} says {stored}"
      )
  return loaded.tokenizers.formed(description.form)


def _averaged_steps(directory: ModelDirectory, step: int) -> tuple[int, ...]:
  """Returns the steps of an average; warns if it is out of date."""
  prefix = directory.checkpoint_prefix(step, AVERAGE)
  steps = read_integers(prefix, AVERAGED_STEPS)
  if (newest := max(directory.checkpoint_steps(), default=0)) > step:
    logging.warning(
      "the average is of checkpoints up to step %d, but there is one of step "
      "%d; --mode=average makes a new average",
      step,
      newest,
    )
  return steps
