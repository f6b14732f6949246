"""A lock that keeps two runs from training one model directory."""

from __future__ import annotations

import os

from official_transformer.model_directory.directory import LOCK_FILE
from official_transformer.storage.file_lock import FileLock


class DirectoryLock(FileLock):
  """Held by the process that trains; the system frees it when that ends.

  As a context, it is not taken before `acquire`: the directory, which must
  exist then, may yet have to be made.
  """

  def __init__(self, directory: str) -> None:
    super().__init__(
      os.path.join(directory, LOCK_FILE),
      f"{directory} is being trained by {{holder}}. Wait for it or stop it, or "
      "name another --model_dir",
    )

  def __enter__(self) -> DirectoryLock:
    return self
