"""Named text files out of archives, and nothing else.

Nothing is extracted to a path from the archive: a file is found by its name,
and only its bytes are copied. So no path leads outside, no link is followed,
and at most about 200 times the archive's size is written, more than real text
needs.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import html
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from official_transformer.errors import RunError
from official_transformer.storage.durable_files import new_file

# The best compression of real text; a higher ratio is an attack on the disk.
_MOST_RATIO = 200
_CHUNK_BYTES = 1 << 20
# Errors of the libraries for a damaged archive.
_DAMAGE = (
  tarfile.TarError,
  zipfile.BadZipFile,
  gzip.BadGzipFile,
  lzma.LZMAError,
  zlib.error,
  EOFError,
  OSError,  # bz2 has no other.
  UnicodeDecodeError,
  NotImplementedError,  # A way of compressing that is not known.
  RuntimeError,  # It is encrypted.
)
_SGML = ".sgm"
# In text without a match, neither pattern reads a character twice.
_SEGMENT = re.compile(r"<seg[^<>]*>", re.IGNORECASE)
_SEGMENT_END = re.compile("</seg>", re.IGNORECASE)
_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_OPENERS: dict[str, Any] = {
  ".gz": gzip.open,
  ".bz2": bz2.open,
  ".xz": lzma.open,
}
# By the first bytes of a compressed file.
_MAGIC: dict[bytes, Any] = {
  b"\x1f\x8b": gzip.open,
  b"BZ": bz2.open,
  b"\xfd7": lzma.open,
}


def extract(archive: str, name: str, directory: str) -> str:
  """Returns the path of a file of an archive, extracted unless it exists.

  Args:
    archive: a tar file, compressed or not, a zip file, or one compressed file.
    name: the file's, without a directory. A `.gz` of that name will do. If it
      ends in `.sgm`, its segments are the lines of text.
    directory: where to put it.

  Raises:
    RunError: if the archive does not have the file, or is damaged.
    OSError: if the system refuses.
  """
  path = os.path.join(directory, os.path.basename(name).removesuffix(_SGML))
  if os.path.exists(path):
    return path
  most = _MOST_RATIO * os.path.getsize(archive) + _CHUNK_BYTES
  try:
    with new_file(path) as aside, _member(archive, name) as source:
      _copy(source, aside, most, name, archive)
      if name.endswith(_SGML):
        _as_lines(aside)
  except RunError:
    raise
  except _DAMAGE as error:
    if getattr(error, "errno", None) is not None:
      raise  # It is the system that refuses.
    raise RunError(
      f"{archive} is damaged, or no such archive: {error}; remove it, and the "
      "same command downloads it again"
    ) from None
  return path


def _as_lines(path: str) -> None:
  """Makes of SGML, as the shared tasks' test sets are, one segment a line."""
  with open(path, encoding="utf-8") as stream:
    *parts, _ = _SEGMENT_END.split(stream.read())
  with open(path, "w", encoding="utf-8", newline="\n") as stream:
    for part in parts:
      _, *segment = _SEGMENT.split(part, maxsplit=1)
      for text in segment:
        stream.write(" ".join(html.unescape(text).split()) + "\n")


def _copy(
  source: IO[bytes], path: str, most: int, name: str, archive: str
) -> None:
  """Copies a file, as far as it can be text."""
  left = most
  with open(path, "wb") as stream:
    while chunk := source.read(_CHUNK_BYTES):
      left -= len(chunk)
      if left < 0:
        raise RunError(
          f"{name} in {archive} is more than {_MOST_RATIO} times as large as "
          "the archive: it is no text"
        )
      stream.write(chunk)


def _member(
  archive: str, name: str
) -> contextlib.AbstractContextManager[IO[bytes]]:
  """Opens a file of an archive, decompressed."""
  # By name, not by content: otherwise an error page would be taken for text.
  if archive.endswith(".zip"):
    return _zip_member(archive, name)
  if archive.endswith(_TARS):
    return _tar_member(archive, name)
  kind = os.path.splitext(archive)[1]
  if kind not in _OPENERS:
    raise RunError(f"{archive} is no archive of a known kind")
  return _OPENERS[kind](archive, "rb")


@contextlib.contextmanager
def _zip_member(archive: str, name: str) -> Iterator[IO[bytes]]:
  with zipfile.ZipFile(archive) as container:
    for entry in container.infolist():
      # A link on other systems; its content is a path, not text.
      is_link = stat.S_ISLNK(entry.external_attr >> 16)
      if _is_wanted(entry.filename, name) and not (entry.is_dir() or is_link):
        with container.open(entry) as source:
          yield _plain(source, entry.filename)
        return
    raise _missing(archive, name, container.namelist())


@contextlib.contextmanager
def _tar_member(archive: str, name: str) -> Iterator[IO[bytes]]:
  with open(archive, "rb") as stream:
    opener = _MAGIC.get(stream.read(2), open)
  with (
    opener(archive, "rb") as stream,
    _open_tar(_Bounded(stream)) as container,
  ):
    names = []
    for member in container:
      names.append(member.name)
      # Neither a link nor a device, because the bytes are copied.
      if _is_wanted(member.name, name) and member.isreg():
        source: Any = container.extractfile(member)
        with source:
          yield _plain(source, member.name)
        return
    raise _missing(archive, name, names)


def _open_tar(stream: Any) -> tarfile.TarFile:
  return tarfile.open(fileobj=stream, mode="r:")


class _Bounded:
  """A file of which no more is read at once than memory has room for.

  Headers of an archive are read whole, and may say that they are any size.
  """

  def __init__(self, stream: IO[bytes]) -> None:
    self._stream = stream
    self.seek, self.tell = stream.seek, stream.tell

  def read(self, size: int) -> bytes:
    """Reads so many bytes."""
    if size > _CHUNK_BYTES:
      raise tarfile.ReadError(f"a header of {size} bytes")
    return self._stream.read(size)


def _is_wanted(path: str, name: str) -> bool:
  """Returns whether a path in an archive is a wanted file."""
  return os.path.basename(path) in (name, f"{name}.gz")


def _plain(source: Any, name: str) -> Any:
  """Returns the content of a file, decompressed if necessary."""
  return gzip.GzipFile(fileobj=source) if name.endswith(".gz") else source


def _missing(archive: str, name: str, names: list[str]) -> RunError:
  shown = ", ".join(sorted(names)[:10]) or "nothing"
  return RunError(f"{archive} has no file {name}; it has {shown}")
