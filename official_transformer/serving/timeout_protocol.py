"""Uvicorn's protocol, with limits that it does not know."""

from __future__ import annotations

import asyncio
import http
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from official_transformer.serving.application import refusal
from official_transformer.serving.settings import RETRY_AFTER, ServiceLimits

# Of a request's head, and of what follows a body in chunks: h11 counts both,
# and reads no request while it answers another one.
MOST_HEAD_BYTES = 1 << 16


def protocol_with(limits: ServiceLimits) -> type[H11Protocol]:
  """Returns the protocol of a service."""
  return type("LimitedProtocol", (TimeoutProtocol,), {"limits": limits})


class TimeoutProtocol(H11Protocol):
  """Closes connections that say nothing, do not read, or are too many.

  Attributes:
    limits: limits of the service.
  """

  limits = ServiceLimits()
  _patience: asyncio.TimerHandle | None = None
  _unread: asyncio.TimerHandle | None = None

  def connection_made(self, transport: Any) -> None:
    """Begins to wait for a request, or refuses one connection too many."""
    super().connection_made(transport)
    if len(self.connections) > self.limits.connections:
      message = f"{self.limits.connections} connections are open; try again"
      transport.write(_raw(503, message))
      transport.close()
      return
    self._wait_for_head()

  def data_received(self, data: bytes) -> None:
    """Reads on; a head has a time to arrive in."""
    super().data_received(data)
    if not self.transport.get_write_buffer_size():
      self._stop_waiting_for_reader()
    if self.cycle is not None and not self.cycle.response_complete:
      self._stop_waiting()
      return
    self._wait_for_head()

  def _get_upgrade(self) -> None:
    """Ignores `Upgrade: h2c`, which clients offer with a request and body."""

  def on_response_complete(self) -> None:
    """Goes on to the next request; an answer has a time to be read in."""
    super().on_response_complete()
    if self.transport.get_write_buffer_size():
      self._wait_for_reader()

  def pause_writing(self) -> None:
    """Stops sending an answer; its client has a time to read in."""
    super().pause_writing()
    self._wait_for_reader()

  def resume_writing(self) -> None:
    """Sends the rest of an answer, because its client reads."""
    if self.cycle is not None and not self.cycle.response_complete:
      self._stop_waiting_for_reader()
    super().resume_writing()

  def connection_lost(self, exc: Exception | None) -> None:
    """Waits for nothing more."""
    self._stop_waiting()
    self._stop_waiting_for_reader()
    super().connection_lost(exc)

  def send_400_response(self, msg: str) -> None:
    """Answers requests that are not HTTP with a JSON error."""
    cause = f"not HTTP, or over {MOST_HEAD_BYTES} bytes before its body"
    self.transport.write(_raw(400, f"{msg} It is {cause}."))
    self.transport.close()

  def _wait_for_head(self) -> None:
    """Closes the connection unless a request's head arrives in time."""
    if self._patience is None:
      self._patience = self.loop.call_later(self.limits.seconds, self._lose)

  def _lose(self) -> None:
    self._patience = None
    if self.cycle is None or self.cycle.response_complete:
      self.transport.close()

  def _stop_waiting(self) -> None:
    if self._patience is not None:
      self._patience.cancel()
      self._patience = None

  def _wait_for_reader(self) -> None:
    """Closes the connection unless the client reads in time."""
    # A client that does not read must not keep its place for ever.
    if self._unread is None:
      self._unread = self.loop.call_later(
        self.limits.seconds, self._abort_if_unread
      )

  def _stop_waiting_for_reader(self) -> None:
    """Cancels the time limit, because the client has read the answer."""
    if self._unread is not None:
      self._unread.cancel()
      self._unread = None

  def _abort_if_unread(self) -> None:
    self._unread = None
    if self.transport.get_write_buffer_size():
      self.transport.abort()


def _raw(status: int, message: str) -> bytes:
  """Returns an answer as it is sent where no application is asked."""
  body = bytes(refusal(status, message).body)
  head = [
    f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
    "content-type: application/json",
    f"content-length: {len(body)}",
    "connection: close",
  ]
  if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
    head.append(f"retry-after: {RETRY_AFTER}")
  return "\r\n".join([*head, "", ""]).encode("ascii") + body
