import threading

import pytest

from official_transformer.decoding import pipeline
from official_transformer.decoding.pipeline import Started


def in_order(windows, start, workers):
  """Does so with windows of numbers that need no preparation."""
  return pipeline.in_order(windows, list, start, workers)


def start(window, pool):
  """Squares a window's numbers, each in the pool, the last first."""
  work = [pool.submit(lambda n=n: n * n) for n in reversed(window)]
  return Started(work, lambda: [f.result() for f in reversed(work)])


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_order(workers):
  windows = [[1, 2, 3], [], [4], [5, 6]]
  assert list(in_order(windows, start, workers)) == [1, 4, 9, 16, 25, 36]
  assert list(in_order([], start, workers)) == []


def test_few_windows_are_held_at_a_time():
  taken = []

  def windows():
    for n in range(20):
      taken.append(n)
      yield [n]

  stream = in_order(windows(), start, 1)
  for n in range(20):
    assert next(stream) == n * n
    assert len(taken) <= n + 4
  assert list(stream) == []


def test_windows_are_read_while_others_are_computed():
  read = threading.Event()

  def windows():
    yield [1]
    read.set()
    yield [2]

  def wait(window, pool):
    # Done only if the next window is read before this one is finished.
    work = [pool.submit(lambda: read.wait(120)) for _ in window]
    return Started(work, lambda: [f.result() for f in work])

  assert list(in_order(windows(), wait, 1)) == [True, True]


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_what_was_read_before_a_failure_is_not_lost(kind):
  def windows():
    yield [1, 2]
    yield [3]
    raise kind("line 4")

  found = []
  with pytest.raises(kind, match="line 4"):
    found.extend(iter_into(found, in_order(windows(), start, 2)))
  assert found == [1, 4, 9]


def test_a_failure_while_preparing_is_raised_in_its_turn():
  def prepare(window):
    return [1 // n for n in window]

  stream = pipeline.in_order([[1], [0], [1]], prepare, start, 1)
  assert next(stream) == 1
  with pytest.raises(ZeroDivisionError):
    next(stream)


def iter_into(found, stream):
  for item in stream:
    found.append(item)
  return []


def test_a_failure_while_computing_is_raised():
  def fail(window, pool):
    work = [pool.submit(lambda n=n: 1 // n) for n in window]
    return Started(work, lambda: [f.result() for f in work])

  stream = in_order([[1], [0], [1]], fail, 1)
  assert next(stream) == 1
  with pytest.raises(ZeroDivisionError):
    next(stream)


def test_a_caller_may_stop_early():
  """What was queued is dropped, and no thread is left."""
  taken, done = [], []
  queued = []  # The work of the second window.
  started, released = threading.Event(), threading.Event()
  before = set(threading.enumerate())

  def windows():
    while True:
      taken.append(1)
      yield [len(taken) == 1] * 50

  def work(is_first):
    assert (started if is_first else released).wait(120)
    done.append(1)
    return 1

  def slow(window, pool):
    futures = [pool.submit(work, is_first) for is_first in window]
    if not window[0]:
      queued.extend(futures)
      started.set()
    return Started(futures, lambda: [f.result() for f in futures])

  stream = in_order(windows(), slow, 1)
  assert next(stream) == 1
  assert len(queued) == 50
  stream.close()
  assert len(taken) <= 3
  # All but what had begun.
  assert sum(not future.cancelled() for future in queued) <= 1
  released.set()
  for thread in set(threading.enumerate()) - before:
    thread.join(120)
  assert set(threading.enumerate()) <= before
  assert len(done) <= 51


def test_a_finished_window_does_not_wait_for_the_next_to_be_read():
  written = threading.Event()

  def windows():
    yield [3]
    assert written.wait(120), "the first result never came"
    yield [4]

  stream = in_order(windows(), start, 1)
  assert next(stream) == 9
  written.set()
  assert list(stream) == [16]
