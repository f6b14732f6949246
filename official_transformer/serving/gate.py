"""Access by the API key, and by the host that a request names."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from official_transformer.serving.settings import LOCAL_HOSTS, Access, host_of

# Answer without the key: status, message, headers.
NO_KEY = (
  401,
  "send the API key: Authorization: Bearer KEY, or api_key among the fields of "
  "LibreTranslate's format",
  {"WWW-Authenticate": "Bearer"},
)

_PROBES = ("/health", "/ready")


class Gate:
  """ASGI middleware that lets no request past that is not to be answered.

  A page in a browser may have its own host's name lead to this machine ("DNS
  rebinding"), and would reach a service that is meant for this machine alone:
  its requests name that host.

  Attributes:
    app: the application.
  """

  def __init__(
    self, app: Any, access: Access, refuse: Callable[..., Any]
  ) -> None:
    """Initializes it.

    Args:
      app: the application.
      access: the API key, and the allowed hosts.
      refuse: makes an answer of a status, a message and headers.
    """
    self.app = app
    self._access = access
    self._refuse = refuse

  async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
    """Passes a request on, or refuses it by its head alone."""
    refused = scope["type"] == "http" and self._refusal(scope)
    if not refused:
      await self.app(scope, receive, send)
      return
    if scope["method"] not in ("GET", "HEAD"):
      # A connection that is closed with bytes unread is reset, and the client
      # would not read why. They are dropped as they come.
      with contextlib.suppress(HTTPException):
        message = await receive()
        while message.get("more_body", False):
          message = await receive()
    refused.headers["connection"] = "close"
    await refused(scope, receive, send)

  def _refusal(self, scope: Any) -> Any:
    """Returns the answer to a refused request, else None."""
    headers = dict(scope["headers"])
    host = host_of(headers.get(b"host", b"").decode("latin-1"))
    # A container's health check comes from the same machine.
    is_probe = scope["path"] in _PROBES and host in LOCAL_HOSTS
    if is_probe:
      return None
    if self._access.hosts and host and host not in self._access.hosts:
      return self._refuse(
        421,
        f"this service is not {host:.200}: start it with --allowed_hosts to "
        "have it answer under other names",
      )
    return None


def has_key(headers: Mapping[bytes, bytes], key: str | None) -> bool:
  """Returns whether a request's headers have the API key, if there is one."""
  if key is None:
    return True
  scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
  return is_key(given.strip(), key) and scheme.lower() == b"bearer"


def is_key(given: object, key: str) -> bool:
  """Returns whether a request has the API key."""
  if isinstance(given, str):
    given = given.encode("utf-8", "replace")
  # In constant time, so that timing does not reveal a part of the key.
  return isinstance(given, bytes) and hmac.compare_digest(
    given, key.encode("utf-8")
  )
