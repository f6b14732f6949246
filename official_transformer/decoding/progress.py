"""Progress of a translation: a bar on a terminal, log messages elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType

from absl import logging
from tqdm import tqdm

SECONDS_BETWEEN_LINES = 30.0


class Progress:
  """Counts lines as they are decoded, from any thread, and reports.

  Used as a context, which closes the bar.

  Attributes:
    total: number of lines; None if unknown.
    count: lines decoded so far.
  """

  def __init__(self, total: int | None, bar: bool) -> None:
    """Begins.

    Args:
      total: number of lines; None if unknown.
      bar: whether a bar may be drawn, which needs a terminal.
    """
    self.total = total
    self.count = 0
    self._lock = threading.Lock()
    self._begin = self._last = time.monotonic()
    self._bar = None
    if bar and sys.stderr.isatty():
      # tqdm reads a width of 0 from terminals that do not report their size.
      size = shutil.get_terminal_size()
      self._bar = tqdm(
        total=total,
        unit=" lines",
        smoothing=0.1,
        ncols=min(size.columns, 100),
        nrows=size.lines,
      )

  def __enter__(self) -> Progress:
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    if self._bar is not None:
      self._bar.close()

  def add(self, lines: int) -> None:
    """Counts lines that have been decoded."""
    with self._lock:
      self.count += lines
      if self._bar is not None:
        self._bar.update(lines)
        return
      now = time.monotonic()
      if now - self._last < SECONDS_BETWEEN_LINES:
        return
      self._last = now
      logging.info("%s", describe(self.count, self.total, now - self._begin))


def describe(count: int, total: int | None, seconds: float) -> str:
  """Returns a line such as `20 of 100 lines, 4.0 lines/s, 00:20 left`."""
  rate = count / seconds
  if total is None or not count:
    return f"{count} lines, {rate:.1f} lines/s"
  left = tqdm.format_interval((total - count) / rate)
  return f"{count} of {total} lines, {rate:.1f} lines/s, {left} left"
