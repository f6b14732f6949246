"""Bodies of requests: JSON, and the forms that other services' clients send.

What a form holds goes on as the JSON that it stands for.
"""

from __future__ import annotations

import email
import email.policy
import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

import fastapi
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from official_transformer.serving.settings import host_of

# Nobody reads this answer; the measurements tell it.
CLIENT_GONE = 499
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_PLAIN = "identity"


async def read_body(request: fastapi.Request) -> bytes:
  """Returns a request's body.

  Raises:
    HTTPException: if the client has gone, or sends too much or too slowly.
  """
  try:
    return await request.body()
  except ClientDisconnect:
    raise HTTPException(CLIENT_GONE, "the client has gone") from None


def as_json(request: fastapi.Request, body: bytes) -> fastapi.Request:
  """Returns a request whose body is JSON, or may be.

  Args:
    request: as it came.
    body: of it.

  Raises:
    HTTPException: 415 of a header, 400 of a byte, 403 of a form that a page of
      another site sends.
  """
  encoding = request.headers.get("content-encoding", _PLAIN).strip().lower()
  if encoding != _PLAIN:
    raise HTTPException(
      415, f"Content-Encoding: {encoding:.50}: send the body uncompressed"
    )
  kind = _kind_of(request.headers)
  if kind == _JSON or kind.endswith("+json"):
    _check_text(body, json.detect_encoding(body), "body")
    return request
  if not kind and body:
    raise HTTPException(
      415, f"there is no Content-Type: send JSON, with Content-Type: {_JSON}"
    )
  if kind not in (_FORM, _MULTIPART, ""):
    raise HTTPException(
      415,
      f"Content-Type: {kind:.100}: send JSON, with Content-Type: {_JSON}, or a "
      "form",
    )
  _refuse_foreign_page(request.headers)
  fields = [
    *_decoded(request.url.query.encode(), "the address"),
    *_form_fields(request.headers, body),
  ]
  return _with_json(request, _grouped(fields))


def is_form(headers: Mapping[str, str]) -> bool:
  """Returns whether a body is a form, by its header."""
  return _kind_of(headers) in (_FORM, _MULTIPART)


def _kind_of(headers: Mapping[str, str]) -> str:
  return headers.get("content-type", "").split(";")[0].strip().lower()


def _refuse_foreign_page(headers: Mapping[str, str]) -> None:
  """Refuses a form of another site's page, which browsers send unasked.

  They send JSON only where the service has allowed that, which it does not.
  """
  origin = headers.get("origin")
  if origin is None:
    return
  host = urllib.parse.urlsplit(origin).netloc
  if host_of(host) != host_of(headers.get("host", "")):
    raise HTTPException(403, f"a form from a page of {origin:.200}: send JSON")


def _form_fields(
  headers: Mapping[str, str], body: bytes
) -> Iterable[tuple[str, str]]:
  """Returns the fields of a form."""
  if _kind_of(headers) != _MULTIPART:
    return _decoded(body, "body")
  head = f"Content-Type: {headers['content-type']}\r\n\r\n".encode("latin-1")
  message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
  if not message.is_multipart():
    raise HTTPException(400, "body: it is no form in parts, or has no boundary")
  found = []
  for part in message.iter_parts():
    name = part.get_param("name", header="content-disposition")
    content = part.get_payload(decode=True)
    if not isinstance(name, str) or not isinstance(content, bytes):
      raise HTTPException(400, "body: one of its parts has no name")
    _check_text(content, "utf-8", f"{name:.50}")
    found.append((name, content.decode("utf-8")))
  return found


def _decoded(body: bytes, where: str) -> list[tuple[str, str]]:
  """Returns the fields of an encoded form."""
  _check_text(body, "utf-8", where)
  try:
    return urllib.parse.parse_qsl(
      body.decode("utf-8"), keep_blank_values=True, errors="strict"
    )
  except UnicodeDecodeError as error:
    raise HTTPException(
      400, f"{where}: {error.object!r:.50} is not UTF-8; is it Latin-1?"
    ) from None
  except ValueError as error:
    raise HTTPException(400, f"{where}: {error}") from None


def _grouped(fields: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
  """Returns fields by their names; those that are there twice are lists."""
  found: dict[str, list[str]] = {}
  for name, value in fields:
    found.setdefault(name, []).append(value)
  return {
    name: values[0] if len(values) == 1 else values
    for name, values in found.items()
  }


def _check_text(content: bytes, encoding: str, where: str) -> None:
  """Refuses what is not in an encoding.

  Raises:
    HTTPException: 400, with the place of the byte.
  """
  try:
    content.decode(encoding, "surrogatepass")
  except UnicodeDecodeError as error:
    byte = content[error.start : error.start + 1].hex()
    raise HTTPException(
      400,
      f"{where}, byte {error.start + 1} (0x{byte}): not UTF-8, as it must be; "
      "is it Latin-1?",
    ) from None


def _with_json(
  request: fastapi.Request, fields: Mapping[str, Any]
) -> fastapi.Request:
  """Returns a request with another body, which is JSON."""
  body = json.dumps(fields).encode()
  headers = Headers(scope=request.scope).mutablecopy()
  headers["content-type"] = _JSON
  headers["content-length"] = str(len(body))
  is_read = False

  async def receive() -> Any:
    nonlocal is_read
    if is_read:
      return await request.receive()
    is_read = True
    return {"type": "http.request", "body": body, "more_body": False}

  return fastapi.Request({**request.scope, "headers": headers.raw}, receive)
