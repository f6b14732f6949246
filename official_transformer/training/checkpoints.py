"""Writing checkpoints, keeping the newest, and resuming from one."""

from __future__ import annotations

import os
import shutil

import keras
import tensorflow as tf

from official_transformer.model.weights import (
  OPTIMIZER,
  WEIGHTS,
  bundle_key,
  read_tensors,
  restore_variables,
)
from official_transformer.model_directory import ModelDirectory


class CheckpointManager:
  """Saves and restores everything that a run needs to go on.

  Attributes:
    directory: the model directory.
    model: whose weights are saved.
    optimizer: whose variables are saved; built already.
    keep_max: how many checkpoints to keep, the newest; 0 keeps all.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    keep_max: int,
  ) -> None:
    self.directory = directory
    self.model = model
    self.optimizer = optimizer
    self.keep_max = keep_max

  def save(self, step: int, seed: int) -> str:
    """Writes a checkpoint aside, renames it, and drops the oldest.

    Returns:
      The checkpoint's directory.

    Raises:
      OSError: where the system refuses; earlier checkpoints are untouched.
    """
    final = self.directory.checkpoint_directory(step)
    aside = final + ".incomplete"
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside)
    tensors = {
      bundle_key(group, variable): tf.convert_to_tensor(variable.value)
      for group, variables in (
        (WEIGHTS, self.model.weights),
        (OPTIMIZER, self.optimizer.variables),
      )
      for variable in variables
    }
    tensors["step"] = tf.constant(step, tf.int64)
    tensors["seed"] = tf.constant(seed, tf.int64)
    prefix = os.path.join(
      aside, os.path.basename(self.directory.checkpoint_prefix(step))
    )
    try:
      tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(tensors.values()),
      )
    except tf.errors.OpError as error:  # A full disk, a permission.
      raise OSError(f"cannot write {aside}: {error.message}") from None
    shutil.rmtree(final, ignore_errors=True)
    os.rename(aside, final)
    if self.keep_max:
      for old in self.directory.checkpoint_steps()[: -self.keep_max]:
        shutil.rmtree(self.directory.checkpoint_directory(old))
    return final

  def restore(self, prefix: str) -> None:
    """Restores weights and the optimizer's variables, all or an error."""
    restore_variables(prefix, WEIGHTS, self.model.weights)
    restore_variables(prefix, OPTIMIZER, self.optimizer.variables)


def read_progress(prefix: str) -> tuple[int, int]:
  """Returns a checkpoint's step and seed."""
  progress = read_tensors(prefix, ("step", "seed"))
  return int(progress["step"]), int(progress["seed"])
