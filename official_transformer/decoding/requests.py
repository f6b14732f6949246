"""Requests to a translator: lines, each with its search options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from official_transformer.decoding.engines import TENSORFLOW
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.phrases import (
  NO_CONSTRAINTS,
  DecodingConstraints,
)
from official_transformer.errors import InputError
from official_transformer.model_params import (
  DEFAULT_MAX_LENGTH,
  TransformerParams,
)
from official_transformer.search.options import DEFAULT_SEARCH, SearchOptions
from official_transformer.text.markup import Run
from official_transformer.text.vocabulary_files import Tokenizers


class RequestError(InputError):
  """A request that this translator cannot meet."""


def is_guided(constraints: DecodingConstraints, search: SearchOptions) -> bool:
  """Returns whether constraints or options need the guided search."""
  return constraints != NO_CONSTRAINTS or search.changes_search


def check_in_parts(
  constraints: DecodingConstraints, search: SearchOptions
) -> None:
  """Refuses constraints of whole lines for a line with markup.

  Raises:
    RequestError: for a prefix, required phrases, or a least length.
  """
  if constraints.forbids_cutting or search.min_length:
    raise RequestError(
      "a line with markup is translated in parts, and has no prefix, required "
      "phrases or least length"
    )


@dataclasses.dataclass(frozen=True)
class LineRequest:
  """A line, and the constraints of its translation.

  Attributes:
    text: the line.
    constraints: constraints of its translation.
    search: how it is searched for; None is the translator's own way.
    is_html: whether the line is HTML; None is the translator's setting.
    parts: content of a line with markup of another kind: runs of text, and the
      markup between them.
  """

  text: str
  constraints: DecodingConstraints = NO_CONSTRAINTS
  search: SearchOptions | None = None
  is_html: bool | None = None
  parts: Sequence[str | Run] | None = None

  def __len__(self) -> int:
    return len(self.text)

  @classmethod
  def of(cls, line: str | LineRequest) -> LineRequest:
    """Returns a line as a request, which asks for nothing else."""
    return line if isinstance(line, LineRequest) else cls(line)


@dataclasses.dataclass(frozen=True)
class TranslationRequest:
  """Lines that are translated alike, and the fields of their output.

  Attributes:
    lines: to translate.
    constraints: constraints of each line's translation; empty if there are
      none.
    search: how all are searched for.
    n_best: most hypotheses of each.
    aligned: whether word alignments are returned.
    is_html: whether lines are HTML; None is the translator's setting.
  """

  lines: tuple[str, ...]
  constraints: tuple[DecodingConstraints, ...] = ()
  search: SearchOptions = DEFAULT_SEARCH
  n_best: int = 1
  aligned: bool = False
  is_html: bool | None = None

  @property
  def is_guided(self) -> bool:
    """Whether constraints or options need the guided search."""
    constraints = self.constraints or (NO_CONSTRAINTS,)
    return any(is_guided(asked, self.search) for asked in constraints)

  def line_requests(self) -> list[LineRequest]:
    """Returns the lines as requests."""
    constraints = self.constraints or (NO_CONSTRAINTS,) * len(self.lines)
    return [
      LineRequest(text, asked, self.search, self.is_html)
      for text, asked in zip(self.lines, constraints, strict=True)
    ]

  def _uncut_lines(self) -> Iterator[str]:
    """Yields the lines that must be translated whole."""
    constraints = self.constraints or (NO_CONSTRAINTS,) * len(self.lines)
    for line, asked in zip(self.lines, constraints, strict=True):
      if asked.forbids_cutting or self.search.min_length:
        yield line

  def check(
    self,
    options: DecodingOptions,
    params: TransformerParams,
    tokenizers: Tokenizers,
    longest_piece: int,
  ) -> None:
    """Raises a `RequestError` if a translator cannot meet the request.

    Args:
      options: options of the translator.
      params: hyper-parameters of the first model.
      tokenizers: the translator's.
      longest_piece: most tokens of a line that is translated in one piece. A
        line with a prefix or a required phrase is never cut, and may have
        `DEFAULT_MAX_LENGTH`.
    """
    try:
      if self.is_guided:
        options.check_guided()
      options.check_length(self.search, params)
    except InputError as error:
      raise RequestError(str(error)) from None
    longest = max(longest_piece, DEFAULT_MAX_LENGTH)
    most = longest + params.extra_decode_length
    for name in ("min_length", "no_repeat_ngram_size"):
      if getattr(self.search, name) > most:
        raise RequestError(f"{name}: at most {most} tokens are written")
    for asked in self.constraints:
      prefix = tokenizers.target.encode(asked.prefix) if asked.prefix else ()
      if len(prefix) > longest:
        raise RequestError(f"prefixes: one has more than {longest} tokens")
    for line in self._uncut_lines():
      if len(tokenizers.source.encode(line.strip(), add_eos=True)) > longest:
        raise RequestError(
          f"text: with a prefix, a required phrase or min_length, a line is "
          f"translated in one piece, and may have {longest} tokens"
        )
    number = self.search.hypotheses(params.beam_size)
    if max(number, self.n_best) > params.beam_size or self.n_best > number:
      raise RequestError(
        f"n_best: {max(number, self.n_best)}; the beam has "
        f"{min(number, params.beam_size)}"
      )
    is_html = options.is_html if self.is_html is None else self.is_html
    if (self.aligned or is_html) and options.engine.name != TENSORFLOW:
      raise RequestError(
        "alignments, attention and markup need TensorFlow's attention, but "
        f"the engine is {options.engine.name}"
      )
    if (is_html or options.keep) and self.aligned:
      raise RequestError(
        "alignments and attention are for text without markup"
        + ("; this service keeps some of it out" if options.keep else "")
      )
    if is_html:
      for constraints in self.constraints or (NO_CONSTRAINTS,):
        check_in_parts(constraints, self.search)
