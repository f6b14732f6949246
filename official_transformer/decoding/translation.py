"""Translations of lines, joined where a line was cut."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

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
  PreparedRun,
)
from official_transformer.decoding.long_lines import Piece
from official_transformer.decoding.markup import put_back
from official_transformer.text.letter_case import LetterCase
from official_transformer.text.scripts import is_without_blanks
from official_transformer.text.sentences import are_set_apart, ends_a_sentence
from official_transformer.text.words import Span, words_of


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  """One translation of a line.

  Attributes:
    text: never holds a line feed.
    score: normalised by length if `finished`, else the log-probability; the
      sum over its pieces, if the line was cut.
    tokens: the pieces of the vocabulary that it is made of.
    finished: whether the model ended it with EOS, below its limit.
    alignment: with the source's words, if it was asked for.
    utility: how like the other hypotheses it is, 0 to 100, if it was chosen by
      that; the mean over its pieces, if the line was cut.
    has_unknown: whether a token is the unknown token.
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
  """The translation of one line.

  Attributes:
    hypotheses: one or more, best first. A blank line, which is not decoded,
      has one without text and with score 0.
    pieces: how many the line was cut into; 0 for a blank line.
    unmet: required phrases and the prefix that the best hypothesis lacks, and
      forbidden phrases that it contains.
    is_recased: whether a piece in capitals or title case was translated as a
      sentence.
  """

  hypotheses: list[Hypothesis]
  pieces: int
  unmet: tuple[str, ...] = ()
  is_recased: bool = False

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
    """Whether the model ended the best hypothesis with EOS."""
    return self.hypotheses[0].finished


# Where the tokens of a hypothesis are in its text, by the source's place in the
# batch and the number of the hypothesis.
SpansOfTokens = Mapping[tuple[int, int], Sequence[Span]]
BLANK = Translation([Hypothesis("", 0.0, [], True)], 0)
ALIGNED_BLANK = Translation(
  [Hypothesis("", 0.0, [], True, Alignment([], [], []))], 0
)


def join_pieces(
  line: PreparedLine,
  pieces: list[list[Hypothesis]],
  with_alignment: bool = False,
) -> Translation:
  """Joins the translations of a line's pieces; blanks around it come back.

  Args:
    line: as it was cut.
    pieces: hypotheses of each piece. The n-th hypothesis of the line joins the
      n-th of each piece, or the last of a piece that has fewer.
    with_alignment: whether alignments are returned; a blank line has them, too.
  """
  if line.runs:
    return _with_markup(line, pieces)
  if pieces:
    found = _joined(line, pieces) if len(pieces) > 1 else pieces[0]
  else:
    found = (ALIGNED_BLANK if with_alignment else BLANK).hypotheses
  if not with_alignment:
    found = [dataclasses.replace(h, alignment=None) for h in found]
  unmet = line.unmet_by(found[0].text)
  before, behind = line.margins
  if before or behind:
    found = [
      dataclasses.replace(h, text=before + h.text + behind) for h in found
    ]
  return Translation(found, len(pieces), unmet, _is_recased(line))


def _is_recased(line: PreparedLine) -> bool:
  return any(piece.case for piece in line.pieces)


def _with_markup(
  line: PreparedLine, pieces: list[list[Hypothesis]]
) -> Translation:
  """Joins the translations of a line's runs, and puts markup back.

  A line with markup has no alignment: the alignments of its runs count the
  words of text without markup.
  """
  rest = iter(pieces)
  found = [
    part
    if isinstance(part, str)
    else _translated_run(part, list(itertools.islice(rest, len(part.line.ids))))
    for part in line.runs
  ]
  runs = [part for part in found if not isinstance(part, str)]
  number = max((len(run.hypotheses) for run in runs), default=1)
  hypotheses = []
  for n in range(number):
    texts = [
      part
      if isinstance(part, str)
      else part.hypotheses[min(n, len(part.hypotheses) - 1)].text
      for part in found
    ]
    parts = [r.hypotheses[min(n, len(r.hypotheses) - 1)] for r in runs]
    hypotheses.append(_together("".join(texts), parts))
  unmet = dict.fromkeys(name for run in runs for name in run.unmet)
  return Translation(hypotheses, len(pieces), tuple(unmet), _is_recased(line))


def _translated_run(
  prepared: PreparedRun, pieces: list[list[Hypothesis]]
) -> Translation:
  """Joins the translation of one run, and puts its markup back."""
  found = join_pieces(prepared.line, pieces, with_alignment=True)
  hypotheses = [
    dataclasses.replace(
      hypothesis,
      text=put_back(
        prepared.run,
        hypothesis.text,
        hypothesis.alignment or Alignment([], [], []),
      ),
    )
    for hypothesis in found.hypotheses
  ]
  return dataclasses.replace(found, hypotheses=hypotheses)


def _together(text: str, parts: Sequence[Hypothesis]) -> Hypothesis:
  """Returns the hypothesis of a line whose parts have these."""
  return Hypothesis(
    text=text,
    score=sum(part.score for part in parts),
    tokens=[token for part in parts for token in part.tokens],
    finished=all(part.finished for part in parts),
    utility=_mean_utility(parts),
    has_unknown=any(part.has_unknown for part in parts),
  )


def _joined(
  line: PreparedLine, pieces: list[list[Hypothesis]]
) -> list[Hypothesis]:
  """Returns the hypotheses of a line that was cut, as of `join_pieces`."""
  hypotheses = []
  for n in range(max(map(len, pieces))):
    parts = [found[min(n, len(found) - 1)] for found in pieces]
    text, separators = parts[0].text, []
    for (before, piece), part in zip(
      itertools.pairwise(line.pieces), parts[1:], strict=True
    ):
      between = _joint(before.text, piece, text, part.text)
      text += between + part.text
      separators.append(Separator(piece.joint, between))
    alignment = _join_alignments(parts, separators)
    hypotheses.append(
      dataclasses.replace(_together(text, parts), alignment=alignment)
    )
  return hypotheses


# A translation is one line, whatever a program's line has in it.
_LINE_ENDS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def _joint(source: str, piece: Piece, left: str, right: str) -> str:
  """Returns the text between the translations of two pieces of a line.

  It is the source's: tabs, or several blanks. If only one of source and
  translation has blanks between sentences or words, it is chosen by the
  translation's script.

  Args:
    source: the first piece.
    piece: the second piece, with the text before it.
    left: the translation up to the first piece's end.
    right: text of the second piece.
  """
  joint = _LINE_ENDS.sub(" ", piece.joint)
  if joint.strip(" ") or not (left and right):
    return joint
  if not are_set_apart(left, right):
    return ""
  if joint:
    return joint
  # A word or an address that was cut gets no blank at the cut.
  was_apart = (
    is_without_blanks(source[-1])
    or is_without_blanks(piece.text[0])
    or ends_a_sentence(source)
  )
  return " " if was_apart else ""


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
  spans: SpansOfTokens,
) -> list[TranslatedPiece]:
  """Returns all hypotheses of a batch in a row, for alignment.

  Args:
    batch: the sources.
    found: hypotheses of each, as ids.
    hypotheses: the same as text.
    spans: places of tokens in hypotheses whose text is not their decoded
      tokens.
  """
  return [
    TranslatedPiece(
      piece.text,
      piece.ids,
      hypothesis.text,
      found[place][n].ids,
      spans.get((place, n)),
    )
    for place, (piece, translated) in enumerate(
      zip(batch, hypotheses, strict=True)
    )
    for n, hypothesis in enumerate(translated)
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


def with_case(
  piece: PieceToTranslate, hypotheses: Sequence[Hypothesis]
) -> list[Hypothesis]:
  """Returns hypotheses in the letter case of their source.

  Of hypotheses that differ in case only, the best one is returned; samples are
  all returned.
  """
  if piece.case is None:
    return list(hypotheses)
  found = []
  for hypothesis in hypotheses:
    text, alignment = piece.case.apply(hypothesis.text), hypothesis.alignment
    if alignment:
      alignment = dataclasses.replace(
        alignment,
        source_words=_cased(piece.text, alignment.source_words, piece.case),
        target_words=_cased(
          hypothesis.text, alignment.target_words, piece.case
        ),
      )
    found.append(
      dataclasses.replace(hypothesis, text=text, alignment=alignment)
    )
  if piece.search.sampling:
    return found
  by_text: dict[str, Hypothesis] = {}
  for hypothesis in found:
    by_text.setdefault(hypothesis.text, hypothesis)
  return list(by_text.values())


def _cased(text: str, words: list[str], case: LetterCase) -> list[str]:
  """Returns the words of a text as they are in it in another case."""
  cased = case.apply(text)
  found = [span.of(cased) for span in words_of(cased)]
  # A tokenizer's form may have changed the text.
  return found if len(found) == len(words) else [case.apply(w) for w in words]
