"""Choice of this machine's devices for a run.

TensorFlow is imported inside the functions, because CTranslate2 needs it on
GPUs alone, for the libraries of CUDA that it loads.
"""

from __future__ import annotations

import sys

from absl import logging

from official_transformer.errors import InputError
from official_transformer.hardware.startup import (
  said_at_start,
  show,
  start_tensorflow,
)


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
  library, gpus = "CTranslate2", []
  if for_tensorflow or _ctranslate2_sees_gpus():
    import tensorflow as tf

    library, gpus = "TensorFlow", tf.config.list_physical_devices("GPU")
  wanted = min(1, len(gpus)) if num_gpus is None else num_gpus
  if wanted == -1:
    wanted = len(gpus)
  if wanted == 1 and not gpus:
    # Upstream's commands have this flag by default, on any machine.
    logging.warning("--num_gpus=1, but %s sees none: using the CPU", library)
    wanted = 0
  if wanted > len(gpus):
    # The messages may name a fault of the driver.
    show(said_at_start())
    raise InputError(
      f"--num_gpus={num_gpus}, but {library} sees {len(gpus)}. Lower it, or "
      "check the driver and CUDA_VISIBLE_DEVICES (TF_CPP_MIN_LOG_LEVEL=0 shows "
      "what TensorFlow says of them); for GPU support: pip install "
      "'official-transformer[gpu]'"
    )
  # If it is not imported, it takes no GPU's memory.
  if imported := sys.modules.get("tensorflow"):
    visible = gpus[:wanted] if for_tensorflow else []
    imported.config.set_visible_devices(visible, "GPU")
  return [f"GPU:{n}" for n in range(wanted)] or ["CPU:0"]


def hide_gpus() -> None:
  """Keeps TensorFlow off all GPUs: something else computes there."""
  import tensorflow as tf

  tf.config.set_visible_devices([], "GPU")


def _ctranslate2_sees_gpus() -> bool:
  """Returns whether CTranslate2 sees a GPU; TensorFlow is started then."""
  import ctranslate2

  if not ctranslate2.get_cuda_device_count():
    return False
  start_tensorflow()
  return True
