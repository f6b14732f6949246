"""Writing the model directory of an imported model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from official_transformer.errors import InputError
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  bundle_key,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.description import (
  ModelDescription,
  Origin,
  current_versions,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  CHECKPOINTS,
  ModelDirectory,
)
from official_transformer.model_params import (
  DECODING_FIELDS,
  TRAINING_FIELDS,
  TransformerParams,
)
from official_transformer.text.vocabulary_files import (
  LoadedVocabularies,
)


def new_directory(model_dir: str) -> ModelDirectory:
  """Returns the directory of a model that is to be imported.

  Raises:
    InputError: if it holds one that was trained.
  """
  directory = ModelDirectory(model_dir)
  if any(map(directory.checkpoint_steps, (CHECKPOINTS, BEST, AVERAGE))):
    raise InputError(
      f"{model_dir} holds a trained model already; name another --model_dir"
    )
  return directory


def check_overrides(overrides: Iterable[str]) -> None:
  """Refuses parameters that the files of a model say themselves."""
  chosen = (*DECODING_FIELDS, *TRAINING_FIELDS)
  if wrong := sorted(set(overrides) - set(chosen)):
    raise InputError(
      f"{', '.join(wrong)}: the model's files or its kind decide that; what "
      f"can be chosen is {', '.join(chosen)}"
    )


def summary(
  values: Mapping[str, np.ndarray], params: TransformerParams, model_dir: str
) -> str:
  """Returns a line about the imported model."""
  parameters = sum(value.size for value in values.values())
  return (
    f"imported {len(values)} variables, {parameters:,} parameters, into "
    f"{model_dir}: {params.encoder_layers} and {params.decoder_layers} layers "
    f"of {params.hidden_size}, filter {params.filter_size}, {params.num_heads} "
    f"heads, {params.vocab_size} entries in the vocabulary"
  )


def write_model(
  directory: ModelDirectory,
  transformer: Transformer,
  values: Mapping[str, np.ndarray],
  vocabularies: LoadedVocabularies,
  origin: Origin,
) -> None:
  """Writes one checkpoint, of step 0 and without optimizer state.

  Args:
    directory: directory of the model.
    transformer: model that has its variables.
    values: values of the variables, by their paths.
    vocabularies: vocabularies of its two sides.
    origin: where the values come from.

  Raises:
    InputError: if the vocabularies have more entries than the tables.
  """
  description = ModelDescription(
    transformer.params,
    vocabularies.identity,
    versions=current_versions(),
    origin=origin,
  )
  try:
    description.check_rows()
  except ValueError as error:
    raise InputError(
      f"the vocabulary is another model's: it has {error}"
    ) from None
  directory.write(description, vocabularies)
  write_checkpoint(
    directory,
    0,
    {bundle_key(WEIGHTS, v): values[v.path] for v in transformer.weights},
  )
