"""Writing checkpoints, keeping the newest, and resuming from one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf
from absl import logging

from official_transformer.model.weights import (
  WEIGHTS,
  bundle_key,
  read_tensors,
  restore_variables,
  stored_shapes,
  write_bundle,
)
from official_transformer.model_directory import ModelDirectory

LOSS_SCALE = "loss_scale"


class CheckpointManager:
  """Saves and restores everything that a run needs to go on.

  Attributes:
    directory: the model directory.
    groups: the variables of each group: `WEIGHTS`, `OPTIMIZER`, `LOSS_SCALE`.
    keep_max: how many checkpoints to keep, the newest; 0 keeps all.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    groups: Mapping[str, Sequence[keras.Variable]],
    keep_max: int,
  ) -> None:
    self.directory = directory
    self.groups = groups
    self.keep_max = keep_max

  def save(self, step: int, seed: int) -> str:
    """Writes a checkpoint aside, renames it, and drops the oldest.

    Returns:
      The checkpoint's directory.

    Raises:
      OSError: where the system refuses; earlier checkpoints are untouched.
    """
    tensors = {
      bundle_key(group, variable): variable.value
      for group, variables in self.groups.items()
      for variable in variables
    }
    tensors["step"] = tf.constant(step, tf.int64)
    tensors["seed"] = tf.constant(seed, tf.int64)
    write_bundle(self.directory.checkpoint_prefix(step), tensors)
    if self.keep_max:
      for old in self.directory.checkpoint_steps()[: -self.keep_max]:
        shutil.rmtree(self.directory.checkpoint_directory(old))
    return self.directory.checkpoint_directory(step)

  def restore(self, prefix: str) -> None:
    """Restores weights and the optimizer's variables, all or an error.

    An imported checkpoint holds weights alone, one of another dtype no loss
    scale: what is not there starts afresh.
    """
    stored = {name.split("/")[0] for name in stored_shapes(prefix)}
    for group, variables in self.groups.items():
      if not variables:
        continue
      if group == WEIGHTS or group in stored:
        restore_variables(prefix, group, variables)
      else:
        logging.info("%s has no %s state: it starts afresh", prefix, group)


def read_progress(prefix: str) -> tuple[int, int | None]:
  """Returns a checkpoint's step and seed; an imported one has no seed."""
  progress = read_tensors(
    prefix, {"step", "seed"} & stored_shapes(prefix).keys()
  )
  seed = progress.get("seed")
  return int(progress["step"]), None if seed is None else int(seed)
