import os
import signal
import subprocess
import sys
import time

import pytest
from waiting import wait_for

from official_transformer.errors import Interrupted
from official_transformer.training.interruption import Interruption

WAIT = """
import hashlib, signal, sys
from official_transformer.training.interruption import Interruption
signal.signal(signal.SIGINT, signal.default_int_handler)
with Interruption() as interruption:
  interruption.nothing_to_lose = sys.argv[1] == "may lose"
  print("ready", flush=True)
  # One call into C, as a step is: no handler of Python's runs before its end.
  hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


@pytest.fixture
def start():
  processes = []

  def start(kind):
    process = subprocess.Popen(
      [sys.executable, "-c", WAIT, kind],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    processes.append(process)
    assert process.stdout.readline() == "ready\n"
    return process

  yield start
  for process in processes:
    process.kill()
    process.communicate()


@pytest.fixture
def interruption():
  with Interruption() as interruption:
    interruption.nothing_to_lose = False
    yield interruption


@pytest.mark.usefixtures("heard_hangups")
def test_closing_a_terminal_is_one_signal(start):
  process = start("may not lose")
  process.send_signal(signal.SIGHUP)
  assert "SIGHUP: finishing the step" in process.stderr.readline()
  # From the shell and from the system.
  process.send_signal(signal.SIGHUP)
  process.send_signal(signal.SIGTERM)
  _, error = process.communicate(timeout=120)
  assert (process.returncode, error) == (143, "SIGTERM: stopped at once\n")


@pytest.mark.usefixtures("heard_hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_even_a_long_call(start, number):
  process = start("may not lose")
  name = signal.Signals(number).name
  process.send_signal(number)
  said = process.stderr.readline()
  assert f"{name}: finishing the step, then saving" in said
  process.send_signal(number)
  _, error = process.communicate(timeout=120)
  assert process.returncode == 128 + number
  assert error.endswith(f"{name}: stopped at once\n")


def test_what_has_nothing_to_lose_ends_at_once(start):
  process = start("may lose")
  process.send_signal(signal.SIGTERM)
  _, error = process.communicate(timeout=120)
  assert process.returncode == 143
  assert error == "SIGTERM: stopped at once\n"


def test_the_first_signal_is_remembered(interruption):
  assert interruption.signal is None
  os.kill(os.getpid(), signal.SIGTERM)
  wait_for(lambda: interruption.signal == signal.SIGTERM)


def test_a_signal_breaks_off_what_may_be(interruption):
  with pytest.raises(Interrupted) as caught, interruption.breaks_off():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
  assert caught.value.signal == signal.SIGTERM
  with pytest.raises(Interrupted), interruption.breaks_off():
    raise AssertionError("it is not begun any more")


def test_signals_are_given_back():
  before = signal.getsignal(signal.SIGTERM)
  with Interruption():
    assert signal.getsignal(signal.SIGTERM) != before
  assert signal.getsignal(signal.SIGTERM) == before


def test_signals_can_be_taken_back(interruption):
  signal.signal(signal.SIGTERM, signal.SIG_IGN)  # As TensorFlow may.
  interruption.take_signals()
  os.kill(os.getpid(), signal.SIGTERM)
  wait_for(lambda: interruption.signal is not None)
  assert interruption.signal == signal.SIGTERM


def test_an_ignored_signal_stays_ignored():
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    with Interruption() as interruption:
      os.kill(os.getpid(), signal.SIGINT)
      time.sleep(0.1)
      assert interruption.signal is None
  finally:
    signal.signal(signal.SIGINT, before)
