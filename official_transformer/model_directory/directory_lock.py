"""A lock that keeps two runs from training one model directory."""

from __future__ import annotations

import os
from types import TracebackType

from official_transformer.errors import InputError
from official_transformer.model_directory.directory import LOCK_FILE
from official_transformer.storage.file_lock import FileLock, HeldError


class DirectoryLock:
  """Held by the process that trains; the system frees it when that ends.

  Attributes:
    directory: the model directory.
  """

  def __init__(self, directory: str) -> None:
    self.directory = directory
    self._lock = FileLock(os.path.join(directory, LOCK_FILE))

  def acquire(self) -> None:
    """Takes the lock, unless it is held here already.

    If the file system has no such locks, a warning is all. The directory must
    exist.

    Raises:
      InputError: if another process holds it.
    """
    try:
      self._lock.acquire()
    except HeldError as holder:
      raise InputError(
        f"{self.directory} is being trained by {holder}. Wait for it or stop "
        "it, or name another --model_dir"
      ) from None

  def release(self) -> None:
    """Frees the lock and removes its file."""
    self._lock.release()

  def __enter__(self) -> DirectoryLock:
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    self.release()
