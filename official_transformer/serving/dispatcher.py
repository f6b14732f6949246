"""Translation by direction, within the limits of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import fastapi
from starlette.exceptions import HTTPException

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
from official_transformer.serving.directions import Direction, choose_direction
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.request_body import CLIENT_GONE
from official_transformer.serving.schemas import Model
from official_transformer.serving.settings import RETRY_AFTER, ServiceLimits

_LATER = {"Retry-After": RETRY_AFTER}


class Translated(NamedTuple):
  """Translations of lines, and the model that made them."""

  translations: list[Translation]
  model: Model


class Service(Protocol):
  """Translates in one direction."""

  async def translate(self, request: TranslationRequest) -> Translated:
    """Translates lines.

    Raises:
      RequestError: if the model cannot do what the lines ask for.
      TooMuchError, QueueFullError, ClosedError: if they are not taken on.
      InputError: if the memory does not suffice for them.
    """

  def is_ready(self) -> bool:
    """Whether lines are taken on."""

  def model(self) -> Model:
    """Returns the description of the model in use."""

  def measure(self, metrics: Metrics) -> None:
    """Sets the measurements that change by themselves."""


class Dispatcher:
  """Hands lines to the service of their direction.

  Attributes:
    services: services of each direction; one at least.
    limits: limits of a request.
  """

  def __init__(
    self, services: Mapping[Direction, Service], limits: ServiceLimits
  ) -> None:
    self.services = services
    self.limits = limits

  def choose(self, source: str | None, target: str | None) -> Direction:
    """Returns the direction that is meant; None is any language.

    Raises:
      HTTPException: 422, if there is none, or more than one.
    """
    try:
      return choose_direction(self.services, source, target)
    except InputError as error:
      raise HTTPException(422, str(error)) from None

  def check_lines(self, lines: list[str]) -> None:
    """Refuses too many lines, and one that is too long.

    Raises:
      HTTPException: 413 or 422.
    """
    if len(lines) > self.limits.lines:
      raise HTTPException(
        413, f"{len(lines)} lines; a request may have {self.limits.lines}"
      )
    for number, line in enumerate(lines, start=1):
      check_text(f"line {number}", line, self.limits.line_characters)

  async def translate(
    self,
    direction: Direction,
    asked: TranslationRequest,
    request: fastapi.Request,
  ) -> Translated:
    """Translates lines, for as long as anyone wants them.

    Args:
      direction: direction of one of the services.
      asked: the lines.
      request: request of the client that waits.

    Raises:
      HTTPException: if they are refused, or take too long.
    """
    service = self.services[direction]
    work = asyncio.ensure_future(service.translate(asked))
    gone = asyncio.ensure_future(_disconnection(request))
    seconds = self.limits.seconds
    try:
      await asyncio.wait(
        {work, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
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
        413,
        f"the request has {error}, the most that may wait "
        "(--max_queued_tokens): send fewer lines",
      ) from None
    except QueueFullError:
      raise HTTPException(
        429, "too much is waiting; try again", _LATER
      ) from None
    except ClosedError:
      raise HTTPException(503, "the service is ending", _LATER) from None
    except InputError as error:
      raise HTTPException(413, str(error)) from None
    finally:
      work.cancel()
      gone.cancel()


def check_text(name: str, text: str, most: int) -> None:
  """Refuses a text that is too long.

  Raises:
    HTTPException: 422.
  """
  if len(text) > most:
    raise HTTPException(
      422, f"{name} has {len(text)} characters; it may have {most}"
    )


async def _disconnection(request: fastapi.Request) -> None:
  """Returns when the client has gone."""
  while (await request.receive())["type"] != "http.disconnect":
    pass
