"""A route that reads a body of any kind, and refuses as its client expects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import fastapi
from fastapi import exceptions
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from official_transformer.serving import libretranslate
from official_transformer.serving.gate import NO_KEY, has_key, is_key
from official_transformer.serving.request_body import (
  as_json,
  is_form,
  read_body,
)
from official_transformer.serving.settings import Access

# Here a question is of one format or the other; elsewhere, LibreTranslate's.
TRANSLATE = "/translate"
# The formats of its questions, as errors name them.
FORMATS = OURS, THEIRS = "ours", "LibreTranslate"


class ServiceRoute(APIRoute):
  """Reads a body, and looks for the key in it, if the header has none.

  `app.state.access` says which key there is.
  """

  def get_route_handler(self) -> Callable[..., Any]:
    """Returns what answers a request."""
    answer = super().get_route_handler()

    async def answer_post(request: fastapi.Request) -> fastapi.Response:
      is_theirs = self.path != TRANSLATE or is_form(request.headers)
      try:
        access: Access = request.app.state.access
        has_it = has_key(dict(request.headers.raw), access.key)
        try:
          # Read first: a connection closed with bytes unread is reset.
          request = as_json(request, await read_body(request))
          fields = await _fields_of(request)
        except HTTPException:
          if has_it:
            raise
          raise HTTPException(*NO_KEY) from None
        is_theirs |= "q" in fields
        if not has_it and not is_key(fields.get("api_key"), access.key or ""):
          raise HTTPException(*NO_KEY)
        return await answer(request)
      except (HTTPException, exceptions.RequestValidationError) as error:
        if not is_theirs:
          raise
        return libretranslate.refusal(*problem_of(error))

    return answer_post if "POST" in (self.methods or ()) else answer


async def _fields_of(request: fastapi.Request) -> dict[str, Any]:
  """Returns what JSON holds; nothing of what is none, as the answer says."""
  try:
    fields = await request.json()
  except (json.JSONDecodeError, RecursionError):
    return {}
  return fields if isinstance(fields, dict) else {}


def problem_of(
  error: HTTPException | exceptions.RequestValidationError,
) -> tuple[int, str, Any]:
  """Returns the status, the message and the headers of an error."""
  if isinstance(error, HTTPException):
    return error.status_code, str(error.detail), error.headers
  problems = error.errors()
  status = 400 if any(p["type"] == "json_invalid" for p in problems) else 422
  said = "; ".join(f"{_place_of(p['loc'])}: {p['msg']}" for p in problems[:5])
  return status, said, None


def _place_of(location: tuple[int | str, ...]) -> str:
  """Returns the path to a field, without the name of its question's format."""
  path = [str(part) for part in location[1:] if part not in FORMATS]
  return ".".join(path) or "body"
