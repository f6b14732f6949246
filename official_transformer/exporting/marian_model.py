"""A trained model in Marian's own files, and in Bergamot's.

Bergamot is Marian inside of Firefox and of web pages. Its binary holds kernels
and the table in int8, each with one scale.

Shapes: V vocabulary, D hidden size.
"""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from official_transformer.importing.marian_names import (
  BIAS,
  CONFIG,
  NEVER,
  OWN_PARAMS,
  TABLE,
  config_of,
  name_of,
)
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import PAD_ID, TransformerParams

# An array by its name.
Arrays = dict[str, np.ndarray]

# A binary file's version, and its numbers for types of items.
_VERSION = 1
_FLOAT32, _INT8_MATRIX, _BYTES = 0x0404, 0x4101, 0x0101
_ALIGNED = 256
_LARGEST = 127
# Rows of a table in int8 are multiplied in blocks.
_BLOCK_ROWS = 8
_KERNEL = re.compile(r".*_W[qkvo12]")


def arrays_of(transformer: Transformer) -> Arrays:
  """Returns the weights by Marian's names, with biases for all products.

  Args:
    transformer: model that `check_params` accepts, with float32 weights.
  """
  weights = {w.path: w.numpy() for w in transformer.weights}
  arrays = {}
  for path, value in weights.items():
    if name := name_of(path):
      # Vectors are rows.
      arrays[name] = np.atleast_2d(value)
      if value.ndim == 2:
        bias = re.sub("_W(.)$", r"_b\1", name)
        arrays.setdefault(bias, np.zeros([1, value.shape[1]], np.float32))
  arrays[TABLE] = weights["transformer/embedding/weights"]
  arrays[BIAS] = _logits_bias(weights, transformer.params)
  return arrays


def _logits_bias(weights: Arrays, params: TransformerParams) -> np.ndarray:
  """Returns the logits' bias, [1, V], which keeps PAD from being chosen."""
  bias = np.zeros([1, params.vocab_size], np.float32)
  if params.output_bias:
    bias[0] += weights["transformer/output/bias"]
  if params.suppress_pad:  # UNK, Marian suppresses itself.
    bias[0, PAD_ID] = NEVER
  return bias


def write_npz(path: str, arrays: Arrays, params: TransformerParams) -> None:
  """Writes a model as Marian trains and decodes it.

  Args:
    path: to write.
    arrays: result of `arrays_of`.
    params: hyper-parameters of the model.
  """
  config = config_of(params) | {
    # One string: Marian reads no other settings than its own.
    OWN_PARAMS: json.dumps(dataclasses.asdict(params))
  }
  content = np.frombuffer(_yaml(config), np.int8)
  everything: dict[str, Any] = {**arrays, CONFIG: content}
  np.savez(path, **everything)


def write_binary(path: str, arrays: Arrays, params: TransformerParams) -> None:
  """Writes a model in int8 for Bergamot.

  Args:
    path: to write.
    arrays: result of `arrays_of`.
    params: hyper-parameters of the model.
  """
  rows = -(-params.vocab_size // _BLOCK_ROWS) * _BLOCK_ROWS
  more = rows - params.vocab_size
  arrays = {
    **arrays,
    TABLE: np.pad(arrays[TABLE], [(0, more), (0, 0)]),
    BIAS: np.pad(arrays[BIAS], [(0, 0), (0, more)], constant_values=NEVER),
  }
  config = _yaml(config_of(params) | {"dim-vocabs": [rows, rows]})
  items = [_item(name, value) for name, value in arrays.items()]
  items.append(_Item(CONFIG, _BYTES, (len(config),), config))
  with open(path, "wb") as stream:
    stream.write(_serialized(items))


class _Item(NamedTuple):
  """A part of a binary file."""

  name: str
  kind: int
  shape: tuple[int, ...]
  content: bytes


def _item(name: str, value: np.ndarray) -> _Item:
  if not _is_quantized(name):
    return _Item(name, _FLOAT32, value.shape, value.tobytes())
  whole, scale = _quantized(value)
  # Kernels are stored column by column. The table is multiplied by its rows.
  stored = whole if name == TABLE else whole.T
  content = stored.astype(np.int8).tobytes() + np.float32(scale).tobytes()
  return _Item(name, _INT8_MATRIX, value.shape, content)


def _is_quantized(name: str) -> bool:
  return name == TABLE or _KERNEL.fullmatch(name) is not None


def _quantized(value: np.ndarray) -> tuple[np.ndarray, float]:
  """Returns 8-bit integers and their divisor."""
  largest = float(np.abs(value).max())
  scale = _LARGEST / largest if largest else 1.0
  return np.rint(value * scale), scale


def _serialized(items: Iterable[_Item]) -> bytes:
  """Returns a binary file: a head, names, shapes, and aligned contents."""
  items = [
    item._replace(content=_padded(item.content, _ALIGNED)) for item in items
  ]
  names = [item.name.encode() + b"\0" for item in items]
  head = struct.pack("<QQ", _VERSION, len(items))
  for item, name in zip(items, names, strict=True):
    head += struct.pack(
      "<QQQQ", len(name), item.kind, len(item.shape), len(item.content)
    )
  head += b"".join(names)
  for item in items:
    head += struct.pack(f"<{len(item.shape)}i", *item.shape)
  # The number of zeros that follow it.
  padding = -(len(head) + 8) % _ALIGNED
  head += struct.pack("<Q", padding) + bytes(padding)
  return head + b"".join(item.content for item in items)


def _padded(content: bytes, multiple: int) -> bytes:
  return content + bytes(-len(content) % multiple)


def _yaml(config: Mapping[str, Any]) -> bytes:
  """Returns a configuration as YAML (written as JSON) with a NUL at its end."""
  lines = (f"{name}: {json.dumps(value)}\n" for name, value in config.items())
  return "".join(lines).encode() + b"\0"
