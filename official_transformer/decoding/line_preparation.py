"""Lines as they are decoded: stripped, cut where they are long, as tokens."""

from __future__ import annotations

import dataclasses

from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.long_lines import Piece, cut_line
from official_transformer.model_params import EOS_ID


@dataclasses.dataclass(frozen=True)
class PreparedLine:
  """A line as it is decoded.

  Attributes:
    pieces: none, if it is blank; more than one, if it was cut.
    ids: of each piece, ending in EOS.
  """

  pieces: list[Piece]
  ids: list[list[int]]


@dataclasses.dataclass(frozen=True)
class LinePreparer:
  """Cuts lines into pieces and tokens.

  Attributes:
    tokenizer: of the source.
    max_length: most tokens of a piece, EOS included; None cuts no line.
  """

  tokenizer: Tokenizer
  max_length: int | None

  def prepare(self, line: str) -> PreparedLine:
    """Returns a line as it is decoded."""
    line = line.strip()
    if not line:
      return PreparedLine([], [])
    encode = self.tokenizer.encode
    ids = encode(line, add_eos=True)
    pieces, encoded = [Piece(line, "")], [ids]
    if self.max_length is not None and len(ids) > self.max_length:
      pieces = cut_line(line, self._length, self.max_length)
      encoded = [encode(p.text, add_eos=True) for p in pieces]
    kept, joint = [], ""
    for piece, ids in zip(pieces, encoded, strict=True):
      joint = max(joint, piece.joint)
      # Of characters that the tokenizer drops there is nothing to translate.
      if ids != [EOS_ID]:
        kept.append((Piece(piece.text, joint), ids))
        joint = ""
    return PreparedLine([piece for piece, _ in kept], [ids for _, ids in kept])

  def _length(self, text: str) -> int:
    return len(self.tokenizer.encode(text, add_eos=True))
