"""Waiting for something to be so, on a machine that may be slow."""

from __future__ import annotations

import time
from collections.abc import Callable

# So long that only what never comes exceeds it.
LONGEST_SECONDS = 300


def wait_for(condition: Callable[[], object], interval: float = 0.05) -> None:
  """Returns when a condition holds; fails if it never does.

  Args:
    condition: looked at again and again.
    interval: seconds between two looks.
  """
  deadline = time.monotonic() + LONGEST_SECONDS
  while not condition():
    assert time.monotonic() < deadline, "it never came to be"
    time.sleep(interval)
