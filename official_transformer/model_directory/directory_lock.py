"""A lock that keeps two runs from training one model directory."""

from __future__ import annotations

import os
import socket
from types import TracebackType

from absl import logging

from official_transformer.durable_files import remove_if_there
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import LOCK_FILE

try:
  import fcntl
except ImportError:  # No such locks on Windows.
  fcntl = None  # type: ignore[assignment]


class DirectoryLock:
  """Held by the process that trains; the system frees it when that ends.

  The lock is on an open file, not the file's existence: whatever ends the
  process, a power cut included, frees it.

  Attributes:
    directory: the model directory.
  """

  def __init__(self, directory: str) -> None:
    self.directory = directory
    self._path = os.path.join(directory, LOCK_FILE)
    self._descriptor: int | None = None

  def acquire(self) -> None:
    """Takes the lock, unless it is held here already.

    Where the system has no such locks, a warning is all. The directory must
    exist.

    Raises:
      InputError: where another process holds it.
    """
    if self._descriptor is not None:
      return
    if fcntl is None:
      logging.warning("no lock on %s: see that one run trains it", self._path)
      return
    while self._descriptor is None:
      opened = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
      try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        holder = os.read(opened, 1000).decode().strip() or "another process"
        os.close(opened)
        raise InputError(
          f"{self.directory} is being trained by {holder}. Wait for it or stop "
          "it, or name another --model_dir"
        ) from None
      except OSError as error:  # Not every file system has locks.
        os.close(opened)
        logging.warning(
          "no lock on %s (%s): see that one run trains it", self._path, error
        )
        return
      # Whoever held it may have removed the file between these two calls.
      if _is_file(self._path, opened):
        self._descriptor = opened
      else:
        os.close(opened)
    os.ftruncate(self._descriptor, 0)
    owner = f"process {os.getpid()} on {socket.gethostname()}\n"
    os.write(self._descriptor, owner.encode())

  def release(self) -> None:
    """Frees the lock and removes its file."""
    if self._descriptor is not None:
      remove_if_there(self._path)
      os.close(self._descriptor)
      self._descriptor = None

  def __enter__(self) -> DirectoryLock:
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    self.release()


def _is_file(path: str, descriptor: int) -> bool:
  """Tells whether a path still names an open file."""
  try:
    return os.path.samestat(os.stat(path), os.fstat(descriptor))
  except FileNotFoundError:
    return False
