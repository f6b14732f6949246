"""The service's addresses: what is asked, what is answered, what is refused.

Errors are JSON, `{"error": {"status": 413, "message": "..."}}`, and say what is
granted. Nothing here knows how lines become translations: `Service` does.
"""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any, NamedTuple, Protocol

import fastapi
import fastapi_offline
from absl import logging
from fastapi import exceptions, responses
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from official_transformer.decoding.output import fields_of
from official_transformer.decoding.requests import (
  RequestError,
  TranslationRequest,
)
from official_transformer.decoding.translation import Translation
from official_transformer.errors import InputError
from official_transformer.serving.batcher import (
  ClosedError,
  QueueFullError,
  TooMuchError,
)
from official_transformer.serving.gate import NO_KEY, Gate, has_key
from official_transformer.serving.metrics import CONTENT_TYPE, Metrics
from official_transformer.serving.request_body import CLIENT_GONE, JsonRoute
from official_transformer.serving.request_guard import RequestGuard
from official_transformer.serving.schemas import (
  Answer,
  Model,
  Question,
  Refusal,
)
from official_transformer.serving.settings import ANYONE, Access, ServiceLimits

PAGE = pathlib.Path(__file__).with_name("page.html")
# Seconds, where asking again may help.
RETRY_AFTER = "1"


class Translated(NamedTuple):
  """What became of lines, and by which model."""

  translations: list[Translation]
  model: Model


class Service(Protocol):
  """What translates for the addresses below."""

  async def translate(self, request: TranslationRequest) -> Translated:
    """Translates lines.

    Raises:
      RequestError: if they ask for what the model cannot do.
      TooMuchError, QueueFullError, ClosedError: if they are not taken on.
      InputError: if the memory does not suffice for them.
    """

  def is_ready(self) -> bool:
    """Whether lines are taken on."""

  def model(self) -> Model:
    """Returns what is known of the model in use."""

  def measure(self, metrics: Metrics) -> None:
    """Sets the measurements that change by themselves."""


_REFUSALS: dict[int | str, dict[str, Any]] = {
  status: {"model": Refusal, "description": text}
  for status, text in {
    400: "not JSON, or not UTF-8",
    401: "no API key, or another",
    421: "a host that this service is not",
    408: "the request did not arrive in time",
    413: "too large: bytes, lines or tokens",
    415: "a Content-Type or Content-Encoding other than plain JSON's",
    422: "something is missing, unknown, too long or of another type",
    429: "too much is waiting; try again later",
    503: "not ready, or ending",
    504: "not translated in time",
  }.items()
}


def create_application(
  service: Service,
  limits: ServiceLimits,
  metrics: Metrics,
  access: Access = ANYONE,
) -> fastapi.FastAPI:
  """Returns the ASGI application.

  Args:
    service: translates.
    limits: what a request may ask for.
    metrics: what is counted.
    access: who is answered.
  """
  # Its pages of documentation fetch nothing from elsewhere.
  app = fastapi_offline.FastAPIOffline(
    title="Translation",
    description="Lines in, translated lines out.",
  )
  app.router.route_class = JsonRoute
  _add_error_handlers(app)
  _add_probes(app, service)

  async def check_key(request: fastapi.Request) -> None:
    """Refuses again what the gate has, however the path is written."""
    if not has_key(dict(request.headers.raw), access.key):
      raise HTTPException(*NO_KEY)

  scheme = HTTPBearer(auto_error=False, description="The API key, if any.")
  # The scheme is for the interface's description.
  guarded = [fastapi.Depends(scheme), fastapi.Depends(check_key)]

  @app.post(
    "/translate",
    response_model=Answer,
    responses=_REFUSALS,
    dependencies=guarded,
  )
  async def translate(question: Question, request: fastapi.Request) -> Any:
    """Translates one line or several."""
    _check(question, limits)
    try:
      asked = question.request()
    except RequestError as error:
      raise HTTPException(422, str(error)) from None
    work = asyncio.ensure_future(service.translate(asked))
    found = await _unless_given_up(work, request, limits.seconds)
    # Not validated: it is what we have made.
    if question.attention:  # Much to write, while others wait.
      return await asyncio.to_thread(_answer, found, question)
    return _answer(found, question)

  @app.get("/metrics", dependencies=guarded, include_in_schema=False)
  async def measurements() -> fastapi.Response:
    service.measure(metrics)
    return fastapi.Response(metrics.text(), media_type=CONTENT_TYPE)

  app.add_middleware(Gate, access=access, refuse=refusal)
  app.add_middleware(RequestGuard, limits=limits, metrics=metrics)
  return app


def _answer(found: Translated, question: Question) -> fastapi.Response:
  """Returns translations as they are answered."""
  return responses.JSONResponse(
    {
      "translations": [
        fields_of(t, question.n_best, question.told) for t in found.translations
      ],
      "model": found.model.model_dump(),
    }
  )


def _check(question: Question, limits: ServiceLimits) -> None:
  """Refuses what asks for more than is granted."""
  lines = question.lines
  if len(lines) > limits.lines:
    raise HTTPException(
      413, f"{len(lines)} lines; a request may have {limits.lines}"
    )
  for number, line in enumerate(lines, start=1):
    _check_text(f"line {number}", line, limits.line_characters)
  for prefix in question.prefixes:
    _check_text("prefixes: one", prefix, limits.line_characters)
  for name, phrases in [
    ("forbidden_phrases", question.forbidden_phrases),
    *(("required_phrases", asked) for asked in question.required_phrases),
  ]:
    if len(phrases) > limits.phrases:
      raise HTTPException(
        422, f"{name}: {len(phrases)}; there may be {limits.phrases}"
      )
    for phrase in phrases:
      _check_text(f"{name}: one", phrase, limits.phrase_characters)


def _check_text(name: str, text: str, most: int) -> None:
  """Refuses a text that is too long, or that no line can hold."""
  if len(text) > most:
    raise HTTPException(
      422, f"{name} has {len(text)} characters; it may have {most}"
    )
  if problem := _problem_of(text):
    raise HTTPException(422, f"{name} has {problem}")


def _problem_of(line: str) -> str | None:
  """Returns what makes a string no line of text, if anything does."""
  if "\n" in line or "\r" in line:
    return "a line feed in it: pass a list of lines"
  try:
    line.encode("utf-8")
  except UnicodeEncodeError:
    return "half of a surrogate pair in it, which is no text"
  return None


async def _unless_given_up(
  work: asyncio.Future[Translated],
  request: fastapi.Request,
  seconds: float,
) -> Translated:
  """Waits for translations, for as long as anyone wants them."""
  gone: asyncio.Future = asyncio.ensure_future(_disconnection(request))
  try:
    await asyncio.wait(
      [work, gone], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
    )
    if work.done():
      return work.result()
    if gone.done():
      raise HTTPException(CLIENT_GONE, "the client has gone")
    raise HTTPException(504, f"not translated within {seconds:g} seconds")
  except RequestError as error:
    raise HTTPException(422, str(error)) from None
  except TooMuchError as error:
    raise HTTPException(
      413, f"the lines have {error}, and no more may ever wait"
    ) from None
  except QueueFullError:
    raise HTTPException(
      429, "too much is waiting; try again", {"Retry-After": RETRY_AFTER}
    ) from None
  except ClosedError:
    raise HTTPException(
      503, "the service is ending", {"Retry-After": RETRY_AFTER}
    ) from None
  except InputError as error:
    raise HTTPException(413, str(error)) from None
  finally:
    work.cancel()
    gone.cancel()


async def _disconnection(request: fastapi.Request) -> None:
  """Returns when the client has gone."""
  while (await request.receive())["type"] != "http.disconnect":
    pass


def _add_probes(app: fastapi.FastAPI, service: Service) -> None:
  """Adds what tells whether the service is there, and the page."""
  page = PAGE.read_text(encoding="utf-8")

  @app.get("/health")
  async def health() -> dict[str, str]:
    """Tells that the process answers."""
    return {"status": "alive"}

  @app.get("/ready", responses={503: _REFUSALS[503]})
  async def ready() -> Model:
    """Tells whether translations are to be had, and by which model."""
    if not service.is_ready():
      raise HTTPException(503, "not ready")
    return service.model()

  @app.get("/", include_in_schema=False)
  async def type_here() -> responses.HTMLResponse:
    return responses.HTMLResponse(page)


def _add_error_handlers(app: fastapi.FastAPI) -> None:
  """Has every error answered as JSON, and none with a traceback."""

  @app.exception_handler(HTTPException)
  async def refuse(_: fastapi.Request, error: Any) -> fastapi.Response:
    return refusal(error.status_code, str(error.detail), error.headers)

  @app.exception_handler(exceptions.RequestValidationError)
  async def invalid(_: fastapi.Request, error: Any) -> fastapi.Response:
    problems = error.errors()
    status = 400 if any(p["type"] == "json_invalid" for p in problems) else 422
    said = "; ".join(
      f"{'.'.join(map(str, p['loc'][1:])) or 'body'}: {p['msg']}"
      for p in problems[:5]
    )
    return refusal(status, said)

  @app.exception_handler(Exception)
  async def fail(_: fastapi.Request, error: Exception) -> fastapi.Response:
    logging.error("a request failed", exc_info=error)
    return refusal(500, "an error of the service; its log has it")


def refusal(
  status: int, message: str, headers: dict[str, str] | None = None
) -> responses.JSONResponse:
  """Returns an error as it is answered."""
  # What came may hold what is no text.
  message = message.encode("utf-8", "replace").decode("utf-8")
  content = {"error": {"status": status, "message": message}}
  return responses.JSONResponse(content, status, headers)
