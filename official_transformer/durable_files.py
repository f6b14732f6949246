"""Files that a crash leaves either as they were or as they were to be.

What is new is written aside, under a name ending in `.incomplete`, forced to
the disk, and renamed; the renaming is forced to the disk as well.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

INCOMPLETE = ".incomplete"
_REPLACED = ".replaced" + INCOMPLETE
_DROPPED = ".dropped" + INCOMPLETE


def write_text(path: str, text: str) -> None:
  """Writes a text file as UTF-8, or replaces one.

  Raises:
    OSError: if the system refuses; the file is as it was.
  """
  with (
    new_file(path) as aside,
    open(aside, "w", encoding="utf-8", newline="\n") as stream,
  ):
    stream.write(text)


def copy_file(source: str, path: str) -> None:
  """Copies a file, or replaces one.

  Raises:
    OSError: if the system refuses; the file is as it was.
  """
  with new_file(path) as aside:
    shutil.copyfile(source, aside)


@contextlib.contextmanager
def new_file(path: str, keep_incomplete: bool = False) -> Iterator[str]:
  """Gives the name of a file to write, which then becomes `path`.

  It does so if the body ends without an exception, and takes the place of an
  earlier file.

  Args:
    path: the file's final name.
    keep_incomplete: whether what has been written stays, under its other name,
      if the body fails; else it is removed.

  Yields:
    Its name meanwhile.

  Raises:
    OSError: if the system refuses; `path` is as it was.
  """
  aside = path + INCOMPLETE
  try:
    yield aside
    _sync(aside)
    os.replace(aside, path)
  except BaseException:
    if not keep_incomplete:
      remove_if_there(aside)
    raise
  _sync_name(path)


@contextlib.contextmanager
def new_directory(path: str) -> Iterator[str]:
  """Gives a directory to write files into, which then becomes `path`.

  It does so if the body ends without an exception; else what was written is
  removed. An earlier directory of that name is replaced.

  Args:
    path: the directory's final name.

  Yields:
    Its name meanwhile.

  Raises:
    OSError: if the system refuses; `path` is as it was.
  """
  aside, replaced = path + INCOMPLETE, path + _REPLACED
  _bring_back(replaced)
  for leftover in (aside, replaced):
    shutil.rmtree(leftover, ignore_errors=True)
  os.makedirs(aside)
  try:
    yield aside
    for name in os.listdir(aside):
      _sync(os.path.join(aside, name))
    _sync(aside)
    if os.path.exists(path):
      os.rename(path, replaced)
    os.rename(aside, path)
  except BaseException:
    shutil.rmtree(aside, ignore_errors=True)
    _bring_back(replaced)
    raise
  _sync_name(path)
  shutil.rmtree(replaced, ignore_errors=True)


def remove_leftovers(directory: str, prefix: str = "") -> list[str]:
  """Removes what an interrupted process has left in a directory.

  Args:
    directory: need not exist.
    prefix: how the names begin.

  Returns:
    What it was.
  """
  removed = []
  names = os.listdir(directory) if os.path.isdir(directory) else []
  for name in sorted(names):
    if name.startswith(prefix) and name.endswith(INCOMPLETE):
      path = os.path.join(directory, name)
      if _bring_back(path):
        continue
      shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
      removed.append(path)
  return removed


def remove_directory(path: str) -> None:
  """Removes a directory, so that half of it is never seen under its name."""
  os.rename(path, path + _DROPPED)
  shutil.rmtree(path + _DROPPED)


def _bring_back(path: str) -> bool:
  """Gives a replaced directory its name again, if nothing else has it now."""
  name = path.removesuffix(_REPLACED)
  if name == path or not os.path.exists(path) or os.path.exists(name):
    return False
  os.rename(path, name)
  return True


def remove_if_there(path: str) -> None:
  """Removes a file, if it exists."""
  with contextlib.suppress(FileNotFoundError):
    os.remove(path)


def _sync_name(path: str) -> None:
  """Forces the name of something new to the disk, if directories can be read.

  What has been renamed is there; whoever may not read a directory above it
  must not be told that it is not.
  """
  parent = os.path.dirname(os.path.abspath(path))
  with contextlib.suppress(PermissionError):
    _sync(parent)
    _sync(os.path.dirname(parent))  # The parent may be new itself.


def _sync(path: str) -> None:
  """Forces a file, or the names in a directory, to the disk."""
  if os.name != "posix" and os.path.isdir(path):
    return  # Elsewhere directories cannot be opened.
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
