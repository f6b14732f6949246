"""Signals that end a run in good order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from absl import logging

from official_transformer.errors import (
  ENDING_SIGNALS,
  Interrupted,
  signal_name,
)

_HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none.


class Interruption:
  """Remembers a first signal to end; a second one ends the process.

  Several SIGHUP count as one.

  Python runs a signal's handler only between two of its own instructions, and
  a step, or the compilation of one, is a single instruction: a thread listens
  too, so that a second signal is never late.

  Attributes:
    signal: the number of the first signal, once there was one.
    nothing_to_lose: whether a first signal too may end the process at once.
  """

  def __init__(self) -> None:
    self.signal: int | None = None
    self.nothing_to_lose = True
    self._breaks_off = False
    self._handlers: dict[int, Any] = {}

  def __enter__(self) -> Interruption:
    """Starts to listen; in the main thread only, as Python demands."""
    self._receiver, self._sender = socket.socketpair()
    self._sender.setblocking(False)
    for number in ENDING_SIGNALS:
      # Shells have background processes ignore SIGINT, and nohup has them
      # ignore SIGHUP.
      if signal.getsignal(number) is not signal.SIG_IGN:
        self._handlers[number] = signal.getsignal(number)
    self.take_signals()
    self._wakeup = signal.set_wakeup_fd(
      self._sender.fileno(), warn_on_full_buffer=False
    )
    threading.Thread(target=self._listen, daemon=True).start()
    return self

  def take_signals(self) -> None:
    """Takes the signals, or takes them back.

    As soon as a process joins others, TensorFlow handles SIGTERM itself,
    silently.
    """
    for number in self._handlers:
      signal.signal(number, self._handle)

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    """Restores the earlier signal handlers."""
    signal.set_wakeup_fd(self._wakeup)
    for number, handler in self._handlers.items():
      signal.signal(number, handler)
    self._sender.close()  # Ends the thread.

  @contextlib.contextmanager
  def breaks_off(self) -> Iterator[None]:
    """Lets a signal interrupt the body by `Interrupted`.

    For long work that can be interrupted without loss.
    """
    self._breaks_off = True
    try:
      if self.signal is not None:
        raise Interrupted(self.signal)
      yield
    finally:
      self._breaks_off = False

  def _handle(self, number: int, frame: FrameType | None) -> None:
    """Python's handler, in the main thread."""
    self.signal = number
    if self._breaks_off:
      self._breaks_off = False  # Once: a second signal must end the process.
      raise Interrupted(number)

  def _listen(self) -> None:
    """Takes each signal's number as soon as it comes."""
    received = 0
    hung_up = False
    with self._receiver:
      while numbers := self._receiver.recv(1):
        (number,) = numbers
        # When a terminal closes, its shell and the system each send one.
        if number not in self._handlers or (number == _HANGUP and hung_up):
          continue
        hung_up |= number == _HANGUP
        received += 1
        if self.nothing_to_lose or received > 1:
          # Not by logging, because the interrupted code may hold its lock.
          with contextlib.suppress(OSError):  # The terminal may have gone.
            os.write(2, f"{signal_name(number)}: stopped at once\n".encode())
          os._exit(128 + number)
        self.signal = number
        logging.warning(
          "%s: finishing the step, then saving; a second signal stops at once",
          signal_name(number),
        )
