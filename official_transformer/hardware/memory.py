"""The memory of this machine, or of its container."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import pathlib
import sys

from official_transformer.hardware import control_groups

_MEMINFO = pathlib.Path("/proc/meminfo")


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
  limited = control_groups.available_bytes()
  if limited is not None:
    found.append(limited)
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
