"""Lines as they are decoded: stripped, cut where they are long, as tokens."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

from official_transformer.data.vocabulary_files import Tokenizers
from official_transformer.decoding.long_lines import Piece, cut_line
from official_transformer.decoding.phrases import (
  NO_CONSTRAINTS,
  DecodingConstraints,
  LineRequest,
  as_written,
  remembered,
)
from official_transformer.model_params import EOS_ID


class PieceToTranslate(NamedTuple):
  """A line, or a part of one, that is translated by itself.

  Attributes:
    text: of it.
    ids: of it, ending in EOS.
    constraints: of its translation.
  """

  text: str
  ids: list[int]
  constraints: DecodingConstraints


@dataclasses.dataclass(frozen=True)
class PreparedLine:
  """A line as it is decoded.

  Attributes:
    pieces: none, if it is blank; more than one, if it was cut.
    ids: of each piece, ending in EOS.
    constraints: of its translation; with a prefix or something required, it is
      never cut.
    written: a phrase to how a translation would hold it.
  """

  pieces: list[Piece]
  ids: list[list[int]]
  constraints: DecodingConstraints = NO_CONSTRAINTS
  written: Callable[[str], str] = str

  def unmet_by(self, text: str) -> tuple[str, ...]:
    """Returns which constraints a translation does not meet."""
    if self.constraints == NO_CONSTRAINTS:
      return ()
    return self.constraints.unmet_by(text, self.written)

  def to_translate(self) -> list[PieceToTranslate]:
    """Returns what is searched for, piece by piece."""
    return [
      PieceToTranslate(piece.text, ids, self.constraints)
      for piece, ids in zip(self.pieces, self.ids, strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class LinePreparer:
  """Cuts lines into pieces and tokens.

  Attributes:
    tokenizers: of source and target.
    max_length: most tokens of a piece, EOS included; None cuts no line.
    forbidden: phrases that no line's translation has.
  """

  tokenizers: Tokenizers
  max_length: int | None
  forbidden: tuple[str, ...] = ()

  def prepare(self, request: str | LineRequest) -> PreparedLine:
    """Returns a line as it is decoded."""
    line, ids, constraints = self.whole(request)
    if not line:
      return self._prepared([], [], constraints)
    encode = self.tokenizers.source.encode
    pieces, encoded = [Piece(line, "")], [ids]
    longest = None if constraints.is_of_whole else self.max_length
    if longest is not None and len(ids) > longest:
      pieces = cut_line(line, self._length, longest)
      encoded = [encode(p.text, add_eos=True) for p in pieces]
    kept, joint = [], ""
    for piece, ids in zip(pieces, encoded, strict=True):
      joint = max(joint, piece.joint)
      # Of characters that the tokenizer drops there is nothing to translate.
      if ids != [EOS_ID]:
        kept.append((Piece(piece.text, joint), ids))
        joint = ""
    return self._prepared(
      [piece for piece, _ in kept], [ids for _, ids in kept], constraints
    )

  def whole(self, request: str | LineRequest) -> PieceToTranslate:
    """Returns a line in one piece, however long it is."""
    request = LineRequest.of(request)
    line, constraints = request.text.strip(), request.constraints
    if self.forbidden:
      constraints = dataclasses.replace(
        constraints, forbidden=(*self.forbidden, *constraints.forbidden)
      )
    ids = self.tokenizers.source.encode(line, add_eos=True)
    return PieceToTranslate(line, ids, constraints)

  def _prepared(
    self,
    pieces: list[Piece],
    ids: list[list[int]],
    constraints: DecodingConstraints,
  ) -> PreparedLine:
    return PreparedLine(pieces, ids, constraints, self._written)

  @functools.cached_property
  def _written(self) -> Callable[[str], str]:
    return remembered(as_written, self.tokenizers.target)

  def _length(self, text: str) -> int:
    return len(self.tokenizers.source.encode(text, add_eos=True))
