"""The service's addresses: what is asked, what is answered, what is refused.

Errors are JSON, `{"error": {"status": 413, "message": "..."}}`, and say what is
granted. Nothing here knows how lines become translations: `Service` does.
"""

from __future__ import annotations

import asyncio
import hmac
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import fastapi
import fastapi_offline
import pydantic
from absl import logging
from fastapi import exceptions, responses
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from official_transformer.decoding.engines import TENSORFLOW
from official_transformer.decoding.output import OutputFields, fields_of
from official_transformer.decoding.translation import Translation
from official_transformer.errors import InputError
from official_transformer.serving.batcher import (
  ClosedError,
  QueueFullError,
  TooMuchError,
)
from official_transformer.serving.metrics import CONTENT_TYPE, Metrics
from official_transformer.serving.request_guard import RequestGuard
from official_transformer.serving.settings import ServiceLimits

PAGE = pathlib.Path(__file__).with_name("page.html")
# What a client that has gone would have been answered with.
CLIENT_GONE = 499
# Seconds, where asking again may help.
RETRY_AFTER = "1"


class Translated(NamedTuple):
  """What became of lines, and by which model."""

  translations: list[Translation]
  model: Model


class Service(Protocol):
  """What translates for the addresses below."""

  async def translate(
    self, lines: Sequence[str], n_best: int, aligned: bool = False
  ) -> Translated:
    """Translates lines; with alignments, if they are asked for.

    Raises:
      TooMuchError, QueueFullError, ClosedError: if they are not taken on.
      InputError: if the memory does not suffice for them.
    """

  def is_ready(self) -> bool:
    """Whether lines are taken on."""

  def model(self) -> Model:
    """Returns what is known of the model in use."""

  def measure(self, metrics: Metrics) -> None:
    """Sets the measurements that change by themselves."""


class Model(pydantic.BaseModel):
  """The model in use."""

  checkpoint: str = pydantic.Field(examples=["step 100000"])
  step: int
  engine: str = pydantic.Field(examples=["tensorflow"])
  beam_size: int
  max_length: int = pydantic.Field(
    description="Longer lines, in tokens, are cut at the ends of sentences."
  )


def _check_strings(value: Any) -> Any:
  """Refuses a list at its first element that is no string, not at each."""
  if isinstance(value, list) and not all(isinstance(s, str) for s in value):
    raise ValueError("not all of the list are strings")
  return value


class Question(pydantic.BaseModel):
  """What to translate."""

  model_config = pydantic.ConfigDict(extra="forbid", strict=True)

  text: Annotated[str | list[str], pydantic.BeforeValidator(_check_strings)] = (
    pydantic.Field(
      description="One line, or several.", examples=[["A dog runs."]]
    )
  )
  n_best: int = pydantic.Field(
    1, ge=1, description="Hypotheses of each line, at most the beam's."
  )
  scores: bool = pydantic.Field(
    False, description="Whether scores and tokens are wanted."
  )
  alignments: bool = pydantic.Field(
    False, description="Whether it is wanted which words come from which."
  )
  attention: bool = pydantic.Field(
    False, description="Whether it is wanted what each word attends to."
  )

  @property
  def told(self) -> OutputFields:
    """What an answer holds of a translation, beside its text."""
    return OutputFields(self.scores, self.alignments, self.attention)


class _Told(pydantic.BaseModel):
  """What is told of a translation, if it is asked for."""

  score: float | None = None
  tokens: list[str] | None = None
  source_words: list[str] | None = None
  target_words: list[str] | None = None
  alignment: str | None = pydantic.Field(
    None, description="Source and target words, from 0.", examples=["0-0 2-1"]
  )
  attention: list[list[float]] | None = pydantic.Field(
    None,
    description="For each target word, the weights of the source's words, on "
    "the mean of all layers and heads. A line that was cut has none.",
  )


class Hypothesis(_Told):
  """One of several translations of a line."""

  translation: str
  finished: bool


class Answered(_Told):
  """What became of a line."""

  translation: str
  flags: list[str] = pydantic.Field(
    description="blank, split (cut at the ends of sentences), unfinished."
  )
  hypotheses: list[Hypothesis] | None = None


class Answer(pydantic.BaseModel):
  """The translation of each line, in order."""

  translations: list[Answered]
  model: Model


class Error(pydantic.BaseModel):
  """Why there is no answer."""

  status: int
  message: str


class Refusal(pydantic.BaseModel):
  """What is answered then."""

  error: Error


_REFUSALS: dict[int | str, dict[str, Any]] = {
  status: {"model": Refusal, "description": text}
  for status, text in {
    400: "not JSON, or not UTF-8",
    401: "no API key, or another",
    408: "the request did not arrive in time",
    413: "too large: bytes, lines or tokens",
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
  api_key: str | None = None,
) -> fastapi.FastAPI:
  """Returns the ASGI application.

  Args:
    service: translates.
    limits: what a request may ask for.
    metrics: what is counted.
    api_key: what `/translate` and `/metrics` demand; None demands nothing.
  """
  # Its pages of documentation fetch nothing from elsewhere.
  app = fastapi_offline.FastAPIOffline(
    title="Translation",
    description="Lines in, translated lines out.",
  )
  _add_error_handlers(app)
  _add_probes(app, service)

  async def check_key(request: fastapi.Request) -> None:
    if api_key is not None and not _has_key(request, api_key):
      raise HTTPException(
        401,
        "send the API key: Authorization: Bearer KEY",
        {"WWW-Authenticate": "Bearer"},
      )

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
    lines = [question.text] if isinstance(question.text, str) else question.text
    _check(question, lines, service.model(), limits)
    aligned = question.alignments or question.attention
    work = asyncio.ensure_future(
      service.translate(lines, question.n_best, aligned)
    )
    found = await _unless_given_up(work, request, limits.seconds)
    # Not validated: it is what we have made.
    if question.attention:  # Much to write, while others wait.
      return await asyncio.to_thread(_answer, found, question)
    return _answer(found, question)

  @app.get("/metrics", dependencies=guarded, include_in_schema=False)
  async def measurements() -> fastapi.Response:
    service.measure(metrics)
    return fastapi.Response(metrics.text(), media_type=CONTENT_TYPE)

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


def _check(
  question: Question,
  lines: Sequence[str],
  model: Model,
  limits: ServiceLimits,
) -> None:
  """Refuses what asks for more than is granted."""
  if len(lines) > limits.lines:
    raise HTTPException(
      413, f"{len(lines)} lines; a request may have {limits.lines}"
    )
  for number, line in enumerate(lines, start=1):
    if len(line) > limits.line_characters:
      raise HTTPException(
        422,
        f"line {number} has {len(line)} characters; a line may have "
        f"{limits.line_characters}",
      )
    if problem := _problem_of(line):
      raise HTTPException(422, f"line {number} has {problem}")
  if (question.alignments or question.attention) and (
    model.engine != TENSORFLOW
  ):
    raise HTTPException(
      422,
      "alignments and attention are TensorFlow's to tell; the engine is "
      f"{model.engine}",
    )
  if question.n_best > model.beam_size:
    raise HTTPException(
      422, f"n_best: {question.n_best}; the beam has {model.beam_size}"
    )


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


def _has_key(request: fastapi.Request, key: str) -> bool:
  given = request.headers.get("authorization", "")
  wanted = f"Bearer {key}"
  # In a time that does not tell how much of it is right.
  return hmac.compare_digest(given.encode("latin-1"), wanted.encode("utf-8"))


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
