"""The memory of this machine, or of its container."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pathlib
import sys

_MEMINFO = pathlib.Path("/proc/meminfo")
# A container's limit, its use, and the part of its use that caches files and
# can be freed; for both versions of cgroups.
_GROUP = "/sys/fs/cgroup"
_LIMITS = (
  (f"{_GROUP}/memory.max", f"{_GROUP}/memory.current", "inactive_file"),
  (
    f"{_GROUP}/memory/memory.limit_in_bytes",
    f"{_GROUP}/memory/memory.usage_in_bytes",
    "total_inactive_file",
  ),
)


def computes_on_cpu() -> bool:
  """Returns whether TensorFlow computes on nothing but this processor."""
  tf = sys.modules.get("tensorflow")
  if tf is None:
    return True
  kinds = {device.device_type for device in tf.config.list_logical_devices()}
  return kinds == {"CPU"}


def available_bytes() -> int | None:
  """Returns the memory that is free here; None if unknown."""
  found = []
  with contextlib.suppress(OSError):
    for line in _MEMINFO.read_text("utf-8").splitlines():
      if line.startswith("MemAvailable:"):
        found.append(int(line.split()[1]) * 1024)
  for limit, used, droppable in _LIMITS:
    # `max` is no limit.
    with contextlib.suppress(OSError, ValueError, KeyError):
      most = int(pathlib.Path(limit).read_text("utf-8"))
      taken = int(pathlib.Path(used).read_text("utf-8"))
      statistics = pathlib.Path(used).with_name("memory.stat")
      fields = statistics.read_text("utf-8").split()
      numbers = dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
      found.append(most - taken + numbers[droppable])
  return min(found, default=None)


def release_unused() -> None:
  """Gives memory that nothing uses any more back to the system.

  A dropped model is a cycle of objects, which Python frees at a later time, and
  glibc keeps freed memory that lies between blocks in use.
  """
  gc.collect()
  # Other C libraries lack the function, and some systems the name.
  with contextlib.suppress(OSError, AttributeError):
    ctypes.CDLL(None).malloc_trim(0)
