"""The directory of intermediate files of a preparation.

The directory is beside the data, where there is space, and is kept when a run
is interrupted: the same command finds the finished files. A file in it
describes everything that the result depends on; for another result, the
directory is emptied.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, write_text
from official_transformer.storage.file_lock import FileLock

NAME = "preparation" + INCOMPLETE
_PLAN = "plan.json"


class Scratch:
  """A directory that is removed when all is done.

  Attributes:
    directory: path of the directory, on this machine.
    is_resumed: whether an earlier run with the same plan has begun it.
  """

  def __init__(self, directory: str, plan: Any) -> None:
    """Continues with the files of an earlier run, or starts again.

    Args:
      directory: need not exist.
      plan: everything that the result depends on, as JSON; None if unknown.
    """
    self.directory = directory
    described = json.dumps(plan, indent=2, sort_keys=True)
    self.is_resumed = plan is not None and self._plan() == described
    if not self.is_resumed:
      _remove(directory)
      os.makedirs(directory)
      write_text(self.path(_PLAN), described)

  def path(self, name: str) -> str:
    """Returns the path of a file in the scratch directory."""
    return os.path.join(self.directory, name)

  def has(self, name: str) -> bool:
    """Returns whether a file is in it."""
    return os.path.exists(self.path(name))

  def mark(self, name: str) -> None:
    """Remembers that something has been done, by an empty file."""
    write_text(self.path(name), "")

  def _plan(self) -> str | None:
    try:
      with open(self.path(_PLAN), encoding="utf-8") as stream:
        return stream.read()
    except (OSError, UnicodeDecodeError):
      return None


@contextlib.contextmanager
def scratch_for(data_dir: str, plan: Any) -> Iterator[Scratch]:
  """Gives the scratch directory of some data; removes it when all is done.

  Finished files are kept if the system refuses or a signal ends the run, but
  not if the input is wrong, because other input needs other files. For a remote
  store, the directory is a temporary one of this machine.

  Args:
    data_dir: where the data will be.
    plan: everything that the files depend on, as JSON; None if unknown.
  """
  if file_system.is_remote(data_dir):
    with tempfile.TemporaryDirectory() as directory:
      yield Scratch(os.path.join(directory, NAME), None)
    return
  directory = os.path.join(data_dir, NAME)
  with _alone(directory + ".lock", data_dir):
    scratch = Scratch(directory, plan)
    try:
      yield scratch
    except InputError:
      _remove(directory)
      raise
    _remove(directory)


def _remove(directory: str) -> None:
  """Removes a scratch directory, so that no run continues with a part of it."""
  file_system.remove_if_there(os.path.join(directory, _PLAN))
  file_system.remove_tree(directory)


def _alone(path: str, data_dir: str) -> FileLock:
  """Returns a lock that excludes other runs from a directory."""
  return FileLock(
    path,
    f"another run, {{holder}}, prepares data in {data_dir}; wait for it or "
    "stop it, or name another --data_dir",
  )
