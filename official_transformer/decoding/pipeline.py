"""Reading ahead and computing side by side, with results in order."""

from __future__ import annotations

import collections
import queue
import threading
from collections.abc import (
  Callable,
  Generator,
  Iterable,
  Iterator,
  Sequence,
)
from concurrent.futures import (
  FIRST_COMPLETED,
  Future,
  ThreadPoolExecutor,
  wait,
)
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
Window = TypeVar("Window")
Result = TypeVar("Result")

# Windows computed at a time: a worker without work in the first takes work of
# the second.
WINDOWS_AHEAD = 2
_PATIENCE_SECONDS = 0.1


class Started(NamedTuple, Generic[Result]):
  """A window that is being computed.

  Attributes:
    work: futures of the tasks that the pool computes.
    results: returns its results, once the work is done.
  """

  work: list[Future]
  results: Callable[[], list[Result]]


class _Reader(Generic[Item, Window]):
  """Reads and prepares the next window when asked to, in the background.

  The reading thread is a daemon: it may wait for input that never comes, and
  must not keep the process from ending. The preparing thread is not: a daemon
  that runs a library's C++ code when Python ends makes the process crash. So
  does a daemon that holds the last reference to a library's object, and has to
  free it then.
  """

  def __init__(
    self,
    windows: Iterable[list[Item]],
    prepare: Callable[[list[Item]], Window],
  ) -> None:
    self._windows: Iterator[list[Item]] | None = iter(windows)
    self._prepare: Callable[[list[Item]], Window] | None = prepare
    self._preparer = ThreadPoolExecutor(1)
    self._wanted: queue.SimpleQueue[Future | None] = queue.SimpleQueue()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  def read(self) -> Future[Window | None]:
    """Returns the promise of the next window; of None, after the last."""
    future: Future[Window | None] = Future()
    self._wanted.put(future)
    return future

  def stop(self) -> None:
    """Lets the threads end."""
    self._wanted.put(None)
    # Longer only if it waits for input.
    self._thread.join(_PATIENCE_SECONDS)
    self._preparer.shutdown(wait=False, cancel_futures=True)
    self._windows = self._prepare = None

  def _run(self) -> None:
    while future := self._wanted.get():
      try:
        assert self._windows is not None
        window = next(self._windows, None)
        if window is None:
          future.set_result(None)
        else:
          self._preparer.submit(self._finish, future, window)
      except BaseException as error:
        # Any exception: it is raised in the thread that takes the results.
        future.set_exception(error)

  def _finish(self, future: Future[Window | None], window: list[Item]) -> None:
    try:
      assert self._prepare is not None
      future.set_result(self._prepare(window))
    except BaseException as error:
      future.set_exception(error)


def in_order(
  windows: Iterable[list[Item]],
  prepare: Callable[[list[Item]], Window],
  start: Callable[[Window, ThreadPoolExecutor], Started[Result]],
  workers: int,
) -> Generator[Result, None, None]:
  """Yields the results of all windows, in order, each as soon as possible.

  While `WINDOWS_AHEAD` windows are computed the next one is read.

  Args:
    windows: read in the background, and nothing else: input may not come.
    prepare: makes a window ready to start, in the background too.
    start: hands a window's work to the pool and returns at once.
    workers: threads of the pool.

  Raises:
    Exception: the exception of reading or computing, after the results before
      it have been yielded.
  """
  reader, pool = _Reader(windows, prepare), ThreadPoolExecutor(workers)
  started: collections.deque[Started[Result]] = collections.deque()
  failure: BaseException | None = None
  reading: Future[Window | None] | None = reader.read()
  try:
    while started or reading:
      if reading and len(started) < WINDOWS_AHEAD:
        _wait_for_either(reading, started)
      if reading and reading.done() and len(started) < WINDOWS_AHEAD:
        failure = reading.exception()
        window = None if failure else reading.result()
        reading = None
        if window is not None:
          started.append(start(window, pool))
          reading = reader.read()
      else:
        yield from started.popleft().results()
    if failure:
      raise failure
  finally:
    # Also if the caller stops early: nothing that has not begun is begun.
    reader.stop()
    pool.shutdown(wait=False, cancel_futures=True)


def _wait_for_either(reading: Future, started: Sequence[Started]) -> None:
  """Waits until a window has been read, or the first started one is done."""
  unfinished = set(started[0].work) if started else {reading}
  while unfinished and not reading.done():
    _, unfinished = wait({reading, *unfinished}, return_when=FIRST_COMPLETED)
    unfinished.discard(reading)
