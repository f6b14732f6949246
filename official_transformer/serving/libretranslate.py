"""LibreTranslate's wire format, so that its clients can be used.

The format is described at https://docs.libretranslate.com: `/translate` with
`q`, `/detect`, `/languages`, `/frontend/settings`, and errors of the form
`{"error":"..."}`.
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
from official_transformer.errors import InputError
from official_transformer.search.options import DEFAULT_SEARCH
from official_transformer.serving.directions import (
  UNNAMED,
  Direction,
  choose_direction,
)
from official_transformer.serving.dispatcher import Dispatcher
from official_transformer.serving.languages import (
  DetectedLanguage,
  LanguageDetector,
  name_of,
)
from official_transformer.serving.schemas import as_text, check_texts

# All that LibreTranslate has and this service has not under the same name.
ADDRESSES = (
  *("/detect", "/languages", "/frontend/settings"),
  *("/suggest", "/translate_file"),
)
_AUTO = "auto"
_LINE_END = re.compile(r"(\r\n|\r|\n)")
# The status of some refusals is another one there.
_STATUSES = {401: 403, 413: 400, 415: 400, 422: 400}
# Of a text, so much is looked at to detect its language.
_DETECTED_CHARACTERS = 2000
# The language of a shorter text is detected from all texts of its request.
_LONG_CHARACTERS = 40

_Texts = Annotated[str | list[str], pydantic.BeforeValidator(check_texts)]


class _Fields(pydantic.BaseModel):
  """Fields of a request; clients send others, too, and nothing for some."""

  q: _Texts = pydantic.Field(
    description="Text of any number of lines, or several such.",
    examples=["A dog runs."],
  )
  api_key: str = ""

  @pydantic.model_validator(mode="before")
  @classmethod
  def _without_empty(cls, fields: Any) -> Any:
    """Leaves out optional fields without a value."""
    if not isinstance(fields, dict):
      return fields
    needed = [n for n, f in cls.model_fields.items() if f.is_required()]
    return {
      name: value
      for name, value in fields.items()
      if name in needed or value not in (None, "")
    }

  @pydantic.field_validator("q")
  @classmethod
  def _not_empty(cls, value: str | list[str]) -> str | list[str]:
    if value == "":
      raise ValueError("it is empty")
    return value

  @property
  def texts(self) -> list[str]:
    """All texts of `q`."""
    return [self.q] if isinstance(self.q, str) else self.q


class DetectQuestion(_Fields):
  """A request to `/detect`."""


class LibreQuestion(_Fields):
  """A request to `/translate`."""

  source: str = pydantic.Field(
    min_length=1, description="A language's code, or auto.", examples=["en"]
  )
  target: str = pydantic.Field(min_length=1, examples=["de"])
  format: Literal["text", "html"] = "text"
  alternatives: int = pydantic.Field(
    0, ge=0, description="How many other translations; at most the beam's."
  )


class LibreAnswer(pydantic.BaseModel):
  """Translations; for a list of texts, each field is a list, too."""

  translatedText: str | list[str]  # noqa: N815
  alternatives: list[Any] | None = None
  detectedLanguage: Any = None  # noqa: N815


def refusal(
  status: int, message: str, headers: dict[str, str] | None = None
) -> responses.JSONResponse:
  """Returns an error as this format has it."""
  status = _STATUSES.get(status, status)
  message = as_text(message)
  return responses.JSONResponse({"error": message}, status, headers)


class LibreTranslate:
  """Answers requests in this format."""

  def __init__(self, dispatcher: Dispatcher, needs_key: bool) -> None:
    self._dispatcher = dispatcher
    self._needs_key = needs_key
    self._directions = [d for d in dispatcher.services if d != UNNAMED]
    sources = [d.source for d in self._directions]
    targets = [d.target for d in self._directions]
    self._codes = list(dict.fromkeys([*sources, *targets]))
    self._detector = LanguageDetector(dict.fromkeys(sources))

  def languages(self) -> list[dict[str, Any]]:
    """Returns all languages, each with its targets."""
    return [
      {
        "code": code,
        "name": name_of(code),
        "targets": [d.target for d in self._directions if d.source == code],
      }
      for code in self._codes
    ]

  def settings(self) -> dict[str, Any]:
    """Returns the limits of requests, and the first direction."""
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
      HTTPException: if no model's source language is known.
    """
    # The first time, it reads its tables.
    found = await asyncio.to_thread(
      self._detector.detect, text[:_DETECTED_CHARACTERS]
    )
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
      request: request of the client that waits.
    """
    self._dispatcher.check_lines(
      [line for text in question.texts for line in _lines(text)[::2]]
    )
    detected: list[DetectedLanguage] = []
    sources = [question.source] * len(question.texts)
    if question.source.lower() == _AUTO:
      detected = await self._detect_each(question)
      sources = [found.language for found in detected]
    rows_of: dict[str, list[int]] = {}
    for row, source in enumerate(sources):
      rows_of.setdefault(source, []).append(row)
    # All at once: each may take as long as a request may.
    tasks = [
      asyncio.create_task(
        self._translate(
          [question.texts[row] for row in rows], source, question, request
        )
      )
      for source, rows in rows_of.items()
    ]
    try:
      found = await asyncio.gather(*tasks)
    finally:  # If one fails, nobody waits for the others.
      for task in tasks:
        task.cancel()
    ranked: list[list[str]] = [[]] * len(question.texts)
    for rows, translations in zip(rows_of.values(), found, strict=True):
      for row, own in zip(rows, translations, strict=True):
        ranked[row] = own
    answer: dict[str, Any] = {"translatedText": [best for best, *_ in ranked]}
    if question.alternatives:
      answer["alternatives"] = [others for _, *others in ranked]
    if detected:
      answer["detectedLanguage"] = [found._asdict() for found in detected]
    if isinstance(question.q, str):
      answer = {name: values[0] for name, values in answer.items()}
    return answer

  async def _detect_each(
    self, question: LibreQuestion
  ) -> list[DetectedLanguage]:
    """Returns each text's language, preferably one with a way to the target."""
    target = question.target.lower()
    able = {
      d.source for d in self._directions if self._leads(d.source, target)
    } | {code for code in self._codes if code.lower() == target}
    joined = await self.detect("\n".join(question.texts))
    found = []
    for text in question.texts:
      is_long = len(text) > _LONG_CHARACTERS
      likely = await self.detect(text) if is_long else joined
      fitting = (one for one in likely if one.language in able)
      found.append(next(fitting, likely[0]))
    return found

  def _leads(self, source: str, target: str) -> bool:
    """Returns whether there is one way from a language to another."""
    try:
      choose_direction(self._directions, source, target)
    except InputError:
      return False
    return True

  async def _translate(
    self,
    texts: Sequence[str],
    source: str,
    question: LibreQuestion,
    request: fastapi.Request,
  ) -> list[list[str]]:
    """Returns translations of each text of one language, the best first."""
    if source.lower() == question.target.lower() in map(str.lower, self._codes):
      return [[text] for text in texts]
    direction = self._dispatcher.choose(source, question.target)
    is_html = question.format == "html"
    parts = [[text] if is_html else _lines(text) for text in texts]
    asked = self._request(parts, direction, question)
    found = await self._dispatcher.translate(direction, asked, request)
    translations = iter(found.translations)
    return [
      _ranked([next(translations) for _ in part[::2]], part[1::2])
      for part in parts
    ]

  def _request(
    self,
    parts: Sequence[Sequence[str]],
    direction: Direction,
    question: LibreQuestion,
  ) -> TranslationRequest:
    """Returns the lines of texts as the translator takes them."""
    beam_size = self._dispatcher.services[direction].model().beam_size
    return TranslationRequest(
      tuple(line for part in parts for line in part[::2]),
      search=DEFAULT_SEARCH,
      n_best=min(1 + question.alternatives, beam_size),
      is_html=question.format == "html",
    )


def _lines(text: str) -> list[str]:
  """Returns lines, and between each two the characters that end the first."""
  return _LINE_END.split(text)


def _ranked(lines: Sequence[Translation], ends: Sequence[str]) -> list[str]:
  """Returns the different translations of a text, the best first.

  Args:
    lines: the translations of its lines.
    ends: ends of the lines but the last.
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
