import os
import signal
import subprocess
import sys
import time

import pytest
from waiting import wait_for

from data_prep.encoding import workers as lib
from official_transformer.errors import InputError, RunError


def make_ten():
  return 10


def multiply(tool, item):
  time.sleep(0.02 * (item % 3))  # They do not end in their order.
  return tool * item, os.getpid()


def refuse_three(_, item):
  if item == 3:
    raise InputError("line 3 is wrong")
  return item


def die_at_two(_, item):
  if item == 2:
    os.kill(os.getpid(), signal.SIGKILL)
  return item


@pytest.mark.parametrize("number", [1, 2, 3])
def test_results_come_in_order(number):
  found = list(lib.Workers(number).each(make_ten, multiply, range(20)))
  assert [result for result, _ in found] == [10 * n for n in range(20)]
  here = os.getpid()
  assert ({pid for _, pid in found} == {here}) == (number == 1)


def test_nothing_is_started_for_one_item():
  ((_, pid),) = lib.Workers(2).each(make_ten, multiply, [1])
  assert pid == os.getpid()
  assert not list(lib.Workers(2).each(make_ten, multiply, []))


def test_items_are_read_as_they_are_needed():
  read = []

  def items():
    for n in range(100):
      read.append(n)
      yield n

  results = lib.Workers(2).each(make_ten, multiply, items())
  next(results)
  assert len(read) <= 6
  results.close()


def test_what_a_worker_raises_is_raised():
  results = lib.Workers(2).each(make_ten, refuse_three, range(9))
  assert [next(results) for _ in range(3)] == [0, 1, 2]
  with pytest.raises(InputError, match="line 3 is wrong"):
    list(results)


def test_a_worker_that_is_killed_is_told():
  with pytest.raises(RunError, match="a worker process is gone"):
    list(lib.Workers(2).each(make_ten, die_at_two, range(9)))


ORPHANS = """
import os, time
from data_prep.encoding.workers import Workers

def pid(_, item):
  time.sleep(0.2)
  return os.getpid()

if __name__ == "__main__":
  for number in Workers(2).each(int, pid, range(10000)):
    print(number, flush=True)
"""


def test_workers_end_with_their_parent(tmp_path):
  script = tmp_path / "script.py"
  script.write_text(ORPHANS)
  process = subprocess.Popen(
    [sys.executable, script], stdout=subprocess.PIPE, text=True
  )
  pids = {int(process.stdout.readline()) for _ in range(6)}
  process.kill()
  process.wait()
  process.stdout.close()
  wait_for(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids))
