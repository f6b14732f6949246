"""Tokenized pairs as the bytes of a TFRecord file, without TensorFlow.

A file is a sequence of records: the length of the data, 8 bytes; a checksum of
these; the data; a checksum of the data. The data are a `tf.train.Example` of
`inputs` and `targets`, int64 lists. TensorFlow writes the same bytes, and takes
three seconds to be imported into each process.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

from official_transformer.storage.checksums import masked_checksum
from official_transformer.text.packed_ids import pack

_LENGTH_DELIMITED = 2


def _field_head(number: int, size: int) -> bytes:
  """Returns the header of a field."""
  return pack([number << 3 | _LENGTH_DELIMITED, size])


@functools.lru_cache(maxsize=1 << 14)
def _feature_head(name: bytes, size: int) -> bytes:
  """Returns the header of a feature's packed ids.

  It is an entry of the map of features: its name, and a `Feature`, in it an
  `Int64List`, in it the ids.
  """
  ids = _field_head(1, size) if size else b""
  int64_list = _field_head(3, len(ids) + size) + ids
  feature = _field_head(2, len(int64_list) + size) + int64_list
  key = _field_head(1, len(name)) + name
  return _field_head(1, len(key) + len(feature) + size) + key + feature


@functools.lru_cache(maxsize=1 << 14)
def _example_head(size: int) -> bytes:
  """Returns the header of an example's features."""
  return _field_head(1, size)


def serialize_pair(source: Sequence[int], target: Sequence[int]) -> bytes:
  """Returns a `tf.train.Example` of `inputs` and `targets`.

  Args:
    source: ids, none negative.
    target: ids, none negative.
  """
  return serialize_packed(pack(source), pack(target))


def serialize_packed(inputs: bytes, targets: bytes) -> bytes:
  """Returns a `tf.train.Example` of ids that are packed already."""
  features = (
    _feature_head(b"inputs", len(inputs))
    + inputs
    + _feature_head(b"targets", len(targets))
    + targets
  )
  return _example_head(len(features)) + features


@functools.lru_cache(maxsize=1 << 14)
def _record_head(size: int) -> bytes:
  length = struct.pack("<Q", size)
  return length + struct.pack("<I", masked_checksum(length))


def framed(data: bytes) -> bytes:
  """Returns a record as TFRecord files hold it, with length and checksums."""
  return b"".join(
    (_record_head(len(data)), data, struct.pack("<I", masked_checksum(data)))
  )
