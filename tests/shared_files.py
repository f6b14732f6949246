"""Files that all tests of a run share, made by the first that needs them."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable

import filelock
import numpy as np
import pytest


def reversed_pairs(
  number: int, longest: int
) -> list[tuple[list[int], list[int]]]:
  """Returns ids and the same reversed, each ending in EOS.

  Args:
    number: of pairs.
    longest: most ids, EOS not counted; the fewest are 3.
  """
  rng = np.random.default_rng(0)
  sequences = (
    rng.integers(2, 20, size=rng.integers(3, longest + 1)).tolist()
    for _ in range(number)
  )
  return [([*ids, 1], [*ids[::-1], 1]) for ids in sequences]


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
