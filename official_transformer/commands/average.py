"""What `--mode=average` does: the mean of checkpoints, as one more."""

from __future__ import annotations

import tensorflow as tf
from absl import flags, logging

from official_transformer.commands.flag_readers import read_averaged_steps
from official_transformer.errors import InputError
from official_transformer.hardware.devices import hide_gpus
from official_transformer.model_directory.checkpoint_files import (
  AVERAGED_STEPS,
  DamagedCheckpointError,
  mean_weights,
  to_storage,
  write_only_checkpoint,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
)
from official_transformer.storage.durable_files import remove_leftovers

FLAGS = flags.FLAGS


def average() -> None:
  """Writes the mean of some checkpoints' weights into the model directory.

  Any earlier average is replaced.
  """
  # A training that goes on beside this has the GPU's memory.
  hide_gpus()
  directory, steps = read_averaged_steps()
  try:
    weights = mean_weights([directory.checkpoint_prefix(n) for n in steps])
  except DamagedCheckpointError as error:
    raise InputError(
      f"{error}; --average_checkpoints averages those that it lists"
    ) from None
  weights = to_storage(weights, FLAGS.storage)
  remove_leftovers(directory.join(AVERAGE), "step-")
  weights[AVERAGED_STEPS] = tf.constant(steps, tf.int64)
  path = write_only_checkpoint(directory, steps[-1], weights, AVERAGE)
  logging.info(
    "%s is the mean of %d checkpoints, steps %s; use it with --checkpoint=%s",
    path,
    len(steps),
    ", ".join(map(str, steps)),
    AVERAGE,
  )
