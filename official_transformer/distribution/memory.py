"""How much memory there is."""

from __future__ import annotations

import contextlib
import pathlib

import tensorflow as tf

_MEMINFO = pathlib.Path("/proc/meminfo")
# A container's own limit and what it uses of it, of either version of cgroups.
_LIMITS = (
  ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
  (
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
  ),
)


def computes_on_cpu() -> bool:
  """Returns whether nothing but this machine's processor computes."""
  kinds = {device.device_type for device in tf.config.list_logical_devices()}
  return kinds == {"CPU"}


def available_bytes() -> int | None:
  """Returns the memory that is free here, if the system tells."""
  found = []
  with contextlib.suppress(OSError):
    for line in _MEMINFO.read_text("utf-8").splitlines():
      if line.startswith("MemAvailable:"):
        found.append(int(line.split()[1]) * 1024)
  for limit, used in _LIMITS:
    with contextlib.suppress(OSError, ValueError):  # `max` is no limit.
      most = int(pathlib.Path(limit).read_text("utf-8"))
      found.append(most - int(pathlib.Path(used).read_text("utf-8")))
  return min(found, default=None)
