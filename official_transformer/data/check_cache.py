"""A cache of the results of checking shards' records.

A run that is started again does not read all records once more, unless the size
or the modification time of a shard has changed.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import logging

from official_transformer.data.record_check import Problem, RecordCheck
from official_transformer.data.record_index import RecordIndex
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import new_file

_FACTS = "facts"

# Name, size in bytes and time of writing of each shard.
ShardState = list[list[Any]]


def state_of(paths: Sequence[str]) -> ShardState:
  """Returns the state of the shards, which shows later changes.

  To be asked before they are read, not after.

  Raises:
    OSError: if one is not there.
  """
  return [[os.path.basename(p), *file_system.state(p)] for p in paths]


def save_check(
  path: str, check: RecordCheck, sizes: tuple[int, int], state: ShardState
) -> None:
  """Writes the results of a check.

  Args:
    path: path of the file to write.
    check: result of reading all records.
    sizes: sizes of the vocabularies that ids were compared with.
    state: state of the shards, before they were read.

  Raises:
    OSError: if the system refuses.
  """
  facts = {
    "shards": state,
    "vocab_sizes": sizes,
    "source_tokens": check.source_tokens,
    "target_tokens": check.target_tokens,
    "fingerprint": check.fingerprint,
    "problems": [
      [check.paths.index(p.path), p.number, p.reason, p.ends_shard]
      for p in check.problems
    ],
  }
  arrays: dict[str, Any] = {
    _FACTS: np.array(json.dumps(facts)),
    **check.index.arrays(),
  }
  with new_file(path) as aside, file_system.open_file(aside, "wb") as stream:
    np.savez_compressed(stream, **arrays)


def load_check(
  path: str, shards: Sequence[str], sizes: tuple[int, int], state: ShardState
) -> RecordCheck | None:
  """Returns the cached results of shards that have not changed.

  Args:
    path: path of the file that `save_check` wrote; it need not exist.
    shards: paths of the shards.
    sizes: sizes of the vocabularies to compare ids with.
    state: state of the shards, now.
  """
  if not file_system.exists(path):
    return None
  try:
    with file_system.open_file(path, "rb") as stream:
      # The whole file, because NumPy seeks, and remote files are read front to
      # back.
      content = io.BytesIO(stream.read())
    stored = np.load(content, allow_pickle=False)
    facts = json.loads(str(stored[_FACTS]))
    # An earlier version's has the size of one.
    found = facts.get("vocab_sizes"), facts["shards"]
    if found != (list(sizes), state):
      return None
    return RecordCheck(
      RecordIndex.from_arrays(shards, stored),
      int(facts["source_tokens"]),
      int(facts["target_tokens"]),
      tuple(
        Problem(shards[shard], number, reason, ends_shard)
        for shard, number, reason, ends_shard in facts["problems"]
      ),
      int(facts["fingerprint"]),
    )
  except Exception as error:
    # NumPy and zipfile raise errors of any type for a damaged archive.
    logging.warning("%s is damaged (%r): reading the data", path, error)
    return None
