"""Reading TensorFlow's checkpoints without TensorFlow.

TensorFlow takes seconds to be imported, and hundreds of megabytes. Its
checkpoints are "tensor bundles": PREFIX.data-00000-of-00001 has the tensors one
after the other, and PREFIX.index is a table of LevelDB, uncompressed, of their
names and places. The formats are those of TensorFlow's `tensor_bundle.proto`
and of LevelDB's `table_format.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from official_transformer.storage import file_system
from official_transformer.storage.checksums import masked_checksum

_MAGIC = 0xDB4775248B80FB57
_FOOTER_BYTES = 48
# Behind each block: its compression, and the checksum of both.
_TRAILER = struct.Struct("<BI")
_BFLOAT16 = 14
# NumPy's types by TensorFlow's numbers (types.proto).
_TYPES = {
  1: np.float32,
  2: np.float64,
  3: np.int32,
  4: np.uint8,
  5: np.int16,
  6: np.int8,
  8: np.complex64,
  9: np.int64,
  10: np.bool_,
  _BFLOAT16: np.uint16,
  17: np.uint16,
  18: np.complex128,
  19: np.float16,
  22: np.uint32,
  23: np.uint64,
}


class DamagedBundleError(ValueError):
  """A bundle that cannot be read; says why."""


class _Place(NamedTuple):
  """What an index says of a tensor."""

  type: int
  shape: tuple[int, ...]
  offset: int
  size: int
  checksum: int


class TensorBundle:
  """A bundle of one data file, as this project writes them.

  It is a context manager, and closes its data file.

  Attributes:
    shapes: shape of each tensor, by name, sorted by name.
  """

  _data: IO[bytes] | None = None

  def __init__(self, prefix: str) -> None:
    """Reads the index.

    Args:
      prefix: path without `.index`.

    Raises:
      DamagedBundleError: if it is no index, or not as it was written.
      OSError: if it cannot be read.
    """
    self._prefix = prefix
    try:
      entries = dict(_table(file_system.read_bytes(f"{prefix}.index")))
      header = dict(_fields(entries.pop(b"")))
      places = {key.decode(): _place(entries[key]) for key in sorted(entries)}
    except (IndexError, KeyError, ValueError, struct.error) as error:
      raise DamagedBundleError(f"its index cannot be read: {error}") from None
    # The numbers of shards and of the byte order: one, and little-endian.
    if header.get(1) != 1 or header.get(2, 0) != 0:
      raise DamagedBundleError("its data are in several files, or big-endian")
    self._places = places
    self.shapes = {name: place.shape for name, place in places.items()}

  def __enter__(self) -> TensorBundle:
    return self

  def __exit__(self, *_: object) -> None:
    if self._data is not None:
      self._data.close()

  def read(self, name: str) -> np.ndarray:
    """Returns a tensor of its own memory, bfloat16 as float32.

    Of strings, and of what else NumPy has no type for, there is an array of
    objects without content.

    Raises:
      DamagedBundleError: if there is no such tensor, or it is not as it was
        written.
      OSError: if it cannot be read.
    """
    if name not in self._places:
      raise DamagedBundleError(f"it has no {name}")
    place = self._places[name]
    if place.type not in _TYPES:
      return np.empty(place.shape, object)
    if self._data is None:
      # Open from now on: a training may remove a checkpoint that is read.
      self._data = file_system.open_file(
        f"{self._prefix}.data-00000-of-00001", "rb"
      )
    self._data.seek(place.offset)
    data = self._data.read(place.size)
    if len(data) < place.size or masked_checksum(data) != place.checksum:
      raise DamagedBundleError(f"{name} is not as it was written")
    try:
      flat: np.ndarray = np.frombuffer(data, _TYPES[place.type])
      found = flat.reshape(place.shape).copy()
    except ValueError as error:
      raise DamagedBundleError(f"{name}: {error}") from None
    if place.type == _BFLOAT16:
      # Its bits are the upper half of float32's.
      return (found.astype(np.uint32) << 16).view(np.float32)
    return found


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
  """Yields the entries of a table: those of the blocks that its index names."""
  footer = data[-_FOOTER_BYTES:]
  if struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
    raise ValueError("no table")
  _, at = _handle(footer, 0)  # Of a block about the table.
  index, _ = _handle(footer, at)
  for _, value in _block(data, *index):
    block, _ = _handle(value, 0)
    yield from _block(data, *block)


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
  """Returns a block's offset and size, and where its handle ends."""
  offset, at = _varint(data, at)
  size, at = _varint(data, at)
  return (offset, size), at


def _block(
  data: bytes, offset: int, size: int
) -> Iterator[tuple[bytes, bytes]]:
  """Yields keys and values; a key is stored without what the last one had."""
  end = offset + size
  if end + _TRAILER.size > len(data):
    raise ValueError("a block goes on behind the end")
  compression, checksum = _TRAILER.unpack_from(data, end)
  if compression or masked_checksum(data[offset : end + 1]) != checksum:
    raise ValueError("a block is not as it was written")
  (restarts,) = struct.unpack_from("<I", data, end - 4)
  at, end = offset, end - 4 * (restarts + 1)
  key = b""
  while at < end:
    shared, at = _varint(data, at)
    own, at = _varint(data, at)
    length, at = _varint(data, at)
    key = key[:shared] + data[at : at + own]
    at += own
    yield key, data[at : at + length]
    at += length


def _place(message: bytes) -> _Place:
  """Reads a `BundleEntryProto`."""
  fields = dict(_fields(message))
  if 7 in fields:
    raise ValueError("a tensor in slices")
  shape = [
    # The size of a dimension; 0 is left out.
    dict(_fields(dimension)).get(1, 0)
    for number, dimension in _fields(fields.get(2, b""))
    if number == 2
  ]
  return _Place(
    fields.get(1, 0),
    tuple(shape),
    fields.get(4, 0),
    fields.get(5, 0),
    fields.get(6, 0),
  )


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
  """Yields number and value of each field of a Protocol Buffers message.

  A value is a number or, of strings and messages, bytes.
  """
  at = 0
  while at < len(message):
    tag, at = _varint(message, at)
    number, kind = tag >> 3, tag & 7
    value: Any
    if kind == 0:
      value, at = _varint(message, at)
    elif kind == 2:
      length, at = _varint(message, at)
      value, at = message[at : at + length], at + length
    elif kind == 5:
      (value,) = struct.unpack_from("<I", message, at)
      at += 4
    else:
      raise ValueError(f"a field of kind {kind}")
    yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
  """Returns a number of 64 bits, seven of them a byte, and where it ends."""
  value = shift = 0
  for end in range(at + 1, at + 11):
    byte = data[end - 1]
    value |= (byte & 127) << shift
    shift += 7
    if byte < 128:
      return value, end
  raise ValueError("a number has no end")
