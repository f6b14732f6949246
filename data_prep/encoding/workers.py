"""A pool of processes that maps a function over items, in their order."""

from __future__ import annotations

import collections
import gc
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from official_transformer.errors import RunError
from official_transformer.hardware.cpu_threads import processors

Item = TypeVar("Item")
Result = TypeVar("Result")

# Items for each process, waiting or being worked on, so that none is idle.
_AHEAD = 2
# In a worker: the tool of `each`.
_tool: Any = None


class Workers:
  """Maps in other processes, in order, with bounded memory.

  Processes are started without fork, because a forked child would lack parts of
  a library's state, such as threads. They end with the parent in every case.
  """

  def __init__(self, number: int | None = None) -> None:
    """Sets the number of processes, which start with the first work.

    Args:
      number: processes; with 1, or for a single item, this process works
        itself. None is one a processor.
    """
    self.number = number or processors()

  def each(
    self,
    make_tool: Callable[[], Any],
    work: Callable[[Any, Item], Result],
    items: Iterable[Item],
  ) -> Iterator[Result]:
    """Yields the result of each item, in order.

    Args:
      make_tool: called once in each process; its result is passed to `work`.
        Both functions, `make_tool` and `work`, can be pickled.
      work: called with the tool and an item.
      items: read as they are needed.

    Raises:
      RunError: if a process has died; errors of `work` are raised, too.
    """
    items = iter(items)
    first = list(itertools.islice(items, 2))
    items = itertools.chain(first, items)
    if self.number == 1 or len(first) < 2:
      tool = make_tool()
      for item in items:
        yield work(tool, item)
      return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
      self.number, context, _begin, (make_tool,)
    ) as executor:
      waiting: collections.deque[Future[Result]] = collections.deque()
      try:
        for item in items:
          waiting.append(executor.submit(_do, work, item))
          if len(waiting) > self.number * _AHEAD:
            yield waiting.popleft().result()
        while waiting:
          yield waiting.popleft().result()
      except BrokenProcessPool:
        raise RunError(
          "a worker process is gone: was it killed, for instance for want of "
          "memory? Fewer --workers need less"
        ) from None
      finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin(make_tool: Callable[[], Any]) -> None:
  """Prepares a worker process."""
  global _tool
  # The parent gets the signal, and decides about its workers.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  threading.Thread(target=_end_with_parent, daemon=True).start()
  # Nothing of a block is part of a circle; looking for some takes a tenth of
  # the time.
  gc.disable()
  _tool = make_tool()


def _end_with_parent() -> None:
  parent = multiprocessing.parent_process()
  assert parent
  parent.join()
  os._exit(1)


def _do(work: Callable[[Any, Item], Result], item: Item) -> Result:
  return work(_tool, item)
