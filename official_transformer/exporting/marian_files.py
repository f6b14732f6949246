"""Reading Marian's files back, as a stranger would, to prove an export."""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

import numpy as np

_CONFIG = "special:model.yml"
_FLOAT32, _INT8_MATRIX = 0x0404, 0x4101


class MarianFile(NamedTuple):
  """The content of a file.

  Attributes:
    config: config of the model.
    arrays: in float32, by their names.
  """

  config: dict[str, Any]
  arrays: dict[str, np.ndarray]


def read_npz(path: str) -> MarianFile:
  """Reads the arrays of a `.npz` file."""
  with np.load(path) as stored:
    arrays = dict(stored)
  return MarianFile(_config_of(arrays.pop(_CONFIG).tobytes()), arrays)


def read_binary(path: str) -> MarianFile:
  """Reads a binary file; 8-bit tensors are scaled back."""
  with open(path, "rb") as stream:
    content = stream.read()
  _, count = struct.unpack_from("<QQ", content)
  place = 16
  heads = []
  for _ in range(count):
    heads.append(struct.unpack_from("<QQQQ", content, place))
    place += 32
  names = []
  for length, *_ in heads:
    names.append(content[place : place + length].rstrip(b"\0").decode())
    place += length
  shapes = []
  for _, _, dimensions, _ in heads:
    shapes.append(struct.unpack_from(f"<{dimensions}i", content, place))
    place += 4 * dimensions
  (padding,) = struct.unpack_from("<Q", content, place)
  place += 8 + padding
  found = {}
  config = {}
  for name, shape, (_, kind, _, size) in zip(names, shapes, heads, strict=True):
    data = content[place : place + size]
    place += size
    if name == _CONFIG:
      config = _config_of(data)
    else:
      found[name] = _array(name, kind, shape, data)
  return MarianFile(config, found)


def _array(
  name: str, kind: int, shape: tuple[int, ...], data: bytes
) -> np.ndarray:
  """Returns an item of a binary file as an array."""
  size = int(np.prod(shape))
  if kind == _FLOAT32:
    return np.frombuffer(data, np.float32, size).reshape(shape)
  assert kind == _INT8_MATRIX, kind
  whole = np.frombuffer(data, np.int8, size)
  (scale,) = np.frombuffer(data, np.float32, 1, size)
  # Kernels are stored by columns; the table, which is read by rows, is not.
  if name.endswith("Wemb"):
    whole = whole.reshape(shape)
  else:
    whole = whole.reshape(shape[::-1]).T
  return whole / scale


def _config_of(content: bytes) -> dict[str, Any]:
  """Returns a configuration whose values are JSON, as an export has it."""
  lines = content.rstrip(b"\0").decode().splitlines()
  pairs = (line.split(": ", 1) for line in lines)
  return {name: json.loads(value) for name, value in pairs}
