"""The service's addresses, its answers and its refusals.

Errors are JSON, `{"error": {"status": 413, "message": "..."}}`, and name the
limits; LibreTranslate's clients get errors in their own format. A `Service`
does the translating.
"""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Mapping
from typing import Any

import fastapi
import fastapi_offline
import pydantic
from absl import logging
from fastapi import responses
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from official_transformer.decoding.output import fields_of
from official_transformer.decoding.requests import RequestError
from official_transformer.serving import libretranslate as wire_format
from official_transformer.serving.directions import UNNAMED, Direction
from official_transformer.serving.dispatcher import (
  Dispatcher,
  Service,
  Translated,
  check_text,
)
from official_transformer.serving.gate import NO_KEY, Gate, has_key, is_key
from official_transformer.serving.libretranslate import (
  ADDRESSES,
  DetectQuestion,
  LibreAnswer,
  LibreQuestion,
  LibreTranslate,
)
from official_transformer.serving.metrics import CONTENT_TYPE, Metrics
from official_transformer.serving.request_body import (
  is_form,
  parse_fields,
  read_body,
)
from official_transformer.serving.request_guard import RequestGuard
from official_transformer.serving.schemas import (
  Answer,
  Languages,
  Question,
  Ready,
  Refusal,
  as_text,
)
from official_transformer.serving.settings import ANYONE, Access, ServiceLimits

PAGE = pathlib.Path(__file__).with_name("page.html")

_REFUSALS: dict[int | str, dict[str, Any]] = {
  status: {"model": Refusal, "description": text}
  for status, text in {
    400: "not JSON, or not UTF-8",
    401: "no API key, or another",
    421: "a host that this service is not",
    408: "the request did not arrive in time",
    413: "too large: bytes, lines or tokens",
    415: "a Content-Type or Content-Encoding that is not read",
    422: "something is missing, unknown, too long or of another type",
    429: "too much is waiting; try again later",
    503: "not ready, or ending",
    504: "not translated in time",
  }.items()
}

# For the interface's description.
_SCHEME = [
  fastapi.Depends(HTTPBearer(auto_error=False, description="The API key."))
]


def create_application(
  services: Mapping[Direction, Service],
  limits: ServiceLimits,
  metrics: Metrics,
  access: Access = ANYONE,
) -> fastapi.FastAPI:
  """Returns the ASGI application.

  Args:
    services: translate, each in a direction; one may be `UNNAMED`.
    limits: limits of a request.
    metrics: counters of requests.
    access: the API key, and the allowed hosts.
  """
  # Its pages of documentation fetch nothing from elsewhere.
  app = fastapi_offline.FastAPIOffline(
    title="Translation",
    description="Lines in, translated lines out. LibreTranslate's clients can "
    "be used, too, which may send forms instead of JSON.",
  )
  app.state.access = access
  dispatcher = Dispatcher(services, limits)
  libretranslate = LibreTranslate(dispatcher, access.key is not None)
  _add_error_handlers(app)
  _add_probes(app, services, metrics)
  _add_translation(app, dispatcher, libretranslate)
  _add_languages(app, libretranslate)
  app.add_middleware(Gate, access=access, refuse=refusal)
  app.add_middleware(RequestGuard, limits=limits, metrics=metrics)
  return app


def _add_translation(
  app: fastapi.FastAPI, dispatcher: Dispatcher, libretranslate: LibreTranslate
) -> None:
  """Adds the address that translates."""

  @app.post(
    "/translate",
    response_model=Answer | LibreAnswer,
    responses=_REFUSALS,
    openapi_extra=_body_of(Question, LibreQuestion),
    dependencies=_SCHEME,
  )
  async def translate(request: fastapi.Request) -> Any:
    """Translates one line or several."""
    # Only its clients send forms, and only they call text so.
    request.state.is_libretranslate = is_form(request)
    fields = await _fields(request)
    request.state.is_libretranslate |= "q" in fields
    _check_key(request, fields)
    # A response object is not validated by FastAPI; none needs to be.
    if request.state.is_libretranslate:
      if "text" in fields:
        raise HTTPException(422, "text is of one format, and q of another")
      asked = LibreQuestion.model_validate(fields)
      answer = await libretranslate.translate(asked, request)
      return responses.JSONResponse(answer)
    question = Question.model_validate(fields)
    return await _translate(question, dispatcher, request)


async def _translate(
  question: Question, dispatcher: Dispatcher, request: fastapi.Request
) -> fastapi.Response:
  """Returns the answer to a question in this service's own format."""
  _check(question, dispatcher)
  try:
    asked = question.request()
  except RequestError as error:
    raise HTTPException(422, str(error)) from None
  direction = dispatcher.choose(question.source, question.target)
  found = await dispatcher.translate(direction, asked, request)
  if question.attention:  # Much to write, while others wait.
    return await asyncio.to_thread(_answer, found, question)
  return _answer(found, question)


def _add_languages(
  app: fastapi.FastAPI, libretranslate: LibreTranslate
) -> None:
  """Adds the other addresses of LibreTranslate."""

  @app.post(
    "/detect",
    openapi_extra=_body_of(DetectQuestion),
    dependencies=_SCHEME,
  )
  async def detect(request: fastapi.Request) -> list[dict[str, Any]]:
    """Returns the possible languages of a text, the likeliest first."""
    fields = await _fields(request)
    _check_key(request, fields)
    texts = DetectQuestion.model_validate(fields).texts
    return [d._asdict() for d in await libretranslate.detect("\n".join(texts))]

  @app.get("/languages")
  async def languages() -> list[dict[str, Any]]:
    """Returns the languages, each with its targets."""
    return libretranslate.languages()

  @app.get("/frontend/settings")
  async def settings() -> dict[str, Any]:
    """Returns the limits, in the format of LibreTranslate's own page."""
    return libretranslate.settings()


def _body_of(*questions: type[pydantic.BaseModel]) -> dict[str, Any]:
  """Returns the interface's description of a request's body."""
  schemas = [question.model_json_schema() for question in questions]
  content = {"application/json": {"schema": {"anyOf": schemas}}}
  return {"requestBody": {"content": content, "required": True}}


async def _fields(request: fastapi.Request) -> dict[str, Any]:
  """Returns the fields of a request.

  Raises:
    HTTPException: as `read_body` and `parse_fields`; 401 instead if the headers
      lack the API key.
  """
  try:
    # Read first: a connection closed with bytes unread is reset.
    return parse_fields(request, await read_body(request))
  except HTTPException:
    _check_key(request, {})
    raise


def _check_key(request: fastapi.Request, fields: Mapping[str, Any]) -> None:
  """Refuses a request without the API key, if there is one."""
  key = request.app.state.access.key
  if key is None or has_key(dict(request.headers.raw), key):
    return
  is_libretranslate = getattr(request.state, "is_libretranslate", True)
  if not is_libretranslate or not is_key(fields.get("api_key"), key):
    raise HTTPException(*NO_KEY)


def _answer(found: Translated, question: Question) -> fastapi.Response:
  """Returns translations as they are answered."""
  return responses.JSONResponse(
    {
      "translations": [
        fields_of(t, question.n_best, question.output_fields)
        for t in found.translations
      ],
      "model": found.model.model_dump(),
    }
  )


def _check(question: Question, dispatcher: Dispatcher) -> None:
  """Refuses requests beyond the limits."""
  limits = dispatcher.limits
  dispatcher.check_lines(question.lines)
  for number, line in enumerate(question.lines, start=1):
    _check_line_feed(f"line {number}", line)
  for prefix in question.prefixes:
    _check_line("prefixes: one", prefix, limits.line_characters)
  for name, phrases in [
    ("forbidden_phrases", question.forbidden_phrases),
    *(("required_phrases", asked) for asked in question.required_phrases),
  ]:
    if len(phrases) > limits.phrases:
      raise HTTPException(
        422, f"{name}: {len(phrases)}; there may be {limits.phrases}"
      )
    for phrase in phrases:
      _check_line(f"{name}: one", phrase, limits.phrase_characters)


def _check_line(name: str, text: str, most: int) -> None:
  """Refuses a text that is too long, or that is more than a line."""
  check_text(name, text, most)
  _check_line_feed(name, text)


def _check_line_feed(name: str, text: str) -> None:
  """Refuses a text that is more than a line."""
  if "\n" in text or "\r" in text:
    raise HTTPException(
      422, f"{name} has a line feed in it: pass a list of lines"
    )


def _add_probes(
  app: fastapi.FastAPI,
  services: Mapping[Direction, Service],
  metrics: Metrics,
) -> None:
  """Adds the health checks and the page."""
  page = PAGE.read_text(encoding="utf-8")

  @app.get("/health")
  async def health() -> dict[str, str]:
    """Answers as long as the process runs."""
    return {"status": "alive"}

  @app.get("/ready", responses={503: _REFUSALS[503]})
  async def ready() -> Ready:
    """Returns the model in use, or 503 if no translation is possible now."""
    if not all(service.is_ready() for service in services.values()):
      raise HTTPException(503, "not ready")
    model = next(iter(services.values())).model()
    directions = [Languages(**d._asdict()) for d in services if d != UNNAMED]
    return Ready(**model.model_dump(), directions=directions)

  @app.get("/metrics", include_in_schema=False)
  async def measurements(request: fastapi.Request) -> fastapi.Response:
    if not has_key(dict(request.headers.raw), app.state.access.key):
      raise HTTPException(*NO_KEY)
    for service in services.values():
      service.measure(metrics)
    return fastapi.Response(metrics.text(), media_type=CONTENT_TYPE)

  @app.get("/", include_in_schema=False)
  async def type_here() -> responses.HTMLResponse:
    return responses.HTMLResponse(page)


def _add_error_handlers(app: fastapi.FastAPI) -> None:
  """Has every error answered as JSON, and none with a traceback."""

  @app.exception_handler(HTTPException)
  async def refuse(request: fastapi.Request, error: Any) -> fastapi.Response:
    return _refusal(
      request, error.status_code, str(error.detail), error.headers
    )

  @app.exception_handler(pydantic.ValidationError)
  async def invalid(request: fastapi.Request, error: Any) -> fastapi.Response:
    problems = error.errors(include_url=False, include_input=False)
    said = "; ".join(
      f"{'.'.join(map(str, p['loc'])) or 'body'}: "
      f"{p['msg'].removeprefix('Value error, ')}"
      for p in problems[:5]
    )
    return _refusal(request, 422, said)

  @app.exception_handler(Exception)
  async def fail(
    request: fastapi.Request, error: Exception
  ) -> fastapi.Response:
    logging.error("a request failed", exc_info=error)
    return _refusal(request, 500, "an error of the service; its log has it")


def _refusal(
  request: fastapi.Request,
  status: int,
  message: str,
  headers: dict[str, str] | None = None,
) -> fastapi.Response:
  """Returns an error in the format of the request."""
  is_theirs = request.url.path.endswith(ADDRESSES)
  if getattr(request.state, "is_libretranslate", is_theirs):
    return wire_format.refusal(status, message, headers)
  return refusal(status, message, headers)


def refusal(
  status: int, message: str, headers: dict[str, str] | None = None
) -> responses.JSONResponse:
  """Returns the answer for an error."""
  content = {"error": {"status": status, "message": as_text(message)}}
  return responses.JSONResponse(content, status, headers)
