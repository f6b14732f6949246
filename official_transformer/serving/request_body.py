"""Bodies of requests: JSON, and the forms of LibreTranslate's clients."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import fastapi
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

# The client does not read this answer, but metrics count it.
CLIENT_GONE = 499
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_PLAIN = "identity"
_GZIP = b"\x1f\x8b"
# More fields than any question has.
_MOST_FIELDS = 300
_NAME = re.compile(
  rb'(?i)content-disposition:.*?;\s*name\s*=\s*(?:"([^"]*)"|([^\s;"]+))'
)
_BOUNDARY = re.compile(r'(?i);\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))')
# Of a part's head, so much is read.
_HEAD_LINES, _HEAD_BYTES = 20, 1000


async def read_body(request: fastapi.Request) -> bytes:
  """Returns a request's body.

  Raises:
    HTTPException: if the client has gone, or sends too much or too slowly.
  """
  try:
    return await request.body()
  except ClientDisconnect:
    raise HTTPException(CLIENT_GONE, "the client has gone") from None


def is_form(request: fastapi.Request) -> bool:
  """Returns whether a request's fields are a form's, or in its address."""
  kind = _kind_of(request.headers)
  return kind in (_FORM, _MULTIPART) or bool(not kind and request.url.query)


def parse_fields(request: fastapi.Request, body: bytes) -> dict[str, Any]:
  """Returns the fields of JSON or of a form.

  Of a form, all values are strings, and `q` may be a list of them.

  Args:
    request: with its head.
    body: body of the request.

  Raises:
    HTTPException: 415 for a type or encoding that is not read, 400 for a body
      that is not UTF-8, or neither JSON nor a form, 422 for JSON that is no
      object or has too many fields, 403 for a form from another site's page.
  """
  encoding = request.headers.get("content-encoding", "").strip().lower()
  if encoding not in ("", _PLAIN) or body.startswith(_GZIP):
    named = f"Content-Encoding: {encoding:.50}" if encoding else "it is gzip"
    raise HTTPException(415, f"{named}: send the body uncompressed")
  kind = _kind_of(request.headers)
  if is_form(request):
    _refuse_foreign_page(request.headers)
    return _form(request, body)
  if kind == _JSON or kind.endswith("+json"):
    return _json(body)
  said = f"Content-Type: {kind:.100}" if kind else "there is no Content-Type"
  raise HTTPException(415, f"{said}: send JSON, with Content-Type: {_JSON}")


def _kind_of(headers: Mapping[str, str]) -> str:
  return headers.get("content-type", "").split(";")[0].strip().lower()


def _json(body: bytes) -> dict[str, Any]:
  """Returns a JSON object."""
  if not body:
    raise HTTPException(400, "body: it is empty")
  _check_text(body, json.detect_encoding(body), "body")
  try:
    found = json.loads(body)
  except json.JSONDecodeError as error:
    raise HTTPException(
      400, f"body, character {error.pos + 1}: not JSON: {error.msg}"
    ) from None
  except (ValueError, RecursionError) as error:
    raise HTTPException(400, f"body: not JSON: {error}") from None
  if not isinstance(found, dict):
    raise HTTPException(422, "body: it must be a JSON object")
  if len(found) > _MOST_FIELDS:
    raise HTTPException(422, f"body: more than {_MOST_FIELDS} fields")
  return found


def _refuse_foreign_page(headers: Mapping[str, str]) -> None:
  """Refuses a form of another site's page, which browsers send unasked.

  They send JSON only where a service has allowed that, as this one does not.
  """
  origin = headers.get("origin", "")
  # No page can forge Sec-Fetch-Site, and proxies keep it; older browsers do not
  # send it.
  if site := headers.get("sec-fetch-site"):
    is_foreign = site not in ("none", "same-origin")
  else:
    host = origin.partition("://")[2].lower()
    is_foreign = bool(origin) and host != headers.get("host", "").lower()
  if is_foreign:
    raise HTTPException(
      403, f"a form from a page of {origin or 'another site':.200}: send JSON"
    )


def _form(request: fastapi.Request, body: bytes) -> dict[str, Any]:
  """Returns the fields of an address and of a form; of several, the first."""
  pairs = _decoded(request.url.query.encode(), "the address")
  if _kind_of(request.headers) == _MULTIPART:
    pairs += _parts(request.headers["content-type"], body)
  else:
    pairs += _decoded(body, "body")
  fields: dict[str, Any] = {}
  for name, value in pairs:
    # Browsers end lines so.
    fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
  texts = fields.get("q", [])
  fields = {name: values[0] for name, values in fields.items()}
  return fields | ({"q": texts} if len(texts) > 1 else {})


def _decoded(content: bytes, where: str) -> list[tuple[str, str]]:
  """Returns the fields of an encoded form."""
  _check_text(content, "utf-8", where, errors="strict")
  try:
    return urllib.parse.parse_qsl(
      content.decode("utf-8"),
      keep_blank_values=True,
      errors="strict",
      max_num_fields=_MOST_FIELDS,
    )
  except UnicodeDecodeError as error:
    raise HTTPException(
      400, f"{where}: {error.object!r:.50} is not UTF-8; is it Latin-1?"
    ) from None
  except ValueError as error:
    raise HTTPException(400, f"{where}: {error}") from None


def _parts(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
  """Yields the fields of a form in parts (RFC 7578)."""
  boundary = _BOUNDARY.search(content_type)
  if boundary is None:
    raise HTTPException(400, "Content-Type: a form in parts needs a boundary")
  line = b"\r\n--" + (boundary[1] or boundary[2]).encode("latin-1")
  # Text may have a line that only begins so.
  delimiter = re.compile(re.escape(line) + rb"(?=--|[ \t]*\r\n)")
  _, *parts = delimiter.split(b"\r\n" + body, _MOST_FIELDS + 1)
  if not parts or not parts.pop().startswith(b"--"):
    raise HTTPException(
      400, f"body: no end of its parts, or more than {_MOST_FIELDS}"
    )
  for part in parts:
    head, _, content = part.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n", _HEAD_LINES)[:_HEAD_LINES]
    found = [m for m in (_NAME.match(n[:_HEAD_BYTES]) for n in lines) if m]
    if not found:
      raise HTTPException(400, "body: one of its parts has no name")
    name = (found[0][1] or found[0][2] or b"").decode("utf-8", "replace")
    _check_text(content, "utf-8", f"{name:.50}", errors="strict")
    yield name, content.decode("utf-8")


def _check_text(
  content: bytes, encoding: str, where: str, errors: str = "surrogatepass"
) -> None:
  """Refuses bytes that are not in an encoding.

  Raises:
    HTTPException: 400, with the place of the byte.
  """
  try:
    content.decode(encoding, errors)
  except UnicodeDecodeError as error:
    byte = content[error.start : error.start + 1].hex()
    raise HTTPException(
      400,
      f"{where}, byte {error.start + 1} (0x{byte}): not UTF-8, as it must be; "
      "is it Latin-1?",
    ) from None
