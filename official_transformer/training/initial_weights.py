"""Starting a new model from the weights of another of ours: fine-tuning."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import tensorflow as tf

from official_transformer.durable_files import new_directory
from official_transformer.errors import InputError
from official_transformer.model.weights import (
  WEIGHTS,
  read_tensors,
  stored_shapes,
  write_bundle,
)
from official_transformer.model_directory import (
  BEST,
  CHECKPOINTS,
  ModelDescription,
  ModelDirectory,
)


class Source(NamedTuple):
  """The model that first weights come from.

  Attributes:
    directory: of the model.
    description: of the model.
    prefix: of the checkpoint.
    origin: what a model made from it says of it.
  """

  directory: ModelDirectory
  description: ModelDescription
  prefix: str
  origin: dict[str, Any]


def find_source(path: str, target: ModelDirectory) -> Source:
  """Finds the model and the checkpoint that a path names.

  Args:
    path: a model directory, whose newest checkpoint is taken, or one of the
      directories `checkpoints/step-N` and `best/step-N` inside it.
    target: the directory of the model that is to be made.

  Raises:
    InputError: where there is no such checkpoint, or it is the target's own.
  """
  path = os.path.abspath(path)
  above, name = os.path.split(path)
  kind = os.path.basename(above)
  if kind in (CHECKPOINTS, BEST):
    directory = ModelDirectory(os.path.dirname(above))
    prefix = directory.prefix_in(path)
    if not os.path.exists(prefix + ".index"):
      raise InputError(
        f"--init_checkpoint={path}: no such checkpoint; {above} has "
        + (", ".join(map(str, _names(directory, kind))) or "none")
      )
  else:
    directory = ModelDirectory(path)
    directory.read()  # Says what it is, where it is no model.
    prefix = directory.latest_checkpoint()
    name = os.path.basename(os.path.dirname(prefix))
  if os.path.realpath(directory.path) == os.path.realpath(target.path):
    raise InputError(
      f"--init_checkpoint={path} lies in --model_dir: a run goes on there by "
      "itself. For a new model from its weights, name another --model_dir"
    )
  origin = {
    "format": "official_transformer",
    "checkpoint": path,
    "step": int(name.removeprefix("step-")),
  }
  return Source(directory, directory.read(), prefix, origin)


def copy_weights(prefix: str, target: ModelDirectory) -> None:
  """Makes a checkpoint's weights the target's, as a checkpoint of step 0.

  Raises:
    DamagedCheckpointError: where they cannot be read.
    OSError: where the system refuses.
  """
  names = [n for n in stored_shapes(prefix) if n.startswith(WEIGHTS + "/")]
  tensors = read_tensors(prefix, names)
  with new_directory(target.checkpoint_directory(0)) as aside:
    write_bundle(
      target.prefix_in(aside), {**tensors, "step": tf.constant(0, tf.int64)}
    )


def _names(directory: ModelDirectory, kind: str) -> list[str]:
  return [f"step-{step}" for step in directory.checkpoint_steps(kind)]
