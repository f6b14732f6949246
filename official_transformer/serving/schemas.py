"""Requests to the service and its answers, as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from official_transformer.decoding.output import OutputFields
from official_transformer.decoding.phrases import DecodingConstraints
from official_transformer.decoding.requests import (
  RequestError,
  TranslationRequest,
)
from official_transformer.errors import InputError
from official_transformer.search.options import (
  Sampling,
  SamplingRule,
  SearchOptions,
)


class Model(pydantic.BaseModel):
  """The model in use."""

  checkpoint: str = pydantic.Field(examples=["step 100000"])
  step: int
  engine: str = pydantic.Field(examples=["tensorflow"])
  beam_size: int
  max_length: int = pydantic.Field(
    description="Sentences of more tokens are cut, and their parts joined."
  )


class Languages(pydantic.BaseModel):
  """A direction, as codes of languages."""

  source: str = pydantic.Field(examples=["en"])
  target: str = pydantic.Field(examples=["de"])


class Ready(Model):
  """The model in use, the first of several, and all directions."""

  directions: list[Languages]


def _check_strings(value: Any) -> Any:
  """Refuses a list at its first element that is no text, not at each."""
  for element in value if isinstance(value, list) else ():
    if not isinstance(element, str):
      raise ValueError("every element must be a string")
    _check_unicode(element)
  return value


def _check_unicode(text: str) -> None:
  """Refuses a string that is not Unicode text."""
  try:
    text.encode("utf-8")
  except UnicodeEncodeError:
    raise ValueError(
      "it has half of a surrogate pair in it, which is no text"
    ) from None


def _check_lists(value: Any) -> Any:
  """Refuses a list at its first element that is no list of strings."""
  if isinstance(value, list):
    for element in value:
      if not isinstance(element, list):
        raise ValueError("every element must be a list of strings")
      _check_strings(element)
  return value


def as_text(message: str) -> str:
  """Returns a message that can be encoded as UTF-8."""
  return message.encode("utf-8", "replace").decode("utf-8")


def check_texts(value: Any) -> Any:
  """Refuses values that are neither a text nor a list of texts."""
  texts = value if isinstance(value, list) else [value]
  for text in texts:
    if not isinstance(text, str):
      raise ValueError("it is no string, and no list of strings")
    _check_unicode(text)
  return value


_Strings = Annotated[list[str], pydantic.BeforeValidator(_check_strings)]
_Lists = Annotated[list[list[str]], pydantic.BeforeValidator(_check_lists)]


class Guidance(pydantic.BaseModel):
  """Options that guide the search, under the names of the flags."""

  prefixes: _Strings = pydantic.Field(
    [], description="What each line's translation begins with."
  )
  required_phrases: _Lists = pydantic.Field(
    [],
    description="Phrases that each line's translation must contain; a missing "
    "one is reported in unmet.",
    examples=[[["Hund"]]],
  )
  forbidden_phrases: _Strings = pydantic.Field(
    [],
    description="Phrases that translations must not contain as whole words. "
    "One that remains is reported as unmet.",
  )
  no_repeat_ngram_size: int = 0
  repetition_penalty: float = 1.0
  coverage_penalty: float = 0.0
  min_length: int = 0
  sample: bool = pydantic.Field(
    False,
    description="Draw n_best translations, or as many as the beam has "
    "hypotheses to choose from by mbr, instead of searching for the best.",
  )
  temperature: float = 1.0
  top_k: int = 0
  top_p: float = 1.0
  sample_seed: int = pydantic.Field(0, ge=0)
  mbr: bool = pydantic.Field(
    False,
    description="Choose the hypothesis that is most like the others by chrF.",
  )

  def search_options(self, n_best: int) -> SearchOptions:
    """Returns the same, as the search takes it."""
    sampling = None
    if self.sample:
      rule = SamplingRule(self.temperature, self.top_k, self.top_p)
      number = None if self.mbr else n_best
      sampling = Sampling(rule, self.sample_seed, number)
    return SearchOptions(
      self.no_repeat_ngram_size,
      self.repetition_penalty,
      self.min_length,
      self.coverage_penalty,
      tuple(self.forbidden_phrases),
      sampling,
      self.mbr,
    )

  def constraints(self, lines: int) -> tuple[DecodingConstraints, ...]:
    """Returns the constraints of each line."""
    for name in ("prefixes", "required_phrases"):
      number = len(getattr(self, name))
      if number not in (0, lines):
        raise RequestError(
          f"{name}: {number} for {lines} lines; give one for each line"
        )
    if not self.prefixes and not self.required_phrases:
      return ()
    return tuple(
      DecodingConstraints(prefix.strip(), tuple(phrases))
      for prefix, phrases in zip(
        self.prefixes or [""] * lines,
        self.required_phrases or [[]] * lines,
        strict=True,
      )
    )


class Question(Guidance):
  """Text to translate, and options."""

  model_config = pydantic.ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False
  )

  text: Annotated[str | list[str], pydantic.BeforeValidator(check_texts)] = (
    pydantic.Field(
      description="One line, or several.", examples=[["A dog runs."]]
    )
  )
  source: str | None = pydantic.Field(
    None,
    description="The language of the text, if the service has models of "
    "several directions.",
    examples=["en"],
  )
  target: str | None = pydantic.Field(
    None, description="The language of translations.", examples=["de"]
  )
  markup: Literal["none", "html"] = pydantic.Field(
    "none",
    description="html: tags come back where they belong, entities are text.",
  )
  n_best: int = pydantic.Field(
    1, ge=1, description="Hypotheses of each line, at most the beam's."
  )
  scores: bool = pydantic.Field(False, description="Return scores and tokens.")
  alignments: bool = pydantic.Field(
    False, description="Return word alignments."
  )
  attention: bool = pydantic.Field(
    False,
    description="Return the attention of each target word to the source words.",
  )

  @property
  def output_fields(self) -> OutputFields:
    """Fields of a translation in an answer, besides its text."""
    return OutputFields(self.scores, self.alignments, self.attention)

  @property
  def lines(self) -> list[str]:
    """The text, line by line."""
    return [self.text] if isinstance(self.text, str) else self.text

  def request(self) -> TranslationRequest:
    """Returns the same, as the translator takes it.

    Raises:
      RequestError: if it contradicts itself.
    """
    lines = tuple(self.lines)
    drawing = {"temperature", "top_k", "top_p", "sample_seed"}
    idle = drawing & self.model_fields_set
    if idle and not self.sample:
      raise RequestError(f"{min(idle)}: nothing is drawn without sample")
    try:
      search = self.search_options(self.n_best)
    except InputError as error:
      raise RequestError(str(error)) from None
    return TranslationRequest(
      lines,
      self.constraints(len(lines)),
      search,
      self.n_best,
      self.alignments or self.attention,
      self.markup == "html",
    )


class _TranslationFields(pydantic.BaseModel):
  """Fields of a translation that a request asks for."""

  score: float | None = None
  tokens: list[str] | None = None
  utility: float | None = pydantic.Field(
    None, description="How like the other hypotheses it is, with mbr."
  )
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


class Hypothesis(_TranslationFields):
  """One of several translations of a line."""

  translation: str
  finished: bool


class Answered(_TranslationFields):
  """The translation of a line."""

  translation: str
  flags: list[str] = pydantic.Field(
    description="blank, split (translated in several pieces), recased "
    "(capitals or title case, translated as a sentence), unfinished, "
    "unknown (it has a token for what the vocabulary lacks), unmet."
  )
  unmet: list[str] | None = pydantic.Field(
    None,
    description="Phrases that are missing, or there although forbidden.",
  )
  hypotheses: list[Hypothesis] | None = None


class Answer(pydantic.BaseModel):
  """The translation of each line, in order."""

  translations: list[Answered]
  model: Model


class Error(pydantic.BaseModel):
  """The reason why a request failed."""

  status: int
  message: str


class Refusal(pydantic.BaseModel):
  """The body of an error's answer."""

  error: Error
