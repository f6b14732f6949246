"""LibreTranslate's wire format, so that its clients can be used.

It is that of https://docs.libretranslate.com: `/translate` with `q`, `/detect`,
`/languages`, `/frontend/settings`, and errors as `{"error": "..."}`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import fastapi
import pydantic
from fastapi import responses
from starlette.exceptions import HTTPException

from official_transformer.decoding.requests import TranslationRequest
from official_transformer.decoding.translation import Translation
from official_transformer.search.options import DEFAULT_SEARCH
from official_transformer.serving.directions import UNNAMED, Direction
from official_transformer.serving.dispatcher import Dispatcher, check_text
from official_transformer.serving.languages import (
  DetectedLanguage,
  LanguageDetector,
  name_of,
)

_AUTO = "auto"
_LINE_END = re.compile(r"(\r\n|\r|\n)")
# Of our statuses, those for which it has others.
_STATUSES = {401: 403, 413: 400, 415: 400, 422: 400}
_Text = Annotated[str, pydantic.Field(min_length=1)]


class DetectQuestion(pydantic.BaseModel):
  """What is asked of `/detect`; what else clients send is ignored."""

  q: _Text = pydantic.Field(description="Text of one language.")
  api_key: str = ""


class LibreQuestion(pydantic.BaseModel):
  """What is asked of `/translate`; what else clients send is ignored."""

  q: _Text | list[str] = pydantic.Field(
    description="Text of any number of lines, or several such.",
    examples=["A dog runs."],
  )
  source: str = pydantic.Field(description="A language's code, or auto.")
  target: str
  format: Literal["text", "html"] = "text"
  alternatives: int = pydantic.Field(
    0, ge=0, description="How many other translations; at most the beam's."
  )
  api_key: str = ""

  @property
  def texts(self) -> list[str]:
    """What is to be translated."""
    return [self.q] if isinstance(self.q, str) else self.q


class LibreAnswer(pydantic.BaseModel):
  """Translations; of several texts, each is a list with one for each."""

  translatedText: str | list[str]  # noqa: N815
  alternatives: list[Any] | None = None
  detectedLanguage: Any = None  # noqa: N815


def refusal(
  status: int, message: str, headers: dict[str, str] | None = None
) -> responses.JSONResponse:
  """Returns an error as this format has it."""
  status = _STATUSES.get(status, status)
  return responses.JSONResponse({"error": message}, status, headers)


class LibreTranslate:
  """Answers in this format."""

  def __init__(self, dispatcher: Dispatcher, needs_key: bool) -> None:
    self._dispatcher = dispatcher
    self._needs_key = needs_key
    self._directions = [d for d in dispatcher.services if d != UNNAMED]
    self._sources = list(dict.fromkeys(d.source for d in self._directions))
    self._detector = LanguageDetector(self._sources)

  def languages(self) -> list[dict[str, Any]]:
    """Returns the languages that are translated, each with its targets."""
    return [
      {
        "code": source,
        "name": name_of(source),
        "targets": [d.target for d in self._directions if d.source == source],
      }
      for source in self._sources
    ]

  def settings(self) -> dict[str, Any]:
    """Returns what a page needs to know."""
    source, target = self._directions[0] if self._directions else UNNAMED
    return {
      "apiKeys": self._needs_key,
      "keyRequired": self._needs_key,
      "charLimit": self._dispatcher.limits.line_characters,
      "frontendTimeout": 500,
      "suggestions": False,
      "filesTranslation": False,
      "supportedFilesFormat": [],
      "language": {
        "source": {"code": source, "name": name_of(source)},
        "target": {"code": target, "name": name_of(target)},
      },
    }

  async def detect(self, text: str) -> list[DetectedLanguage]:
    """Returns the languages that a text may be in, the likeliest first.

    Raises:
      HTTPException: if nobody has named a language that the detector knows.
    """
    check_text("q", text, self._dispatcher.limits.body_bytes)
    # It reads its tables at first.
    found = await asyncio.to_thread(self._detector.detect, text)
    if not found:
      raise HTTPException(
        422,
        "this service knows no languages to detect: start it with "
        "--model_dir=en-de=DIR, say",
      )
    return found

  async def translate(
    self, question: LibreQuestion, request: fastapi.Request
  ) -> dict[str, Any]:
    """Translates one text or several.

    Args:
      question: the texts.
      request: of the client that waits.
    """
    source: str = question.source
    detected = None
    if source == _AUTO:
      detected = (await self.detect("\n".join(question.texts)))[0]
      source = detected.language
    if (
      source.lower() == question.target.lower() in map(str.lower, self._sources)
    ):
      ways = [[text] for text in question.texts]
    else:
      direction = self._dispatcher.choose(source, question.target)
      ways = await self._translate(direction, question, request)
    answer: dict[str, Any] = {"translatedText": [best for best, *_ in ways]}
    if question.alternatives:
      answer["alternatives"] = [others for _, *others in ways]
    if detected:
      answer["detectedLanguage"] = [detected._asdict()] * len(ways)
    if isinstance(question.q, str):
      answer = {name: values[0] for name, values in answer.items()}
    return answer

  async def _translate(
    self,
    direction: Direction,
    question: LibreQuestion,
    request: fastapi.Request,
  ) -> list[list[str]]:
    """Returns the translations of each text, the best first."""
    is_html = question.format == "html"
    # Text, and then by turns the end of its line and that of the next.
    parts = [
      [text] if is_html else _LINE_END.split(text) for text in question.texts
    ]
    lines = [line for part in parts for line in part[::2]]
    self._dispatcher.check_lines(lines)
    model = self._dispatcher.services[direction].model()
    asked = TranslationRequest(
      tuple(lines),
      search=DEFAULT_SEARCH,
      n_best=min(1 + question.alternatives, model.beam_size),
      is_html=is_html,
    )
    found = await self._dispatcher.translate(direction, asked, request)
    translations = iter(found.translations)
    return [
      _ways([next(translations) for _ in part[::2]], part[1::2])
      for part in parts
    ]


def _ways(lines: Sequence[Translation], ends: Sequence[str]) -> list[str]:
  """Returns the different translations of a text, the best first.

  Args:
    lines: the translations of its lines.
    ends: of the lines but the last.
  """
  most = max(len(line.hypotheses) for line in lines)
  found = {_joined([line.text for line in lines], ends): None}
  for rank in range(1, most):
    texts = [
      line.hypotheses[rank].text if rank < len(line.hypotheses) else line.text
      for line in lines
    ]
    found.setdefault(_joined(texts, ends))
  return list(found)


def _joined(lines: Sequence[str], ends: Sequence[str]) -> str:
  """Returns lines with their ends."""
  return "".join(
    line + end for line, end in zip(lines, [*ends, ""], strict=True)
  )
