"""Choice of this machine's devices for a run."""

from __future__ import annotations

import tensorflow as tf
from absl import logging

from official_transformer.errors import InputError
from official_transformer.hardware.startup import said_at_start, show


def choose_devices(
  num_gpus: int | None, for_tensorflow: bool = True
) -> list[str]:
  """Returns the devices a run uses, and hides the other GPUs from TensorFlow.

  Must be called before TensorFlow touches a GPU.

  Args:
    num_gpus: as given; None is one GPU if there is one, -1 all.
    for_tensorflow: whether TensorFlow computes there; else it is kept off, as
      it would take all their memory.

  Returns:
    `["GPU:0", ...]`, or `["CPU:0"]`.

  Raises:
    InputError: if more are asked for than are visible.
  """
  gpus = tf.config.list_physical_devices("GPU")
  wanted = min(1, len(gpus)) if num_gpus is None else num_gpus
  if wanted == -1:
    wanted = len(gpus)
  if wanted == 1 and not gpus:
    # Upstream's commands have this flag by default, on any machine.
    logging.warning("--num_gpus=1, but TensorFlow sees none: using the CPU")
    wanted = 0
  if wanted > len(gpus):
    # The messages may name a fault of the driver.
    show(said_at_start())
    raise InputError(
      f"--num_gpus={num_gpus}, but TensorFlow sees {len(gpus)}. Lower it, or "
      "check the driver and CUDA_VISIBLE_DEVICES (TF_CPP_MIN_LOG_LEVEL=0 shows "
      "what TensorFlow says of them); for GPU support: pip install "
      "'official-transformer[gpu]'"
    )
  visible = gpus[:wanted] if for_tensorflow else []
  tf.config.set_visible_devices(visible, "GPU")
  return [f"GPU:{n}" for n in range(wanted)] or ["CPU:0"]


def hide_gpus() -> None:
  """Keeps TensorFlow off all GPUs: something else computes there."""
  tf.config.set_visible_devices([], "GPU")
