"""Reading and writing text by lines, the same way everywhere.

A line ends at a line feed and nowhere else: U+2028, U+0085 and their like
are characters inside a line, where Python's `splitlines` would tear it apart
and so shift every line after it.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, BinaryIO

from absl import logging

from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, new_file
from official_transformer.storage.standard_streams import standard_output
from official_transformer.text.foreign_encodings import (
  LOOKED_AT,
  conversion,
  is_utf16,
)

STANDARD_STREAM = "-"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_BUFFER_BYTES = 1 << 20
# Of a Zstandard file, read at once: they may be 30,000 times as many as text.
_COMPRESSED_BYTES = 1 << 13
_MARK = b"\xef\xbb\xbf"  # A byte order mark in UTF-8.
# Lines that are not UTF-8 are named one by one up to here.
REPORTED_LINES = 10


def check_input(path: str) -> None:
  """Raises an `InputError` unless `path` is a file that can be read, or `-`."""
  if path == STANDARD_STREAM:
    return
  if file_system.is_directory(path):
    raise InputError(f"{path} is a directory, not a text file")
  if not file_system.exists(path):
    raise InputError(f"there is no file {path}; check the path")
  if not file_system.is_remote(path) and not os.access(path, os.R_OK):
    raise InputError(f"no permission to read {path}")


def check_output(path: str) -> None:
  """Raises an `InputError` unless `path` can be written, or is `-`."""
  if path == STANDARD_STREAM:
    return
  if file_system.is_directory(path):
    raise InputError(f"the output {path} is a directory; name a file in it")
  if file_system.is_remote(path):
    return  # Object stores have no directories.
  directory = os.path.dirname(path) or "."
  if not os.path.isdir(directory):
    raise InputError(f"the output's directory {directory} does not exist")
  if os.path.islink(path) or not os.path.isfile(path):
    where = path if os.path.exists(path) else directory
  else:
    where = directory  # The new file takes the place of the old one.
  if not os.access(where, os.W_OK):
    raise InputError(f"no permission to write {where}")


def count_lines(path: str) -> int | None:
  """Returns the number of a file's lines; None if they cannot be counted first.

  Standard input and pipes can be read only once, and compressed files would
  have to be decompressed.
  """
  if path.endswith(COMPRESSED) or not file_system.is_file(path):
    return None
  count, last = 0, b"\n"
  with file_system.open_file(path, "rb") as stream:
    while block := stream.read(1 << 20):
      count += block.count(b"\n")
      last = block[-1:]
  return count + (last != b"\n")


def read_lines(path: str, replace_invalid: bool = False) -> Iterator[str]:
  """Yields the lines of a text file, without their ends.

  A byte order mark at the start and a carriage return before the line feed
  are dropped. A last line without a line feed counts; nothing follows a last
  line feed.

  Args:
    path: UTF-8 text, compressed if the name ends in `.gz`, `.bz2`, `.xz` or
      `.zst`; `-` is standard input.
    replace_invalid: whether bytes that are not UTF-8 become U+FFFD, and are
      reported in the log, instead of being refused.

  Raises:
    InputError: if the file is missing, damaged or not UTF-8.
  """
  with open_lines(path) as stream:
    name = "standard input" if path == STANDARD_STREAM else path
    yield from _decode(stream, name, replace_invalid)


@contextlib.contextmanager
def open_lines(path: str) -> Iterator[IO[bytes]]:
  """Opens a text file, decompressed, to be read as bytes.

  Args:
    path: as in `read_lines`.

  Raises:
    InputError: if the file is missing, or turns out to be damaged.
  """
  check_input(path)
  if path == STANDARD_STREAM:
    yield _standard_input()
    return
  with file_system.open_file(path, "rb") as stream:
    kind = os.path.splitext(path)[1]
    if kind not in COMPRESSED:
      yield stream
      return
    with _decompressed(stream, kind, path) as decompressed:
      checked = _Checked(decompressed, kind, path)
      yield io.BufferedReader(checked, _BUFFER_BYTES)


def without_mark(line: bytes) -> bytes:
  """Returns a file's first line without a byte order mark."""
  return line.removeprefix(_MARK)


def _decompressed(stream: IO[bytes], kind: str, path: str) -> Any:
  """Returns the content of a compressed file, as a file."""
  if kind == ".gz":
    return gzip.GzipFile(fileobj=stream)
  if kind == ".bz2":
    return bz2.BZ2File(stream)
  if kind == ".xz":
    return lzma.LZMAFile(stream)
  try:
    zstandard = importlib.import_module("zstandard")
  except ImportError:
    raise InputError(
      f"{path} is compressed by Zstandard, which needs a package more: pip "
      "install 'official-transformer[zstd]', or decompress it with zstd -d"
    ) from None
  return _ZstandardFile(stream, zstandard.ZstdDecompressor())


class _ZstandardFile(io.RawIOBase):
  """The content of a Zstandard file of any number of frames.

  The library's own reader takes a file that is cut off for a shorter one.
  """

  def __init__(self, stream: IO[bytes], decompressor: Any) -> None:
    super().__init__()
    self._stream = stream
    self._decompressor = decompressor
    self._frame: Any = None
    self._compressed = b""
    self._content = io.BytesIO()

  def readable(self) -> bool:
    return True

  def readinto(self, buffer: Any) -> int:
    """Reads content; raises `EOFError` if the file is cut off."""
    while not (count := self._content.readinto(buffer)):
      if not self._compressed:
        self._compressed = self._stream.read(_COMPRESSED_BYTES)
      if not self._compressed:
        if self._frame is not None:
          raise EOFError
        break
      if self._frame is None:
        self._frame = self._decompressor.decompressobj()
      self._content = io.BytesIO(self._frame.decompress(self._compressed))
      self._compressed = self._frame.unused_data
      if self._frame.eof:
        self._frame = None
    return count


class _Checked(io.RawIOBase):
  """The content of a compressed file; damage is an `InputError`."""

  def __init__(self, stream: Any, kind: str, path: str) -> None:
    super().__init__()
    self._stream = stream
    self._kind = kind
    self._path = path
    self._damages = _damages(kind)

  def readable(self) -> bool:
    return True

  def readinto(self, buffer: Any) -> int:
    try:
      data = self._stream.read(len(buffer))
    except self._damages as error:
      if getattr(error, "errno", None) is not None:
        raise  # It is the system that refuses.
      raise InputError(
        f"{self._path} is not a whole {self._kind} file: "
        f"{error or 'it is cut off'}"
      ) from None
    buffer[: len(data)] = data
    return len(data)


def _damages(kind: str) -> tuple[type[Exception], ...]:
  """Returns the errors that damaged files of a kind raise."""
  damages: tuple[type[Exception], ...] = (EOFError,)
  if kind == ".gz":
    damages += (gzip.BadGzipFile, zlib.error)
  elif kind == ".bz2":
    damages += (OSError, ValueError)
  elif kind == ".xz":
    damages += (lzma.LZMAError,)
  elif kind == ".zst":
    with contextlib.suppress(ImportError):
      damages += (importlib.import_module("zstandard").ZstdError,)
  return damages


def listed_files(text: str) -> list[str]:
  """Returns the paths that are between commas, unless they are in one's name.

  Raises:
    InputError: if there is none.
  """
  if text and file_system.exists(text):
    return [text]
  paths = [path.strip() for path in text.split(",") if path.strip()]
  if not paths:
    raise InputError(f"{text!r} names no file")
  return paths


def check_not_read(path: str, inputs: Iterable[str], flag: str) -> None:
  """Raises an `InputError` if an output is one of the files that are read."""
  if path == STANDARD_STREAM:
    return
  for given in inputs:
    # The output has the other name until it is whole.
    for name in (path, path + INCOMPLETE):
      if file_system.is_file(given) and file_system.is_same(given, name):
        raise InputError(
          f"--{flag}={path} would overwrite {given}, which is read"
        )


def read_parallel(
  first_file: str, second_file: str
) -> tuple[list[str], list[str]]:
  """Reads two parallel files; see `read_parallel_files`."""
  first, second = read_parallel_files([first_file, second_file])
  return first, second


def read_parallel_files(paths: Sequence[str]) -> list[list[str]]:
  """Reads files whose lines belong to each other, one by one.

  Raises:
    InputError: if one is missing or empty, if their numbers of lines differ,
      or if standard input would be read twice.
  """
  if paths.count(STANDARD_STREAM) > 1:
    raise InputError("only one file may be -, standard input")
  for path in paths:  # All, before any is read.
    check_input(path)
  first, *others = texts = [list(read_lines(path)) for path in paths]
  for path, lines in zip(paths[1:], others, strict=True):
    if len(first) != len(lines):
      raise InputError(
        f"{paths[0]} has {len(first)} lines and {path} {len(lines)}: line n of "
        "the one must belong to line n of the other"
      )
  if not first:
    raise InputError(f"{paths[0]} is empty: there is nothing to score")
  return texts


def _standard_input() -> BinaryIO:
  """Returns standard input, by an object of its own if there is a file.

  A thread that waits for input holds its object's lock, which Python would
  wait for, or die of, at exit, if the object were `sys.stdin`'s.
  """
  try:
    return open(sys.stdin.fileno(), "rb", closefd=False)
  except (AttributeError, OSError):
    return sys.stdin.buffer


def _decode(
  stream: BinaryIO | Iterable[bytes], name: str, replace_invalid: bool
) -> Iterator[str]:
  """Yields decoded lines; `name` is for messages."""
  replaced = 0
  for number, raw in enumerate(stream, start=1):
    if number <= LOOKED_AT and is_utf16(raw, number):
      raise InputError(f"{name}, line {number}: {conversion(raw, number)}")
    try:
      line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
      if not replace_invalid:
        raise InputError(
          f"{name}, line {number}: not UTF-8 (byte {error.start + 1} of the "
          f"line). {conversion(raw, number)}, or see --invalid_utf8 of "
          "--mode=predict"
        ) from None
      line = raw.decode("utf-8", errors="replace")
      replaced += 1
      if replaced <= REPORTED_LINES:
        logging.warning("%s, line %d: not UTF-8; replaced", name, number)
    if number == 1:
      line = line.removeprefix("\ufeff")
    yield line.removesuffix("\n").removesuffix("\r")
  if replaced > REPORTED_LINES:
    logging.warning("%s: %d lines were not UTF-8; replaced", name, replaced)


def write_lines(path: str, lines: Iterable[str]) -> int:
  """Writes lines as UTF-8, each as soon as it comes.

  A file appears once it is whole, in the place of an earlier one; until then
  it is `path.incomplete`, which stays if the work is broken off. Standard
  output, pipes, devices and links are written through, line by line.

  Args:
    path: `-` is standard output.
    lines: none may hold a line feed.

  Returns:
    The number of lines written.
  """
  with _output(path) as (stream, at_once):
    return _encode(stream, lines, at_once)


def write_content(path: str, content: bytes) -> None:
  """Writes a whole file; else as `write_lines`."""
  with _output(path) as (stream, _):
    stream.write(content)
    stream.flush()


@contextlib.contextmanager
def _output(path: str) -> Iterator[tuple[BinaryIO | IO[bytes], bool]]:
  """Gives a stream, and whether somebody may be waiting for each line."""
  if path == STANDARD_STREAM:
    yield standard_output(), True
  elif not file_system.is_remote(path) and (
    os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path))
  ):
    with open(path, "wb") as stream:
      yield stream, True
  else:
    with (
      new_file(path, keep_incomplete=True) as aside,
      file_system.open_file(aside, "wb") as stream,
    ):
      yield stream, False


def _encode(
  stream: BinaryIO | IO[bytes], lines: Iterable[str], at_once: bool = False
) -> int:
  count = 0
  for line in lines:
    stream.write(line.encode("utf-8") + b"\n")
    count += 1
    if at_once:
      stream.flush()
  stream.flush()
  return count
