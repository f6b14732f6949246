"""Writing checkpoints, keeping the newest and the best, and resuming."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from official_transformer.errors import InputError, RunError
from official_transformer.model_directory.checkpoint_files import (
  MOVING_AVERAGE,
  WEIGHTS,
  DamagedCheckpointError,
  bundle_key,
  first_readable,
  read_integers,
  restore_variables,
  stored_shapes,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
  write_only_checkpoint,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  CHECKPOINTS,
  DATA_INDEX,
  DESCRIPTION_FILE,
  INTERIM,
  MEASUREMENTS_FILE,
  NONFINITE,
  TRANSLATIONS,
  ModelDirectory,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import remove_leftovers

_DAMAGED = ".damaged"
_SET_ASIDE = re.compile(rf"step-(\d+){re.escape(_DAMAGED)}$")


class CheckpointManager:
  """Saves and restores everything that a run needs to go on.

  Attributes:
    directory: the model directory.
    groups: the variables of each group: `WEIGHTS`, `OPTIMIZER`, `LOSS_SCALE`,
      `MOVING_AVERAGE`.
    keep_max: how many checkpoints to keep, the newest; 0 keeps all. Interim
      ones are not counted.
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

  def save(self, step: int, seed: int, interim: bool = False) -> str:
    """Writes a checkpoint, whole or not at all.

    Args:
      step: finished updates.
      seed: seed of the run.
      interim: whether it only serves to go on from, until the next one.

    Returns:
      The checkpoint's directory.

    Raises:
      RunError: if a weight is not finite; nothing was written.
      OSError: if the system refuses; earlier checkpoints are untouched.
    """
    self._check_finite(step)
    tensors = self._tensors(*self.groups)
    tensors["seed"] = tf.constant(seed, tf.int64)
    marks = [INTERIM] if interim else []
    return write_checkpoint(self.directory, step, tensors, marks=marks)

  def save_best(self, step: int) -> None:
    """Writes the weights alone, replacing the earlier best ones.

    Raises:
      OSError: if the system refuses; the earlier best weights are unchanged.
    """
    tensors = self._tensors(WEIGHTS)
    for average in self.groups.get(MOVING_AVERAGE, ()):
      # Evaluations have measured the average.
      tensors[bundle_key(WEIGHTS, average)] = average.value
    write_only_checkpoint(self.directory, step, tensors, BEST)

  def drop_derived(self, step: int) -> None:
    """Removes derived weights that are of another model, or of later steps.

    Args:
      step: finished updates. The best weights of later steps will be found
        again; at step 0, a new model begins.
    """
    for kind in (BEST, AVERAGE):
      for found in self.directory.checkpoint_steps(kind):
        if not step or (kind == BEST and found > step):
          self.directory.remove_checkpoint(found, kind)

  def restore(self, prefix: str) -> set[str]:
    """Restores weights and the optimizer's variables, all or an error.

    An imported checkpoint has only weights, and a checkpoint of another dtype
    has no loss scale: missing values start afresh.

    Returns:
      The groups that do.
    """
    afresh = set()
    if MOVING_AVERAGE not in self.groups and stored_shapes(
      prefix, MOVING_AVERAGE
    ):
      logging.warning(
        "%s has a moving average, which ends here: without --average_decay, "
        "checkpoints from now on decode by the weights themselves",
        prefix,
      )
    stored = {name.split("/")[0] for name in stored_shapes(prefix)}
    for group, variables in self.groups.items():
      if not variables:
        continue
      if group == WEIGHTS or group in stored:
        restore_variables(prefix, group, variables)
      else:
        logging.info("%s has no %s state: it starts afresh", prefix, group)
        afresh.add(group)
    return afresh

  def _tensors(self, *groups: str) -> dict[str, Any]:
    """Returns some groups' values by the names they are stored under."""
    return {
      bundle_key(group, variable): variable.value
      for group in groups
      for variable in self.groups[group]
    }

  def _check_finite(self, step: int) -> None:
    for variable in self.groups[WEIGHTS]:
      # Any NaN or infinity shows in the sum of the magnitudes.
      if not np.isfinite(tf.norm(variable.value, 1)):
        raise RunError(
          f"after step {step}, {variable.path} holds numbers that are not "
          "finite: this is not saved, and the checkpoints before it are kept"
        )

  def drop(self, step: int) -> None:
    """Removes a checkpoint.

    Raises:
      OSError: if the system refuses.
    """
    self.directory.remove_checkpoint(step)

  def drop_superseded(self, newest: int) -> None:
    """Removes checkpoints that the newest one supersedes.

    Args:
      newest: step of the newest checkpoint.
    """
    steps = [n for n in self.directory.checkpoint_steps() if n != newest]
    kept = [n for n in steps if not self.directory.is_interim(n)]
    if not self.directory.is_interim(newest):
      kept.append(newest)
    if self.keep_max:
      kept = sorted(kept)[-self.keep_max :]
    for step in steps:
      if step not in kept:
        self.directory.remove_checkpoint(step)
    # Damaged checkpoints of these steps have been replaced.
    for step, path in _set_aside(self.directory):
      if step <= newest:
        file_system.remove_tree(path)


def read_progress(prefix: str) -> tuple[int, int | None]:
  """Returns a checkpoint's step and seed; an imported one has no seed."""
  (step,) = read_integers(prefix, "step")
  if "seed" not in stored_shapes(prefix):
    return step, None
  return step, read_integers(prefix, "seed")[0]


def clean_up(directory: ModelDirectory) -> None:
  """Makes the newest checkpoint one that can be read, before a run goes on.

  Half-written files of an interrupted run are removed. Damaged checkpoints are
  renamed to `step-N.damaged`, the newest first, until one is intact.

  Raises:
    InputError: if all are damaged; none is renamed then.
  """
  # Files with other names belong to other programs, or to a running command.
  for name, prefix in (
    ("", DESCRIPTION_FILE),
    ("", MEASUREMENTS_FILE),
    ("", DATA_INDEX),
    ("", NONFINITE),
    (CHECKPOINTS, "step-"),
    (BEST, "step-"),
    (TRANSLATIONS, "step-"),
  ):
    for path in remove_leftovers(directory.join(name), prefix):
      logging.info("removed %s, which an interrupted run has left", path)
  steps = directory.checkpoint_steps()
  if not steps:
    return
  try:
    newest, damaged = first_readable(directory, steps[::-1], CHECKPOINTS)
  except DamagedCheckpointError as error:
    raise InputError(
      f"no checkpoint in {directory.join(CHECKPOINTS)} can be read; the "
      f"newest: {error}. If it is a copy, copy it again; --clean starts a new "
      "training"
    ) from None
  for problem in damaged:
    logging.error("%s; going on from the one of step %d", problem, newest)
  for step in (n for n in steps if n > newest):
    path = directory.checkpoint_directory(step)
    file_system.remove_tree(path + _DAMAGED)
    file_system.rename(path, path + _DAMAGED)


def _set_aside(directory: ModelDirectory) -> list[tuple[int, str]]:
  """Returns step and path of the checkpoints that were found damaged."""
  checkpoints = directory.join(CHECKPOINTS)
  found = ((n, _SET_ASIDE.match(n)) for n in file_system.names_in(checkpoints))
  return [
    (int(m.group(1)), os.path.join(checkpoints, n)) for n, m in found if m
  ]
