"""A lock between processes, which the system frees when its holder ends."""

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
from official_transformer.storage.file_system import is_remote, remove_if_there

_PATIENCE_SECONDS = 0.3
# Errors of file systems without locks; NotImplementedError has no number.
_NO_LOCKS = (None, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class FileLock:
  """Held by one process of all that ask for it.

  The lock belongs to an open file, not to its existence: it is released
  whenever the process ends, also by a power cut.

  Attributes:
    path: path of the file, whose directory must exist when the lock is taken.
  """

  def __init__(self, path: str, refusal: str) -> None:
    """Takes nothing yet.

    Args:
      path: path of the file.
      refusal: message of the error if another process holds the lock, with
        `{holder}`.
    """
    self.path = path
    self._refusal = refusal
    # With a short wait, because a process that is ending may be about to remove
    # the file. Other kinds of locks are not used, because they would outlive
    # their owner.
    self._lock = filelock.FileLock(
      path,
      timeout=_PATIENCE_SECONDS,
      thread_local=False,
      fallback_to_soft=False,
    )

  def acquire(self) -> None:
    """Takes the lock, unless it is held here already.

    If the file system has no such locks, a warning is all.

    Raises:
      InputError: if another process holds it.
    """
    if self._lock.is_locked:
      return
    warning = "cannot lock %s%s: make sure that only one run at a time uses it"
    if is_remote(self.path):
      logging.warning(warning, self.path, "")
      return
    try:
      self._lock.acquire()
    except filelock.Timeout:
      raise InputError(
        self._refusal.replace("{holder}", self._holder())
      ) from None
    except (OSError, NotImplementedError) as error:
      if getattr(error, "errno", None) not in _NO_LOCKS:
        raise
      logging.warning(warning, self.path, f" ({error})")
      return
    owner = f"process {os.getpid()} on {socket.gethostname()}\n"
    # Elsewhere than on POSIX, nobody else may read it anyway.
    with contextlib.suppress(OSError):
      pathlib.Path(self.path).write_text(owner, "utf-8")

  def _holder(self) -> str:
    """Returns the name of the lock's holder."""
    try:
      # Another program may have written it, in any encoding.
      owner = pathlib.Path(self.path).read_text("utf-8", errors="replace")
      return owner.strip() or "another process"
    except OSError:  # It has just ended.
      return "another process"

  def release(self) -> None:
    """Frees the lock and removes its file."""
    if self._lock.is_locked:
      remove_if_there(self.path)
      self._lock.release()

  def __enter__(self) -> FileLock:
    self.acquire()
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    self.release()
