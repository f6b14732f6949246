"""An HTTP server around the application."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from absl import logging

from official_transformer.errors import ENDING_SIGNALS
from official_transformer.serving.settings import ServiceLimits
from official_transformer.serving.timeout_protocol import (
  MOST_HEAD_BYTES,
  protocol_with,
)

# Beyond the time that a request may take to arrive and to be answered.
_GRACE = 5
# Beside connections.
_OTHER_FILES = 512


def serve(
  application: Any,
  listener: socket.socket,
  limits: ServiceLimits,
) -> None:
  """Answers requests until a signal, then finishes the accepted ones.

  Args:
    application: an ASGI application.
    listener: a bound socket.
    limits: limits of the service.
  """
  _allow_files(limits.connections)
  config = uvicorn.Config(
    application,
    http=protocol_with(limits),
    ws="none",
    h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    access_log=False,
    log_config=None,
    log_level="warning",
    server_header=False,
    proxy_headers=False,
    timeout_graceful_shutdown=int(2 * limits.seconds + _GRACE),
  )
  _Server(config).run([listener])


def _allow_files(connections: int) -> None:
  """Raises the number of files that may be open, each connection being one."""
  soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  wanted = connections + _OTHER_FILES
  if soft < wanted:
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
  """Stops in good order, and reports it by its status."""

  @contextlib.contextmanager
  def capture_signals(self) -> Iterator[None]:
    """Takes signals; does not raise them again when all is done."""

    def stop(number: int, _: Any) -> None:
      if not self.should_exit:
        name = signal.Signals(number).name
        logging.info("%s: answering the accepted requests", name)
      self.should_exit = True

    before = {
      number: signal.signal(number, stop)
      for number in ENDING_SIGNALS
      # As nohup has SIGHUP ignored.
      if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
      yield
    finally:
      for number, handler in before.items():
        signal.signal(number, handler)
