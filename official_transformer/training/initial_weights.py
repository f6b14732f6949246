"""Starting a new model from the weights of another of ours: fine-tuning."""

from __future__ import annotations

import os
from typing import NamedTuple

from absl import logging

from official_transformer.errors import InputError
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  best_weights_group,
  check_bundle,
  check_sizes,
  first_readable,
  read_weights,
  stored_shapes,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.description import (
  ModelDescription,
  Origin,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  CHECKPOINTS,
  LATEST,
  ModelDirectory,
)
from official_transformer.storage.file_system import absolute, is_same


class Source(NamedTuple):
  """The model that first weights come from.

  Attributes:
    directory: directory of the model.
    description: description of the model.
    prefix: path prefix of the checkpoint.
    origin: description of the weights for a model made from them.
  """

  directory: ModelDirectory
  description: ModelDescription
  prefix: str
  origin: Origin


def find_source(path: str, target: ModelDirectory) -> Source:
  """Finds the model and the checkpoint that a path names, and reads it.

  Args:
    path: a model directory, whose newest checkpoint that can be read is taken,
      or `checkpoints/step-N`, `best` or `average` inside it.
    target: the directory of the model that is to be made.

  Raises:
    InputError: if there is no such checkpoint, it cannot be read, or it is
      the target's own.
  """
  path = absolute(path)
  above, name = os.path.split(path)
  kind = os.path.basename(above)
  # A model directory can have any name and location.
  is_model = ModelDirectory(path).exists()
  # Of these there is one each: its step need not be named.
  which = name if not is_model and name in (BEST, AVERAGE) else LATEST
  named = (
    not is_model and which == LATEST and kind in (CHECKPOINTS, BEST, AVERAGE)
  )
  if named:
    directory = ModelDirectory(os.path.dirname(above))
  else:
    directory = ModelDirectory(path if which == LATEST else above)
  if is_same(directory.path, target.path):
    raise InputError(
      f"--init_checkpoint={path} is in --model_dir, where a run resumes by "
      "itself. For a new model from its weights, name another --model_dir"
    )
  description = directory.describe()  # Raises InputError if there is no model.
  if named:
    steps = [n for n in directory.checkpoint_steps(kind) if name == f"step-{n}"]
    if not steps:
      raise InputError(
        f"--init_checkpoint={path}: no such checkpoint; {above} has "
        + (", ".join(_names(directory, kind)) or "none")
      )
  else:
    kind, steps = directory.choose_checkpoints(which)

  def check(prefix: str) -> None:
    check_sizes(prefix, description.params)
    check_bundle(prefix)

  step, damaged = first_readable(directory, steps, kind, check)
  for problem in damaged:
    logging.error("%s; taking the one of step %d", problem, step)
  origin = Origin("official_transformer", path, step)
  prefix = directory.checkpoint_prefix(step, kind)
  return Source(directory, description, prefix, origin)


def copy_weights(prefix: str, target: ModelDirectory) -> None:
  """Makes a checkpoint's weights the target's, as a checkpoint of step 0.

  Raises:
    DamagedCheckpointError: if they cannot be read.
    OSError: if the system refuses.
  """
  group = best_weights_group(prefix)
  tensors = read_weights(prefix, stored_shapes(prefix, group))
  write_checkpoint(
    target,
    0,
    {
      WEIGHTS + name.removeprefix(group): value
      for name, value in tensors.items()
    },
  )


def _names(directory: ModelDirectory, kind: str) -> list[str]:
  return [f"step-{step}" for step in directory.checkpoint_steps(kind)]
