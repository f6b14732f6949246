"""Several processes that answer at one port, and their supervisor."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

from absl import logging

from official_transformer.errors import ENDING_SIGNALS, RunError
from official_transformer.serving.metrics import (
  MULTIPROCESS_DIR,
  forget_process,
)
from official_transformer.serving.sockets import SOCKET_VARIABLE

_POLL_SECONDS = 0.2
# Names the pipe that is closed when a worker's parent ends.
LIFELINE = "TRANSLATION_SERVER_LIFELINE"
# Exit statuses of reported errors. At the start, the error would come again;
# later, its cause may be a file that is being replaced.
_TOLD = (1, 2)
_START_SECONDS = 60.0
_LONGEST_PAUSE = 30.0


def end_with_parent() -> None:
  """Has SIGTERM sent to this worker when its parent is no more."""

  def wait() -> None:
    os.read(int(os.environ[LIFELINE]), 1)
    os.kill(os.getpid(), signal.SIGTERM)

  threading.Thread(target=wait, daemon=True).start()


class Supervisor:
  """Runs workers that share a socket, and replaces killed ones."""

  def __init__(
    self, listener: socket.socket, command: Sequence[str], workers: int
  ) -> None:
    """Starts nothing yet.

    Args:
      listener: a bound socket.
      command: command of each worker.
      workers: how many.
    """
    self._listener = listener
    self._command = command
    self._workers = workers
    self._stopping = False
    self._running: list[subprocess.Popen] = []
    # Replacements in a row, each of which waits longer than the one before.
    self._replaced = 0
    self._next = 0.0

  def run(self) -> None:
    """Runs the workers until a signal to end, and waits for their end.

    Raises:
      RunError: if a worker reports an error at the start.
    """
    for number in ENDING_SIGNALS:
      if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, self._stop)
    began = time.monotonic()
    lifeline, mine = os.pipe()
    with tempfile.TemporaryDirectory() as counts:

      def start() -> subprocess.Popen:
        return subprocess.Popen(
          self._command,
          env={
            **os.environ,
            SOCKET_VARIABLE: str(self._listener.fileno()),
            LIFELINE: str(lifeline),
            MULTIPROCESS_DIR: counts,
          },
          pass_fds=[self._listener.fileno(), lifeline],
          # Only this process gets the terminal's Ctrl-C, and it signals the
          # workers.
          start_new_session=True,
        )

      self._running = [start() for _ in range(self._workers)]
      try:
        while not self._stopping:
          time.sleep(_POLL_SECONDS)
          at_start = time.monotonic() < began + _START_SECONDS
          self._replace_dead(start, counts, at_start)
      finally:
        for process in self._running:
          process.terminate()
        self._listener.close()
        for process in self._running:
          process.wait()
        os.close(mine)

  def _stop(self, number: int, _: object) -> None:
    if self._stopping:  # A second signal kills the workers at once.
      for process in self._running:
        process.kill()
    else:
      logging.info("%s: ending the workers", signal.Signals(number).name)
    self._stopping = True

  def _replace_dead(
    self, start: Callable[[], subprocess.Popen], counts: str, at_start: bool
  ) -> None:
    """Starts a worker in the place of each that has ended."""
    if time.monotonic() < self._next or self._stopping:
      return
    for place, process in enumerate(self._running):
      if process.poll() is None:
        continue
      if at_start and process.returncode in _TOLD:
        raise RunError("a worker failed to start; its error is above")
      logging.error(
        "a worker ended with status %d; another takes its place",
        process.returncode,
      )
      forget_process(process.pid, counts)
      self._running[place] = start()
      self._replaced += 1
      self._next = time.monotonic() + min(2**self._replaced, _LONGEST_PAUSE)
      return
    if time.monotonic() > self._next + _START_SECONDS:
      self._replaced = 0
