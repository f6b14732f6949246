"""Files that all tests of a run share, made by the first that needs them."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable

import filelock
import pytest


def make_once(
  factory: pytest.TempPathFactory,
  name: str,
  make: Callable[[pathlib.Path], object],
) -> pathlib.Path:
  """Returns a directory that one of the run's processes makes.

  Args:
    factory: of temporary directories.
    name: of the directory.
    make: fills an empty directory.
  """
  root = factory.getbasetemp()
  if "PYTEST_XDIST_WORKER" in os.environ:
    root = root.parent  # Of all workers together.
  path = root / name
  with filelock.FileLock(root / f"{name}.lock"):
    if not path.exists():
      aside = root / f"{name}.incomplete"
      shutil.rmtree(aside, ignore_errors=True)
      aside.mkdir()
      make(aside)
      aside.rename(path)
  return path
