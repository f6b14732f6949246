"""Files by their paths, on this machine or in a remote store.

TensorFlow reads and writes paths of the form `scheme://...`, such as
`gs://bucket/model`; for other paths TensorFlow is not imported. Errors are
`OSError` in both cases.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import IO, Any

_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Remote schemes in which a whole directory is renamed at once.
_RENAMING_SCHEMES = ("file", "hdfs", "viewfs")


def is_remote(path: str) -> bool:
  """Returns whether a path is TensorFlow's to read and write."""
  return _REMOTE.match(path) is not None


def renames_directories(path: str) -> bool:
  """Returns whether a directory there changes its name at once, or never.

  An object store has none: it copies one object after the other.
  """
  scheme = _REMOTE.match(path)
  return scheme is None or scheme[1] in _RENAMING_SCHEMES


def absolute(path: str) -> str:
  """Returns a path that holds wherever a process is started."""
  return path.rstrip("/") if is_remote(path) else os.path.abspath(path)


def is_same(path: str, other: str) -> bool:
  """Returns whether two paths lead to the same place, links included."""
  if is_remote(path) or is_remote(other):
    return path.rstrip("/") == other.rstrip("/")
  if os.path.exists(path) and os.path.exists(other):
    return os.path.samefile(path, other)
  return os.path.realpath(path) == os.path.realpath(other)


def open_file(path: str, mode: str = "r") -> IO[Any]:
  """Opens a file; text is UTF-8, and line ends are not translated.

  Args:
    path: path of the file.
    mode: `r`, `rb`, `w` or `wb`.

  Raises:
    OSError: if it cannot be opened.
  """
  text = "b" not in mode
  if not is_remote(path):
    if text:
      return open(path, mode, encoding="utf-8", newline="\n")
    return open(path, mode)
  if mode[0] == "r" and is_directory(path):
    raise IsADirectoryError(f"{path} is a directory")
  raw = _RemoteFile(path, mode[0])
  buffered: Any = (
    io.BufferedReader(raw) if mode[0] == "r" else io.BufferedWriter(raw)
  )
  return io.TextIOWrapper(buffered, "utf-8", newline="\n") if text else buffered


def exists(path: str) -> bool:
  """Returns whether there is a file or a directory."""
  if not is_remote(path):
    return os.path.exists(path)
  with _as_os_errors():
    # In an object store, a directory exists if a file is in it.
    return bool(_gfile().exists(path) or _gfile().isdir(path))


def is_directory(path: str) -> bool:
  """Returns whether there is a directory."""
  if not is_remote(path):
    return os.path.isdir(path)
  with _as_os_errors():
    return bool(_gfile().isdir(path))


def is_file(path: str) -> bool:
  """Returns whether there is an ordinary file."""
  if not is_remote(path):
    return os.path.isfile(path)
  return exists(path) and not is_directory(path)


def names_in(directory: str) -> list[str]:
  """Returns the sorted names in a directory; empty if there is none."""
  if not is_directory(directory):
    return []
  if not is_remote(directory):
    return sorted(os.listdir(directory))
  with _as_os_errors():
    names = _gfile().listdir(directory)
  # Some stores end the names of directories so, or list the directory itself.
  return sorted({name.rstrip("/") for name in names} - {""})


def matching(pattern: str) -> list[str]:
  """Returns the paths that a pattern with `*`, `?` or `[...]` names, in order.

  A file whose name is the pattern itself is the only match.
  """
  if exists(pattern):
    return [pattern]
  if not is_remote(pattern):
    return sorted(glob.glob(pattern))
  with _as_os_errors():
    return sorted(_gfile().glob(pattern))


def size(path: str) -> int:
  """Returns the bytes of a file."""
  if not is_remote(path):
    return os.path.getsize(path)
  with _as_os_errors():
    return int(_gfile().stat(path).length)


def modified(path: str) -> int:
  """Returns when a file was last written, in nanoseconds since 1970."""
  if not is_remote(path):
    return os.stat(path).st_mtime_ns
  with _as_os_errors():
    return int(_gfile().stat(path).mtime_nsec)


def state(path: str) -> list[int]:
  """Returns size and time of a file, which show later changes."""
  return [size(path), modified(path)]


def make_directories(path: str) -> None:
  """Creates a directory and its parents, if they do not exist."""
  if not is_remote(path):
    os.makedirs(path, exist_ok=True)
    return
  with _as_os_errors():
    _gfile().makedirs(path)


def rename(source: str, path: str) -> None:
  """Gives a file or a directory another name, in the place of a file."""
  if not is_remote(path):
    os.replace(source, path)
    return
  with _as_os_errors():
    _gfile().rename(source, path, overwrite=True)


def remove_file(path: str) -> None:
  """Removes a file."""
  if not is_remote(path):
    os.remove(path)
    return
  with _as_os_errors():
    _gfile().remove(path)


def remove_if_there(path: str) -> None:
  """Removes a file, if it exists."""
  with contextlib.suppress(FileNotFoundError):
    remove_file(path)


def remove_tree(path: str) -> None:
  """Removes a directory and all that is in it, or a link, if it exists."""
  if is_remote(path):
    if is_directory(path):
      with _as_os_errors():
        _gfile().rmtree(path)
    return
  if os.path.islink(path):
    os.unlink(path)
  elif os.path.isdir(path):
    shutil.rmtree(path)


def remove(path: str) -> None:
  """Removes a file, a link, or a directory and all that is in it."""
  if is_directory(path):
    remove_tree(path)
  else:
    remove_file(path)


def copy(source: str, path: str) -> None:
  """Copies a file's bytes, in the place of an earlier one."""
  with open_file(source, "rb") as reader, open_file(path, "wb") as writer:
    shutil.copyfileobj(reader, writer)


def read_bytes(path: str) -> bytes:
  """Returns a file's content."""
  with open_file(path, "rb") as stream:
    return stream.read()


def sha256(path: str) -> str:
  """Returns the SHA-256 of a file's bytes, in hexadecimal."""
  digest = hashlib.sha256()
  with open_file(path, "rb") as stream:
    while block := stream.read(1 << 20):
      digest.update(block)
  return digest.hexdigest()


class _RemoteFile(io.RawIOBase):
  """A remote file as Python's own input and output take it."""

  def __init__(self, path: str, mode: str) -> None:
    super().__init__()
    self.name = path
    self._mode = mode
    with _as_os_errors():
      self._file = _gfile().GFile(path, mode + "b")
      if mode == "w":
        self._file.write(b"")  # It is there even if nothing more comes.
      else:
        self._file.size()  # Raises if it is not there.

  def readable(self) -> bool:
    return self._mode == "r"

  def writable(self) -> bool:
    return self._mode == "w"

  def readinto(self, buffer: Any) -> int:
    with _as_os_errors():
      data = self._file.read(len(buffer))
    buffer[: len(data)] = data
    return len(data)

  def seekable(self) -> bool:
    return self._mode == "r"

  def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
    with _as_os_errors():
      self._file.seek(offset, whence)
    return self.tell()

  def tell(self) -> int:
    with _as_os_errors():
      return self._file.tell()

  def write(self, data: Any) -> int:
    with _as_os_errors():
      self._file.write(bytes(data))
    return len(data)

  def flush(self) -> None:
    super().flush()
    if self._mode == "w" and not self.closed:
      with _as_os_errors():
        self._file.flush()

  def close(self) -> None:
    if self.closed:
      return
    try:
      super().close()
    finally:
      with _as_os_errors():
        self._file.close()


def _gfile() -> Any:
  return _tensorflow().io.gfile


def _tensorflow() -> Any:
  """Returns TensorFlow, started without its messages."""
  from official_transformer.hardware.startup import start_tensorflow

  start_tensorflow()
  import tensorflow as tf

  return tf


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
  """Turns TensorFlow's file errors into Python's."""
  tf = _tensorflow()
  kinds: tuple[tuple[Any, Callable[[str], OSError]], ...] = (
    (tf.errors.NotFoundError, FileNotFoundError),
    (tf.errors.AlreadyExistsError, FileExistsError),
    (tf.errors.PermissionDeniedError, PermissionError),
    (tf.errors.OpError, OSError),
  )
  try:
    yield
  except tf.errors.OpError as error:
    message = error.message.split("\n")[0]
    for kind, make in kinds:
      if isinstance(error, kind):
        raise make(message) from None
    raise
