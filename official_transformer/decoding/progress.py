"""How far a translation has come: a bar on a terminal, elsewhere the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from absl import logging
from tqdm import tqdm

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 30.0
LINES_BETWEEN_LOOKS = 256


def report(
  items: Iterable[Item], total: int | None, bar: bool
) -> Iterator[Item]:
  """Yields items, saying how many have come, how fast, and the time left.

  Args:
    items: translations, as they come.
    total: how many will come, or None where nobody knows.
    bar: whether a bar may be drawn, which needs a terminal.
  """
  if bar and sys.stderr.isatty():
    yield from tqdm(items, total=total, unit=" sentences", smoothing=0.1)
    return
  begin = last = time.monotonic()
  for count, item in enumerate(items, start=1):
    yield item
    # Lines come in bursts: amid one, the rate would mean nothing.
    if count % LINES_BETWEEN_LOOKS:
      continue
    now = time.monotonic()
    if now - last >= SECONDS_BETWEEN_LINES:
      logging.info("%s", describe(count, total, now - begin))
      last = now


def describe(count: int, total: int | None, seconds: float) -> str:
  """Returns a line such as `20 of 100 lines, 4.0 sentences/s, 00:20 left`."""
  rate = count / seconds
  if total is None:
    return f"{count} lines, {rate:.1f} sentences/s"
  left = tqdm.format_interval((total - count) / rate)
  return f"{count} of {total} lines, {rate:.1f} sentences/s, {left} left"
