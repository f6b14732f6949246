"""The limits of a container or of a batch system: Linux' control groups."""

from __future__ import annotations

import contextlib
import math
import pathlib
from collections.abc import Iterator

_OWN = pathlib.Path("/proc/self/cgroup")
_MOUNTED = pathlib.Path("/sys/fs/cgroup")
# Files with a group's limit of memory, its use, and the part of its use that
# caches files and can be freed; for both versions of control groups.
_MEMORY = (
  ("memory.max", "memory.current", "inactive_file"),
  ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_bytes() -> int | None:
  """Returns the memory that the groups' limits leave; None without a limit."""
  found = []
  for directory in _directories("memory"):
    for limit, used, droppable in _MEMORY:
      # `max` is no limit.
      with contextlib.suppress(OSError, ValueError, KeyError):
        most = int((directory / limit).read_text("utf-8"))
        taken = int((directory / used).read_text("utf-8"))
        fields = (directory / "memory.stat").read_text("utf-8").split()
        numbers = dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
        found.append(most - taken + numbers[droppable])
  return min(found, default=None)


def most_processors() -> int | None:
  """Returns the processors whose time the groups' quotas allow, rounded up.

  None without a quota, which is what `docker run --cpus` and Kubernetes' limits
  set.
  """
  found = []
  for directory in _directories("cpu"):
    # `max`, or -1 in version 1, is no quota.
    with contextlib.suppress(OSError, ValueError):
      quota, period = (directory / "cpu.max").read_text("utf-8").split()
      found.append(int(quota) / int(period))
    with contextlib.suppress(OSError, ValueError):
      quota, period = (
        (directory / f"cpu.cfs_{name}_us").read_text("utf-8")
        for name in ("quota", "period")
      )
      found.append(int(quota) / int(period))
  return min((math.ceil(n) for n in found if n > 0), default=None)


def _directories(controller: str) -> Iterator[pathlib.Path]:
  """Yields the directories of this process' groups and of those around them.

  Some may not exist: in a container, the group's path may be the one outside.
  """
  with contextlib.suppress(OSError):
    for line in _OWN.read_text("utf-8").splitlines():
      _, controllers, path = line.split(":", 2)
      if not controllers:  # Version 2.
        mounted = _MOUNTED
      elif controller in controllers.split(","):
        mounted = _MOUNTED / controller
      else:
        continue
      own = mounted / path.strip("/")
      for directory in (own, *own.parents):
        if directory.is_relative_to(mounted):
          yield directory
