"""Limits of size and time for every request, and its count in the metrics."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.exceptions import HTTPException

from official_transformer.serving.metrics import Metrics
from official_transformer.serving.settings import ServiceLimits

_COUNTED = "/translate"
# Bytes of a request that are read only to be dropped.
_MOST_DROPPED = 1 << 26


class RequestGuard:
  """ASGI middleware around the whole application.

  Attributes:
    app: the application.
  """

  def __init__(self, app: Any, limits: ServiceLimits, metrics: Metrics) -> None:
    self.app = app
    self._limits = limits
    self._metrics = metrics

  async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
    """Passes a request on, with its body bounded in size and time."""
    if scope["type"] != "http":
      await self.app(scope, receive, send)
      return
    body = _BoundedBody(receive, self._limits)
    if scope["method"] in ("GET", "HEAD"):
      body.arrived = body.began  # The bodies of these requests are not read.
    status = 0

    async def send_counted(message: Any) -> None:
      nonlocal status
      if message["type"] == "http.response.start":
        status = message["status"]
        if not body.is_whole:
          # The rest of the body is not read any more.
          message = {**message}
          message["headers"] = [
            *message["headers"],
            (b"connection", b"close"),
          ]
      await send(message)

    if scope["path"] != _COUNTED:
      await self.app(scope, body.receive, send_counted)
      return
    with self._metrics.in_progress.track_inprogress():
      try:
        await self.app(scope, body.receive, send_counted)
      finally:
        self._metrics.requests.labels(str(status or 500)).inc()
        since = body.arrived or body.began
        self._metrics.seconds.observe(time.monotonic() - since)


class _BoundedBody:
  """A request's body, up to the allowed size.

  Attributes:
    began: when its head had arrived.
    arrived: when its last byte had; 0 until then.
  """

  def __init__(self, receive: Any, limits: ServiceLimits) -> None:
    self._receive = receive
    self._limits = limits
    self._size = 0
    self.began = time.monotonic()
    self.arrived = 0.0

  @property
  def is_whole(self) -> bool:
    """Whether the whole body has arrived."""
    return self.arrived > 0

  async def receive(self) -> Any:
    """Returns the next message, as ASGI's `receive`."""
    if self.is_whole:
      return await self._receive()
    message = await self._next()
    while self._size > self._limits.body_bytes:
      # Closing a connection with unread bytes resets it, and a client that is
      # still sending would not read the error: up to a bound, the bytes are
      # read.
      if self.is_whole or self._size > _MOST_DROPPED:
        raise HTTPException(
          413, f"a request may have {self._limits.body_bytes} bytes"
        )
      message = await self._next()
    return message

  async def _next(self) -> Any:
    """Returns the next message, and counts its bytes."""
    left = self.began + self._limits.seconds - time.monotonic()
    try:
      message = await asyncio.wait_for(self._receive(), max(left, 0))
    except TimeoutError:
      raise HTTPException(
        408,
        f"the request did not arrive within {self._limits.seconds:g} seconds",
      ) from None
    if message["type"] != "http.request":
      self._size = 0  # The client has gone.
    else:
      self._size += len(message.get("body", b""))
      if not message.get("more_body", False):
        self.arrived = time.monotonic()
    return message
