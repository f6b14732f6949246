"""Bodies of requests, of which what is no JSON is told by its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import fastapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

# Nobody reads this answer; the measurements tell it.
CLIENT_GONE = 499
_JSON = "application/json"
_PLAIN = "identity"


class JsonRoute(APIRoute):
  """A route that says which header or byte keeps a body from being read."""

  def get_route_handler(self) -> Callable[..., Any]:
    """Returns what answers a request."""
    answer = super().get_route_handler()

    async def answer_checked(request: fastapi.Request) -> fastapi.Response:
      if request.method == "POST":
        try:
          # Read first: a connection closed with bytes unread is reset.
          body = await request.body()
        except ClientDisconnect:
          raise HTTPException(CLIENT_GONE, "the client has gone") from None
        check(request.headers, body)
      return await answer(request)

    return answer_checked


def check(headers: Any, body: bytes) -> None:
  """Refuses a body that is not JSON by its headers, or no text.

  Args:
    headers: of the request, by names in lower case.
    body: of the request.

  Raises:
    HTTPException: 415 of a header, 400 of a byte.
  """
  encoding = headers.get("content-encoding", _PLAIN).strip().lower()
  if encoding != _PLAIN:
    raise HTTPException(
      415, f"Content-Encoding: {encoding:.50}: send the body uncompressed"
    )
  kind = headers.get("content-type", "").split(";")[0].strip().lower()
  # Only this one a foreign page in a browser may not send unasked.
  if kind != _JSON and not kind.endswith("+json"):
    said = f"Content-Type: {kind:.100}" if kind else "there is no Content-Type"
    raise HTTPException(415, f"{said}: send JSON, with Content-Type: {_JSON}")
  try:
    body.decode(json.detect_encoding(body), "surrogatepass")
  except UnicodeDecodeError as error:
    byte = body[error.start : error.start + 1].hex()
    raise HTTPException(
      400,
      f"body, byte {error.start + 1} (0x{byte}): not UTF-8, as JSON must be; "
      "is it Latin-1?",
    ) from None
