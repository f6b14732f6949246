"""Files that a crash leaves either as they were or as they were to be.

A new file or directory is written under a name that ends in `.incomplete`,
flushed to the disk, and renamed; the renaming is flushed, too. In an object
store, where directories cannot be renamed, a directory is written in its place,
with a file `incomplete` in it until it is complete.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator

from official_transformer.storage import file_system
from official_transformer.storage.file_lock import FileLock
from official_transformer.storage.file_system import remove_tree

INCOMPLETE = ".incomplete"
_LOCK = ".lock" + INCOMPLETE
_ASIDE = re.compile(r"(\.[0-9a-f]{12})?\.incomplete$")
_REPLACED = ".replaced" + INCOMPLETE
_DROPPED = ".dropped" + INCOMPLETE
# In a directory that is not whole, where it cannot be renamed.
_MARK = "incomplete"


def write_text(path: str, text: str) -> None:
  """Writes a text file as UTF-8, or replaces one.

  Raises:
    OSError: if the system refuses; the file is as it was.
  """
  with new_file(path) as aside, file_system.open_file(aside, "w") as stream:
    stream.write(text)


def write_bytes(path: str, content: bytes) -> None:
  """Writes a file, or replaces one.

  Raises:
    OSError: if the system refuses; the file is as it was.
  """
  with new_file(path) as aside, file_system.open_file(aside, "wb") as stream:
    stream.write(content)


def copy_file(source: str, path: str) -> None:
  """Copies a file, or replaces one.

  Raises:
    OSError: if the system refuses; the file is as it was.
  """
  with new_file(path) as aside:
    file_system.copy(source, aside)


@contextlib.contextmanager
def new_file(path: str, keep_incomplete: bool = False) -> Iterator[str]:
  """Gives the name of a file to write, which then becomes `path`.

  The file appears if the body ends without an exception, and replaces an
  earlier one. Its temporary name is unique, so that of several processes that
  write the same file the last one wins; with `keep_incomplete` it is
  `path.incomplete`, and a second process that would write it is refused.

  Args:
    path: the file's final name.
    keep_incomplete: whether the temporary file is kept if the body fails;
      otherwise it is removed.

  Yields:
    Its name meanwhile.

  Raises:
    InputError: if another process writes the file, with `keep_incomplete`.
    OSError: if the system refuses; `path` is as it was.
  """
  aside = f"{path}.{uuid.uuid4().hex[:12]}{INCOMPLETE}"
  lock: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
  if keep_incomplete:
    aside = path + INCOMPLETE
    if not file_system.is_remote(path):
      lock = _only_writer(path)
  with lock:
    try:
      yield aside
      _sync(aside)
      file_system.rename(aside, path)
    except BaseException:
      if not keep_incomplete:
        file_system.remove_if_there(aside)
      raise
  sync_name(path)


def _only_writer(path: str) -> FileLock:
  """Returns a lock that keeps other processes from writing the same file."""
  return FileLock(
    path + _LOCK,
    f"{path} is being written by {{holder}}; wait for it or stop it, or name "
    "another output",
  )


def final_name(name: str) -> str:
  """Returns the final name of a file that `new_file` is writing."""
  return _ASIDE.sub("", name)


@contextlib.contextmanager
def new_directory(path: str, replace: bool = True) -> Iterator[str]:
  """Gives a directory to write files into, which then becomes `path`.

  The directory appears if the body ends without an exception; otherwise its
  files are removed. It replaces an earlier directory of that name; in an object
  store, that one is removed first.

  Args:
    path: the directory's final name.
    replace: whether an earlier directory may be replaced; if not, one that has
      come meanwhile stays.

  Yields:
    Its name meanwhile.

  Raises:
    InputError: if another process writes it.
    OSError: if the system refuses; `path` is as it was, but in an object store.
  """
  if not file_system.renames_directories(path):
    with _new_marked_directory(path):
      yield path
    return
  if file_system.is_remote(path):
    yield from _new_renamed_directory(path, replace)
    return
  os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
  with _only_writer(path):
    yield from _new_renamed_directory(path, replace)


def _new_renamed_directory(path: str, replace: bool) -> Iterator[str]:
  """Writes a directory aside and renames it."""
  aside, replaced = path + INCOMPLETE, path + _REPLACED
  _bring_back(replaced)
  for leftover in (aside, replaced):
    remove_tree(leftover)
  file_system.make_directories(aside)
  try:
    yield aside
    _sync_tree(aside)
    if file_system.exists(path):
      if not replace:
        raise FileExistsError(f"{path} has come into being meanwhile")
      file_system.rename(path, replaced)
    file_system.rename(aside, path)
  except BaseException:
    with contextlib.suppress(OSError):
      remove_tree(aside)
    _bring_back(replaced)
    raise
  sync_name(path)
  with contextlib.suppress(OSError):
    remove_tree(replaced)


@contextlib.contextmanager
def _new_marked_directory(path: str) -> Iterator[None]:
  """Writes a directory in place, marked until it is complete."""
  mark = os.path.join(path, _MARK)
  if file_system.exists(path):
    remove_directory(path)
  file_system.make_directories(path)
  with file_system.open_file(mark, "wb"):
    pass
  try:
    yield
  except BaseException:
    with contextlib.suppress(OSError):
      remove_tree(path)
    raise
  file_system.remove_file(mark)


def is_whole(path: str) -> bool:
  """Returns whether a directory that has its name has all its files too."""
  if file_system.renames_directories(path):
    return True
  names = file_system.names_in(path)
  # Before the mark there is nothing.
  return bool(names) and _MARK not in names


def remove_leftovers(directory: str, prefix: str = "") -> list[str]:
  """Removes files that an interrupted process has left in a directory.

  Args:
    directory: need not exist.
    prefix: how the names begin.

  Returns:
    The paths of the removed files and directories.
  """
  removed = []
  for name in file_system.names_in(directory):
    path = os.path.join(directory, name)
    if not name.startswith(prefix):
      continue
    is_left = file_system.is_directory(path) and not is_whole(path)
    is_left = is_left or name.endswith(INCOMPLETE)
    if not is_left or name.endswith(_LOCK):
      continue
    if _bring_back(path):
      continue
    file_system.remove(path)
    removed.append(path)
  return removed


def remove_directory(path: str) -> None:
  """Removes a directory; after a crash, no part of it passes for the whole."""
  if file_system.renames_directories(path):
    file_system.rename(path, path + _DROPPED)
    remove_tree(path + _DROPPED)
    return
  with file_system.open_file(os.path.join(path, _MARK), "wb"):
    pass
  # The mark last: until then, nothing else shows that the rest is not whole.
  for name in file_system.names_in(path):
    if name != _MARK:
      file_system.remove_file(os.path.join(path, name))
  remove_tree(path)


def _bring_back(path: str) -> bool:
  """Gives a replaced directory its name again, if nothing else has it now."""
  name = path.removesuffix(_REPLACED)
  if name == path or not file_system.exists(path) or file_system.exists(name):
    return False
  file_system.rename(path, name)
  return True


def sync_name(path: str) -> None:
  """Forces the name of something new to the disk, if directories can be read.

  If a parent directory may not be read, that is no error: the new name is there
  all the same.
  """
  if file_system.is_remote(path):
    return
  parent = os.path.dirname(os.path.abspath(path))
  with contextlib.suppress(PermissionError):
    _sync(parent)
    _sync(os.path.dirname(parent))  # The parent may be new itself.


def _sync_tree(path: str) -> None:
  """Forces a directory and all that is in it to the disk."""
  if file_system.is_directory(path):
    for name in file_system.names_in(path):
      _sync_tree(os.path.join(path, name))
  _sync(path)


def _sync(path: str) -> None:
  """Forces a file, or the names in a directory, to the disk."""
  if file_system.is_remote(path):
    return
  if os.name != "posix" and os.path.isdir(path):
    return  # Elsewhere directories cannot be opened.
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
