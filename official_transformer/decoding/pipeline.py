"""Reading ahead and computing side by side, with results in order."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Window = TypeVar("Window")
Result = TypeVar("Result")

# A started window is the promise of its results.
Promise = Callable[[], list[Result]]


def in_order(
  windows: Iterable[Window],
  start: Callable[[Window, ThreadPoolExecutor], Promise],
  workers: int,
) -> Iterator[Result]:
  """Yields the results of all windows, in order.

  While a window is computed the next one is read, in a thread of its own, and
  started, so that no worker waits at a window's end. At most three windows are
  held at a time.

  Args:
    windows: read in the background.
    start: hands a window's work to the pool and returns at once.
    workers: threads of the pool.

  Raises:
    Exception: whatever reading or computing raised, once the results before it
      have been yielded.
  """
  reader, pool = ThreadPoolExecutor(1), ThreadPoolExecutor(workers)
  iterator = iter(windows)
  started: collections.deque[Promise] = collections.deque()
  failure: Exception | None = None
  reading: Future[Window | None] | None = reader.submit(next, iterator, None)
  try:
    while started or reading:
      if reading:
        try:
          window = reading.result()
        except Exception as error:
          window, failure = None, error
        if window is None:
          reading = None
        else:
          started.append(start(window, pool))
          reading = reader.submit(next, iterator, None)
      if started and (len(started) > 1 or not reading):
        yield from started.popleft()()
    if failure:
      raise failure
  finally:
    # Also where the caller stops early: nothing that has not begun is begun.
    for executor in (reader, pool):
      executor.shutdown(wait=False, cancel_futures=True)
