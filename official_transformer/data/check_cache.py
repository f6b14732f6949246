"""Remembering what checking the records of some shards has found.

Whoever starts a run again has read them all before; they are read again if a
shard's size or the time it was written is another.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from official_transformer.data.record_check import RecordCheck
from official_transformer.data.record_index import RecordIndex
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import new_file

_FACTS = "facts"


def save_check(path: str, check: RecordCheck, vocab_size: int) -> None:
  """Writes down what was found, unless something was wrong.

  Args:
    path: of the file to write.
    check: what was found.
    vocab_size: that ids were compared with.

  Raises:
    OSError: if the system refuses.
  """
  if check.problems:
    return
  facts = {
    "shards": _state_of(check.paths),
    "vocab_size": vocab_size,
    "source_tokens": check.source_tokens,
    "target_tokens": check.target_tokens,
    "fingerprint": check.fingerprint,
  }
  arrays: dict[str, Any] = {
    _FACTS: np.array(json.dumps(facts)),
    **check.index.arrays(),
  }
  with new_file(path) as aside, file_system.open_file(aside, "wb") as stream:
    np.savez_compressed(stream, **arrays)


def load_check(
  path: str, shards: Sequence[str], vocab_size: int
) -> RecordCheck | None:
  """Returns what was found in some shards, if they are as they were.

  Args:
    path: of the file that `save_check` wrote; it need not exist.
    shards: their paths.
    vocab_size: to compare ids with.
  """
  try:
    with file_system.open_file(path, "rb") as stream:
      stored = np.load(stream, allow_pickle=False)
      facts = json.loads(str(stored[_FACTS]))
      if facts["vocab_size"] != vocab_size:
        return None
      if facts["shards"] != _state_of(shards):
        return None
      index = RecordIndex.from_arrays(shards, stored)
    return RecordCheck(
      index,
      facts["source_tokens"],
      facts["target_tokens"],
      fingerprint=facts["fingerprint"],
    )
  except (OSError, ValueError, KeyError, TypeError, EOFError):
    return None
  except zipfile.BadZipFile:
    return None


def _state_of(paths: Sequence[str]) -> list[list[Any]]:
  """Returns name, size and time of each file."""
  return [
    [os.path.basename(p), file_system.size(p), file_system.modified(p)]
    for p in paths
  ]
