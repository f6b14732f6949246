"""Lines as they are decoded: stripped, cut where they are long, as tokens."""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from official_transformer.decoding.long_lines import (
  Piece,
  cut_line,
  cut_sentences,
)
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.phrases import (
  NO_CONSTRAINTS,
  DecodingConstraints,
  as_written,
  remembered,
)
from official_transformer.decoding.requests import (
  LineRequest,
  check_in_parts,
  is_guided,
)
from official_transformer.model_params import EOS_ID
from official_transformer.search.options import DEFAULT_SEARCH, SearchOptions
from official_transformer.text.html_text import parse_html
from official_transformer.text.letter_case import (
  LetterCase,
  as_sentence,
  case_of,
)
from official_transformer.text.markup import Run, keep_out, plain_run
from official_transformer.text.tokenizer import check_text, is_lowercase
from official_transformer.text.vocabulary_files import Tokenizers

_HTML_BLANKS = re.compile(r"[ \t\n\r\f]+")


class PieceToTranslate(NamedTuple):
  """A line, or a part of one, that is translated by itself.

  Attributes:
    text: text of the piece.
    ids: ids of the piece, ending in EOS.
    constraints: constraints of its translation.
    search: how it is searched for.
    case: letter case that its translation gets; None leaves it as it is.
  """

  text: str
  ids: list[int]
  constraints: DecodingConstraints = NO_CONSTRAINTS
  search: SearchOptions = DEFAULT_SEARCH
  case: LetterCase | None = None

  @property
  def is_guided(self) -> bool:
    """Whether constraints or options need the guided search."""
    return is_guided(self.constraints, self.search)


@dataclasses.dataclass(frozen=True)
class PreparedLine:
  """A line with its pieces, ready to be decoded.

  Attributes:
    pieces: none, if it is blank; more than one, if it was cut.
    ids: ids of each piece, ending in EOS.
    constraints: constraints of its translation; with a prefix or something
      required, it is never cut.
    search: how it is searched for; with a least length, it is never cut.
    written: a phrase to how a translation would hold it.
    margins: blanks before and behind its text, which a translation keeps; all
      before, if there is no text.
    runs: for a line with markup, the runs of its text, and the markup between
      them; `pieces` and `ids` are those of all runs.
  """

  pieces: list[Piece]
  ids: list[list[int]]
  constraints: DecodingConstraints = NO_CONSTRAINTS
  search: SearchOptions = DEFAULT_SEARCH
  written: Callable[[str], str] = str
  margins: tuple[str, str] = ("", "")
  runs: tuple[str | PreparedRun, ...] = ()

  def unmet_by(self, text: str) -> tuple[str, ...]:
    """Returns which constraints a translation does not meet."""
    if self.constraints == NO_CONSTRAINTS:
      return ()
    return self.constraints.unmet_by(text, self.written)

  def to_translate(self) -> list[PieceToTranslate]:
    """Returns the pieces to translate."""
    if self.runs:
      return [
        piece
        for run in self.runs
        if isinstance(run, PreparedRun)
        for piece in run.line.to_translate()
      ]
    return [
      PieceToTranslate(
        piece.text, ids, self.constraints, self.search, piece.case
      )
      for piece, ids in zip(self.pieces, self.ids, strict=True)
    ]


class PreparedRun(NamedTuple):
  """A run of a line's text between markup that divides it.

  Attributes:
    run: with the markup in it.
    line: its text, prepared for decoding.
  """

  run: Run
  line: PreparedLine


@dataclasses.dataclass(frozen=True)
class LinePreparer:
  """Cuts lines into pieces and tokens.

  Attributes:
    tokenizers: tokenizers of source and target.
    longest_piece: most tokens of a piece, EOS included; None cuts no line.
    search: how lines are searched for that do not say.
    split_sentences: whether each sentence is a piece.
    is_html: whether lines are HTML that do not say.
    keep: pattern of text that is copied instead of translated.
    recase: whether text in capitals or title case is translated as a sentence.
  """

  tokenizers: Tokenizers
  longest_piece: int | None
  search: SearchOptions = DEFAULT_SEARCH
  split_sentences: bool = False
  is_html: bool = False
  keep: re.Pattern[str] | None = None
  recase: bool = False

  @classmethod
  def of(
    cls, tokenizers: Tokenizers, options: DecodingOptions, longest_piece: int
  ) -> LinePreparer:
    """Returns one for a translator of these options."""
    return cls(
      tokenizers,
      longest_piece if options.split_long_lines else None,
      options.search,
      bool(options.split_sentences),
      options.is_html,
      options.keep,
      bool(options.recase) and not is_lowercase(tokenizers.target),
    )

  def prepare(self, request: str | LineRequest) -> PreparedLine:
    """Returns a line with its pieces, ready to be decoded."""
    request = LineRequest.of(request)
    if (parts := self._parts(request)) is not None:
      return self._in_runs(request, parts)
    whole = self.whole(request)
    # As the official model, which knows no sentences, has it: none.
    margins = _margins(request.text) if self.split_sentences else ("", "")
    if not whole.text:
      return self._prepared([], [], whole, margins)
    kept, joint = [], ""
    for piece, ids in self._pieces(whole):
      joint = max(joint, piece.joint, key=len)
      # Of characters that the tokenizer drops there is nothing to translate.
      if ids != [EOS_ID]:
        kept.append((piece._replace(joint=joint), ids))
        joint = ""
    return self._prepared(
      [piece for piece, _ in kept], [ids for _, ids in kept], whole, margins
    )

  def _parts(self, request: LineRequest) -> Sequence[str | Run] | None:
    """Returns the parts of a line with markup; None for a plain line."""
    if request.parts is not None:
      return request.parts
    if self.is_html if request.is_html is None else request.is_html:
      return parse_html(request.text)
    if self.keep is None or not self.keep.search(request.text):
      return None
    # Tabs also divide text that is not sentences.
    cells = re.split(r"(\t)", request.text.strip())
    before, behind = (
      _margins(request.text) if self.split_sentences else ("", "")
    )
    between = (cell if cell == "\t" else plain_run(cell) for cell in cells)
    return [before, *between, behind]

  def _in_runs(
    self, request: LineRequest, parts: Iterable[str | Run]
  ) -> PreparedLine:
    """Returns a line, of whose parts the runs are translated, as decoded."""
    check_in_parts(request.constraints, request.search or self.search)
    of_text = dataclasses.replace(self, is_html=False, keep=None)
    found: list[str | PreparedRun] = []
    for part in parts:
      run = keep_out(part, self.keep) if isinstance(part, Run) else None
      if run is None or not run.has_text:
        found.append(part if isinstance(part, str) else part.markup)
        continue
      # Line feeds and several blanks are one blank in HTML.
      text = _HTML_BLANKS.sub(" ", run.text) if run.is_html else run.text
      line = of_text.prepare(
        dataclasses.replace(request, text=text, is_html=False, parts=None)
      )
      found.append(PreparedRun(run, line))
    lines = [part.line for part in found if isinstance(part, PreparedRun)]
    return PreparedLine(
      [piece for line in lines for piece in line.pieces],
      [ids for line in lines for ids in line.ids],
      runs=tuple(found),
    )

  def _pieces(
    self, whole: PieceToTranslate
  ) -> Iterator[tuple[Piece, list[int]]]:
    """Yields the pieces that a line is cut into, as text and as tokens."""
    pieces = [Piece(whole.text, "")]
    may_cut = not (whole.constraints.forbids_cutting or whole.search.min_length)
    if may_cut and self.split_sentences:
      pieces = cut_sentences(whole.text)
    encode = self.tokenizers.source.encode
    # A phrase is of one letter case, and would not be found in the other.
    if self.recase and whole.constraints == NO_CONSTRAINTS:
      pieces = _recased(whole.text, pieces)
    for piece in pieces:
      ids = whole.ids
      if piece.text != whole.text:
        ids = encode(piece.text, add_eos=True)
      if (
        not may_cut
        or self.longest_piece is None
        or len(ids) <= self.longest_piece
      ):
        yield piece, ids
        continue
      first, *others = cut_line(piece.text, self._length, self.longest_piece)
      for part in (first._replace(joint=piece.joint), *others):
        yield (
          part._replace(case=piece.case),
          encode(part.text, add_eos=True),
        )

  def whole(self, request: str | LineRequest) -> PieceToTranslate:
    """Returns a line in one piece, however long it is."""
    request = LineRequest.of(request)
    line, constraints = request.text.strip(), request.constraints
    search = request.search or self.search
    if search.forbidden:
      constraints = dataclasses.replace(
        constraints, forbidden=(*search.forbidden, *constraints.forbidden)
      )
    check_text(line)
    ids = self.tokenizers.source.encode(line, add_eos=True)
    return PieceToTranslate(line, ids, constraints, search)

  def _prepared(
    self,
    pieces: list[Piece],
    ids: list[list[int]],
    whole: PieceToTranslate,
    margins: tuple[str, str],
  ) -> PreparedLine:
    return PreparedLine(
      pieces, ids, whole.constraints, whole.search, self._written, margins
    )

  @functools.cached_property
  def _written(self) -> Callable[[str], str]:
    return remembered(as_written, self.tokenizers.target)

  def _length(self, text: str) -> int:
    return len(self.tokenizers.source.encode(text, add_eos=True))


def _recased(line: str, pieces: Sequence[Piece]) -> list[Piece]:
  """Returns pieces that are in capitals or title case as sentences.

  A line in capitals has only such pieces, even if one by itself may be an
  abbreviation. The cells of a table are not one line.
  """
  is_upper = (
    len(pieces) > 1
    and "\t" not in line
    and case_of(line) is LetterCase.CAPITALS
  )
  cases = [
    LetterCase.CAPITALS if is_upper else case_of(piece.text) for piece in pieces
  ]
  return [
    piece._replace(text=as_sentence(piece.text), case=case) if case else piece
    for piece, case in zip(pieces, cases, strict=True)
  ]


def _margins(line: str) -> tuple[str, str]:
  """Returns tabs and spaces at a line's ends; nothing that may end a line."""
  start = len(line) - len(line.lstrip())
  end = max(len(line.rstrip()), start)
  return _spaces(line[:start]), _spaces(line[end:])


def _spaces(text: str) -> str:
  return "".join(
    c for c in text if c == "\t" or unicodedata.category(c) == "Zs"
  )
