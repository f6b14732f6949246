"""A lock that keeps two runs from training one model directory."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import socket
from types import TracebackType

import filelock
from absl import logging

from official_transformer.errors import InputError
from official_transformer.model_directory.directory import LOCK_FILE
from official_transformer.storage.file_system import is_remote, remove_if_there

_PATIENCE_SECONDS = 0.3
# What a file system without locks says; NotImplementedError says nothing.
_NO_LOCKS = (None, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class DirectoryLock:
  """Held by the process that trains; the system frees it when that ends.

  The lock is on an open file, not the file's existence: whatever ends the
  process, a power cut included, frees it.

  Attributes:
    directory: the model directory.
  """

  def __init__(self, directory: str) -> None:
    self.directory = directory
    self._path = pathlib.Path(directory, LOCK_FILE)
    # Not at once: whoever has just ended may be about to remove the file. And
    # no other kind of lock in its place, which would outlive its owner.
    self._lock = filelock.FileLock(
      self._path,
      timeout=_PATIENCE_SECONDS,
      thread_local=False,
      fallback_to_soft=False,
    )

  def acquire(self) -> None:
    """Takes the lock, unless it is held here already.

    If the file system has no such locks, a warning is all. The directory must
    exist.

    Raises:
      InputError: if another process holds it.
    """
    if self._lock.is_locked:
      return
    if is_remote(self.directory):
      logging.warning(
        "no lock in %s: see that one run trains it", self.directory
      )
      return
    try:
      self._lock.acquire()
    except filelock.Timeout:
      raise InputError(
        f"{self.directory} is being trained by {self._holder()}. Wait for it "
        "or stop it, or name another --model_dir"
      ) from None
    except (OSError, NotImplementedError) as error:
      if getattr(error, "errno", None) not in _NO_LOCKS:
        raise
      logging.warning(
        "no lock on %s (%s): see that one run trains it", self._path, error
      )
      return
    owner = f"process {os.getpid()} on {socket.gethostname()}\n"
    # Elsewhere than on POSIX, nobody else may read it anyway.
    with contextlib.suppress(OSError):
      self._path.write_text(owner, "utf-8")

  def _holder(self) -> str:
    """Returns who says that it holds the lock."""
    try:
      return self._path.read_text("utf-8").strip() or "another process"
    except OSError:  # It has just ended.
      return "another process"

  def release(self) -> None:
    """Frees the lock and removes its file."""
    if self._lock.is_locked:
      remove_if_there(str(self._path))
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
