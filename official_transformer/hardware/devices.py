"""Choice of this machine's devices for a run."""

from __future__ import annotations

import sys

from absl import logging

from official_transformer.errors import InputError
from official_transformer.hardware.startup import said_at_start, show


def choose_devices(num_gpus: int | None) -> list[str]:
  """Returns the devices a run uses, and hides the other GPUs from TensorFlow.

  Must be called before TensorFlow touches a GPU.

  Args:
    num_gpus: as given; None is one GPU if there is one, -1 all.

  Returns:
    `["GPU:0", ...]`, or `["CPU:0"]`.

  Raises:
    InputError: if more are asked for than are visible.
  """
  import tensorflow as tf

  gpus = tf.config.list_physical_devices("GPU")
  if num_gpus is not None and num_gpus > max(1, len(gpus)):
    # The messages may name a fault of the driver.
    show(said_at_start())
  number = _number_of_gpus(num_gpus, len(gpus), "TensorFlow")
  tf.config.set_visible_devices(gpus[:number], "GPU")
  return [f"GPU:{n}" for n in range(number)] or ["CPU:0"]


def ctranslate2_has_gpu(num_gpus: int | None) -> bool:
  """Returns whether CTranslate2 is to compute on a GPU.

  TensorFlow, if this process has imported it, is kept off all GPUs, of which it
  would take all the memory.

  Raises:
    InputError: if more GPUs are asked for than are visible.
  """
  import ctranslate2

  found = ctranslate2.get_cuda_device_count()
  number = _number_of_gpus(num_gpus, found, "CTranslate2")
  if sys.modules.get("tensorflow"):
    hide_gpus()
  return number > 0


def _number_of_gpus(num_gpus: int | None, found: int, library: str) -> int:
  """Returns how many GPUs are taken, of those that a library sees."""
  if num_gpus is None:
    return min(1, found)
  if num_gpus == -1:
    return found
  if num_gpus == 1 and not found:
    # Upstream's commands have this flag by default, on any machine.
    logging.warning("--num_gpus=1, but %s sees none: using the CPU", library)
    return 0
  if num_gpus > found:
    raise InputError(
      f"--num_gpus={num_gpus}, but {library} sees {found}. Lower it, or "
      "check the driver and CUDA_VISIBLE_DEVICES (TF_CPP_MIN_LOG_LEVEL=0 shows "
      "what TensorFlow says of them); for GPU support: pip install "
      "'official-transformer[gpu]'"
    )
  return num_gpus


def hide_gpus() -> None:
  """Keeps TensorFlow off all GPUs: something else computes there."""
  import tensorflow as tf

  tf.config.set_visible_devices([], "GPU")
