"""Which devices a run uses, and the strategy that spreads it over them."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence

import tensorflow as tf
from absl import logging

from official_transformer.errors import InputError

# What reduces gradients over the devices of one machine.
ALL_REDUCE = {
  "nccl": tf.distribute.NcclAllReduce,
  "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
}
CONNECT_SECONDS = 10.0
NOT_HERE = {
  "parameter_server": (
    "Keras 3 trains no functional model under it, and asynchronous updates "
    "have no counterpart of the official numbers"
  ),
  "multi_worker_mirrored": "runs over several machines are not supported yet",
}


def choose_devices(num_gpus: int | None) -> list[str]:
  """Returns the devices a run uses, and hides the other GPUs from TensorFlow.

  Must be called before TensorFlow touches a GPU.

  Args:
    num_gpus: as given; None is one GPU where there is one, -1 all.

  Returns:
    `["GPU:0", ...]`, or `["CPU:0"]`.

  Raises:
    InputError: where more are asked for than are visible.
  """
  gpus = tf.config.list_physical_devices("GPU")
  wanted = min(1, len(gpus)) if num_gpus is None else num_gpus
  if wanted == -1:
    wanted = len(gpus)
  if wanted == 1 and not gpus:
    # What upstream's commands say by default, on any machine.
    logging.warning("--num_gpus=1, but TensorFlow sees none: using the CPU")
    wanted = 0
  if wanted > len(gpus):
    raise InputError(
      f"--num_gpus={num_gpus}, but TensorFlow sees {len(gpus)}. Lower it, or "
      "check the driver and CUDA_VISIBLE_DEVICES; for GPU support: pip install "
      "'official-transformer[gpu]'"
    )
  tf.config.set_visible_devices(gpus[:wanted], "GPU")
  return [f"GPU:{n}" for n in range(wanted)] or ["CPU:0"]


def create_strategy(
  name: str,
  devices: Sequence[str],
  all_reduce_alg: str | None = None,
  num_packs: int = 1,
  tpu: str | None = None,
) -> tf.distribute.Strategy:
  """Returns the strategy that a run trains under.

  Args:
    name: `off`, `one_device`, `mirrored`, `tpu`, or one that is refused.
    devices: as `choose_devices` returns them.
    all_reduce_alg: for `mirrored`, a key of `ALL_REDUCE`; None leaves the
      choice to TensorFlow.
    num_packs: for `mirrored`, into how many packs gradients are put.
    tpu: for `tpu`, its name or address; `local` for one in this machine.

  Raises:
    InputError: where the strategy cannot run on these devices.
  """
  if name in NOT_HERE:
    raise InputError(
      f"--distribution_strategy={name}: {NOT_HERE[name]}. Use mirrored, over "
      "all GPUs of one machine"
    )
  if name == "tpu":
    return _tpu_strategy(tpu)
  if name in ("off", "one_device") and len(devices) > 1:
    raise InputError(
      f"--distribution_strategy={name} uses one device, --num_gpus asks for "
      f"{len(devices)}; use mirrored"
    )
  if len(devices) > 1:
    reduction = None
    if all_reduce_alg is not None:
      if all_reduce_alg not in ALL_REDUCE:
        raise InputError(
          f"--all_reduce_alg={all_reduce_alg} is for several machines; on one "
          f"there are: {', '.join(ALL_REDUCE)}"
        )
      reduction = ALL_REDUCE[all_reduce_alg](num_packs=num_packs)
    elif num_packs != 1:
      reduction = tf.distribute.NcclAllReduce(num_packs=num_packs)
    return tf.distribute.MirroredStrategy(devices, reduction)
  if name == "one_device":
    return tf.distribute.OneDeviceStrategy(devices[0])
  # One device needs no strategy; with one, Keras' fit reads the first batch
  # twice, and all that lies before it.
  return tf.distribute.get_strategy()


def _tpu_strategy(address: str | None) -> tf.distribute.Strategy:
  """Connects to a TPU."""
  try:
    _probe(address or "")
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
      tpu="" if address is None else address
    )
    if address not in ("", "local"):
      tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
  # Whatever it is that fails, from name look-up to the handshake.
  except (
    ValueError,
    OSError,
    RuntimeError,
    LookupError,
    tf.errors.OpError,
  ) as e:
    reason = str(e).strip().split("\n")[0]
    raise InputError(
      f"--distribution_strategy=tpu: no TPU answers at --tpu={address} "
      f"({reason}). Check its name, or run on the TPU's own machine "
      "with --tpu=local"
    ) from None
  return tf.distribute.TPUStrategy(resolver)


def _probe(address: str) -> None:
  """Raises an `OSError` where nothing listens; TensorFlow would wait on."""
  match = re.fullmatch(r"grpc://(.+):(\d+)", address)
  if match:
    host, port = match.groups()
    socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
