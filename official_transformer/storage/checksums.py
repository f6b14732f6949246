"""The checksum of TensorFlow's files."""

from __future__ import annotations

import google_crc32c

_MASK_DELTA = 0xA282EAD8


def masked_checksum(data: bytes) -> int:
  """Returns CRC-32C, rotated and shifted as TensorFlow's files have it."""
  crc = google_crc32c.value(data)
  return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
