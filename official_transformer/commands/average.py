"""`--mode=average`: the mean of checkpoints, as one more."""

from __future__ import annotations

import dataclasses

from absl import logging

from official_transformer.commands.flag_records import flag
from official_transformer.commands.shared_options import DTYPES, ModelDirOptions
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import (
  AVERAGE,
  ModelDirectory,
)
from official_transformer.storage.durable_files import remove_leftovers
from official_transformer.storage.file_lock import FileLock


@dataclasses.dataclass(frozen=True, kw_only=True)
class AverageOptions(ModelDirOptions):
  """Flags of the checkpoints to average."""

  heading = "Averaging"
  summary = "make a checkpoint of the mean of several, for --checkpoint=average"

  average_last: int = flag(
    5,
    "How many of the newest checkpoints; step 0 and interim ones are left out.",
    (
      lambda o: o.average_checkpoints is not None,
      "--average_checkpoints says which",
    ),
    lower_bound=1,
  )
  average_checkpoints: tuple[str, ...] | None = flag(
    None,
    "The steps of this model's checkpoints to take, instead of --average_last.",
  )
  storage: str = flag(
    "fp32",
    "Number format of the stored average: fp16 and bf16 take half the space, "
    "and are read as float32 by everything that reads a model.",
    choices=DTYPES,
  )

  def steps(self) -> list[int]:
    """Returns the steps of the checkpoints to average, ascending.

    Raises:
      InputError: if there is no model, or not as many checkpoints.
    """
    directory = ModelDirectory(self.model_dir)
    directory.read()  # Raises InputError if there is no model.
    if self.average_checkpoints is None:
      return last_steps(directory, self.average_last)
    return listed_steps(directory, list(self.average_checkpoints))

  def check(self) -> None:
    """Refuses checkpoints that are not there."""
    self.steps()

  def run(self) -> None:
    """Writes the mean of some checkpoints' weights into the model directory.

    Any earlier average is replaced.
    """
    import tensorflow as tf

    from official_transformer.hardware.devices import hide_gpus
    from official_transformer.model_directory.checkpoint_files import (
      AVERAGED_STEPS,
      DamagedCheckpointError,
      mean_weights,
    )
    from official_transformer.model_directory.checkpoint_writing import (
      to_storage,
      write_only_checkpoint,
    )

    # A training in another process may need the GPU's memory.
    hide_gpus()
    directory, steps = ModelDirectory(self.model_dir), self.steps()
    try:
      weights = mean_weights([directory.checkpoint_prefix(n) for n in steps])
    except DamagedCheckpointError as error:
      raise InputError(
        f"{error}; list the steps of intact checkpoints in "
        "--average_checkpoints"
      ) from None
    weights = to_storage(weights, self.storage)
    weights[AVERAGED_STEPS] = tf.constant(steps, tf.int64)
    with FileLock(
      directory.join(f"{AVERAGE}.lock"),
      f"{{holder}} writes an average into {directory.path}; wait for it",
    ):
      remove_leftovers(directory.join(AVERAGE), "step-")
      path = write_only_checkpoint(directory, steps[-1], weights, AVERAGE)
    logging.info(
      "%s is the mean of %d checkpoints, steps %s; use it with --checkpoint=%s",
      path,
      len(steps),
      ", ".join(map(str, steps)),
      AVERAGE,
    )


def last_steps(directory: ModelDirectory, number: int) -> list[int]:
  """Returns the steps of the newest checkpoints, ascending.

  The weights that training began with are left out, and so are checkpoints that
  only serve to resume, because the time of their saving is arbitrary.
  """
  steps = [
    n
    for n in directory.checkpoint_steps()
    if n > 0 and not directory.is_interim(n)
  ]
  if len(steps) < number:
    raise InputError(
      f"--average_last={number}: {directory.path} has {len(steps)} checkpoints "
      "that count"
      + (f", of the steps {', '.join(map(str, steps))}. " if steps else ". ")
      + "That of step 0 does not, nor do those saved at an interruption or "
      "by --save_checkpoints_secs. "
      + ("Give a smaller number; " if steps else "")
      + "--keep_checkpoint_max and --save_checkpoints_steps have training keep "
      "more"
    )
  return steps[-number:]


def listed_steps(directory: ModelDirectory, listed: list[str]) -> list[int]:
  """Returns the steps that the user names, ascending."""
  steps = directory.checkpoint_steps()
  unknown = [text for text in listed if text not in map(str, steps)]
  if unknown or not listed:
    raise InputError(
      f"--average_checkpoints={','.join(listed)}: "
      + (f"no checkpoint of step {', '.join(unknown)}; " if unknown else "")
      + f"{directory.path} has "
      + (", ".join(map(str, steps)) or "none")
    )
  if len(set(listed)) < len(listed):
    raise InputError("--average_checkpoints names a step twice")
  return sorted(map(int, listed))
