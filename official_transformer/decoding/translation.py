"""What becomes of a line: its hypotheses, joined where it was cut."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from official_transformer.decoding.alignment import (
  Alignment,
  Separator,
  TranslatedPiece,
  join_alignments,
)
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import (
  PieceToTranslate,
  PreparedLine,
)


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  """One translation of a line.

  Attributes:
    text: never holds a line feed.
    score: normalised by length if `finished`, else the log-probability; the
      sum over its pieces, if the line was cut.
    tokens: the pieces of the vocabulary that it is made of.
    finished: whether the model ended it by itself, below its limit.
    alignment: with the source's words, if it was asked for.
    utility: how like the other hypotheses it is, 0 to 100, if it was chosen by
      that; the mean over its pieces, if the line was cut.
    has_unknown: whether a token stands for something that the vocabulary lacks.
  """

  text: str
  score: float
  tokens: list[str]
  finished: bool
  alignment: Alignment | None = None
  utility: float | None = None
  has_unknown: bool = False


@dataclasses.dataclass(frozen=True)
class Translation:
  """What became of one line.

  Attributes:
    hypotheses: one or more, best first. A blank line, which is not decoded,
      has one without text and with score 0.
    pieces: how many the line was cut into; 0 for a blank line.
    unmet: the phrases and the prefix that the best hypothesis lacks, and those
      that it has and should not.
  """

  hypotheses: list[Hypothesis]
  pieces: int
  unmet: tuple[str, ...] = ()

  @property
  def text(self) -> str:
    """The best hypothesis' text."""
    return self.hypotheses[0].text

  @property
  def score(self) -> float:
    """The best hypothesis' score."""
    return self.hypotheses[0].score

  @property
  def finished(self) -> bool:
    """Whether the model ended the best hypothesis by itself."""
    return self.hypotheses[0].finished


FIRST_EAST_ASIAN = "\u2e80"
BLANK = Translation([Hypothesis("", 0.0, [], True)], 0)
ALIGNED_BLANK = Translation(
  [Hypothesis("", 0.0, [], True, Alignment([], [], []))], 0
)


def join_pieces(
  line: PreparedLine,
  pieces: list[list[Hypothesis]],
  with_alignment: bool = False,
) -> Translation:
  """Joins the translations of a line's pieces.

  Args:
    line: as it was cut.
    pieces: each one's hypotheses. The n-th of the line is made of the n-th of
      each piece, or of its last if it has fewer.
    with_alignment: whether a blank line has one, too.
  """
  if len(pieces) == 1:
    return Translation(pieces[0], 1, line.unmet_by(pieces[0][0].text))
  if not pieces:
    blank = ALIGNED_BLANK if with_alignment else BLANK
    return dataclasses.replace(blank, unmet=line.unmet_by(""))
  joints = [piece.joint for piece in line.pieces][1:]
  hypotheses = []
  for n in range(max(map(len, pieces))):
    parts = [found[min(n, len(found) - 1)] for found in pieces]
    text, separators = parts[0].text, []
    for joint, part in zip(joints, parts[1:], strict=True):
      between = _joint(text, joint, part.text)
      text += between + part.text
      separators.append(Separator(joint, between))
    hypotheses.append(
      Hypothesis(
        text=text,
        score=sum(part.score for part in parts),
        tokens=[token for part in parts for token in part.tokens],
        finished=all(part.finished for part in parts),
        alignment=_join_alignments(parts, separators),
        utility=_mean_utility(parts),
        has_unknown=any(part.has_unknown for part in parts),
      )
    )
  unmet = line.unmet_by(hypotheses[0].text)
  return Translation(hypotheses, len(pieces), unmet)


def _joint(left: str, joint: str, right: str) -> str:
  """Returns what stands between two pieces' translations.

  It is what stood in the source; but where that was nothing, as in scripts that
  write no spaces, a sentence's end and a letter are still set apart.
  """
  apart = left[-1:] in tuple(".!?,;:") and right[:1].isalnum()
  return " " if apart and right[:1] < FIRST_EAST_ASIAN else joint


def _join_alignments(
  parts: Sequence[Hypothesis], separators: Sequence[Separator]
) -> Alignment | None:
  found = [part.alignment for part in parts if part.alignment is not None]
  return join_alignments(found, separators) if found else None


def _mean_utility(parts: Sequence[Hypothesis]) -> float | None:
  found = [part.utility for part in parts if part.utility is not None]
  return sum(found) / len(found) if found else None


def translated_pieces(
  batch: Sequence[PieceToTranslate],
  found: Sequence[Sequence[FoundSequence]],
  hypotheses: Sequence[Sequence[Hypothesis]],
) -> list[TranslatedPiece]:
  """Returns what is to be aligned of a batch: all hypotheses in a row.

  Args:
    batch: the sources.
    found: of each, its hypotheses as ids.
    hypotheses: the same as text.
  """
  return [
    TranslatedPiece(piece.text, piece.ids, hypothesis.text, sequence.ids)
    for piece, sequences, translated in zip(
      batch, found, hypotheses, strict=True
    )
    for sequence, hypothesis in zip(sequences, translated, strict=True)
  ]


def with_alignments(
  hypotheses: Sequence[Sequence[Hypothesis]], alignments: Iterable[Alignment]
) -> list[list[Hypothesis]]:
  """Returns hypotheses with the alignments of `translated_pieces`."""
  aligned = iter(alignments)
  return [
    [dataclasses.replace(h, alignment=next(aligned)) for h in sentence]
    for sentence in hypotheses
  ]
