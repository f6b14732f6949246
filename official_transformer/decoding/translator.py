"""Lines in, translated lines out, one for one and in order.

translator = Translator.load("my_model")
translator.translate(["A dog runs.", "Two men sit."])
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.batching import (
  BatchLimits,
  batches_by_length,
  windows,
)
from official_transformer.decoding.loading import load_model
from official_transformer.decoding.long_lines import Piece, cut_line
from official_transformer.decoding.pipeline import Promise, in_order
from official_transformer.decoding.searcher import (
  FoundSequence,
  Searcher,
  StaticShape,
)
from official_transformer.errors import InputError
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID


@dataclasses.dataclass(frozen=True)
class DecodingOptions:
  """How lines are brought to the model. It changes speed and memory.

  Only `longest_piece` and `n_best` change what comes out.

  Attributes:
    limits: how many lines are decoded at once.
    workers: batches decoded side by side.
    padded_length: with more than 0, every batch has one static shape, of lines
      padded to a multiple of so many tokens, and XLA compiles the search.
    longest_piece: tokens, EOS included, above which a line is cut at the end of
      a sentence, or None to decode lines of any length whole.
    n_best: most hypotheses returned for a line; at most the beam.
  """

  limits: BatchLimits = dataclasses.field(default_factory=BatchLimits)
  workers: int = 1
  padded_length: int = 0
  longest_piece: int | None = None
  n_best: int = 1

  def __post_init__(self) -> None:
    for name in ("workers", "n_best"):
      if getattr(self, name) < 1:
        raise InputError(f"{name} is {getattr(self, name)}, must be at least 1")
    if self.longest_piece is not None and self.longest_piece < 2:
      raise InputError(
        f"longest_piece is {self.longest_piece}, must be at least 2"
      )

  def static_shape(self) -> StaticShape | None:
    """Returns the shape of all batches, where they have one."""
    if not self.padded_length:
      return None
    rows = self.limits.size(self.padded_length)
    return StaticShape(rows, self.padded_length)

  def batch_limits(self) -> BatchLimits:
    """Returns what bounds a batch."""
    shape = self.static_shape()
    if shape is None:
      return self.limits
    return dataclasses.replace(self.limits, lines=shape.rows)


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  """One translation of a line.

  Attributes:
    text: never holds a line feed.
    score: normalised by length where `finished`, else the log-probability; the
      sum over its pieces, where the line was cut.
    tokens: the pieces of the vocabulary that it is made of.
    finished: whether the model ended it by itself, below its limit.
  """

  text: str
  score: float
  tokens: list[str]
  finished: bool


@dataclasses.dataclass(frozen=True)
class Translation:
  """What became of one line.

  Attributes:
    hypotheses: one or more, best first. A blank line, which is not decoded,
      has one without text and with score 0.
    pieces: how many the line was cut into; 0 for a blank line.
  """

  hypotheses: list[Hypothesis]
  pieces: int

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


@dataclasses.dataclass(frozen=True)
class _Line:
  """A line as it is decoded: pieces, and the ids of each; none if blank."""

  pieces: list[Piece]
  ids: list[list[int]]


class Translator:
  """A model, its tokenizer, and how to decode.

  Attributes:
    transformer: the model; its `params` decide beam, alpha and limit.
    tokenizer: of source and target.
    options: how lines are brought to the model.
  """

  def __init__(
    self,
    transformer: Transformer,
    tokenizer: Tokenizer,
    options: DecodingOptions | None = None,
  ) -> None:
    self.transformer = transformer
    self.tokenizer = tokenizer
    self.options = options or DecodingOptions()
    beam_size = transformer.params.beam_size
    if self.options.n_best > beam_size:
      raise InputError(
        f"n_best is {self.options.n_best}, but a beam of {beam_size} finds no "
        "more hypotheses than that; raise beam_size"
      )
    self._searcher = Searcher(transformer, self.options.static_shape())

  @classmethod
  def load(
    cls,
    model_dir: str,
    beam_size: int | None = None,
    alpha: float | None = None,
    extra_decode_length: int | None = None,
    dtype: str = "fp32",
    options: DecodingOptions | None = None,
  ) -> Translator:
    """Loads the newest checkpoint of a model directory.

    Args:
      model_dir: as training made it; nothing else is needed.
      beam_size: instead of the model's own, as the two below.
      alpha: strength of the length normalisation.
      extra_decode_length: tokens a translation may be longer than its source.
      dtype: what to compute in, as in `load_model`.
      options: how lines are brought to the model. Unset, they are cut where
        they are longer than what the model was trained with.

    Raises:
      InputError: where the directory holds no usable model.
    """
    model = load_model(
      model_dir,
      dtype,
      beam_size=beam_size,
      alpha=alpha,
      extra_decode_length=extra_decode_length,
    )
    options = options or DecodingOptions(longest_piece=model.max_length)
    return cls(model.transformer, model.tokenizer, options)

  def translate(self, lines: Iterable[str]) -> list[str]:
    """Returns one translation for each line, in order."""
    return [t.text for t in self.translate_stream(lines)]

  def translate_stream(self, lines: Iterable[str]) -> Iterator[Translation]:
    """Yields one translation for each line, in order, window by window.

    Lines are read, and cut into tokens, in the background.
    """
    prepared = (
      [self._prepare(line) for line in window] for window in windows(lines, len)
    )
    return in_order(prepared, self._start, self.options.workers)

  def translate_line(self, line: str) -> Translation:
    """Translates one line by itself, at once."""
    with ThreadPoolExecutor(1) as pool:
      (translation,) = self._start([self._prepare(line)], pool)()
    return translation

  def _prepare(self, line: str) -> _Line:
    """Cuts a line into pieces and tokens."""
    if not line.strip():
      return _Line([], [])
    # The model's own length first: few lines are cut.
    longest = self.options.longest_piece
    ids = self.tokenizer.encode(line, add_eos=True)
    if ids == [EOS_ID]:  # Characters that the tokenizer drops.
      return _Line([], [])
    if longest is None or len(ids) <= longest:
      return _Line([Piece(line, "")], [ids])
    pieces = cut_line(line, self._length, longest)
    encoded = [self.tokenizer.encode(p.text, add_eos=True) for p in pieces]
    return _Line(pieces, encoded)

  def _length(self, text: str) -> int:
    return len(self.tokenizer.encode(text, add_eos=True))

  def _start(
    self, window: Sequence[_Line], pool: ThreadPoolExecutor
  ) -> Promise[Translation]:
    """Hands a window to the pool, in batches."""
    sources = [ids for line in window for ids in line.ids]
    batches = batches_by_length(
      list(map(len, sources)), self.options.batch_limits(), self.options.workers
    )
    futures = [
      pool.submit(self._translate_batch, [sources[i] for i in batch])
      for batch in batches
    ]

    def promise() -> list[Translation]:
      found: dict[int, list[Hypothesis]] = {}
      for batch, future in zip(batches, futures, strict=True):
        found.update(zip(batch, future.result(), strict=True))
      in_order = (found[i] for i in range(len(sources)))
      return [
        _join(line, list(itertools.islice(in_order, len(line.ids))))
        for line in window
      ]

    return promise

  def _translate_batch(
    self, sources: Sequence[Sequence[int]]
  ) -> list[list[Hypothesis]]:
    """Decodes one batch of token lists, each ending in EOS."""
    return [
      [self._hypothesis(found) for found in sentence[: self.options.n_best]]
      for sentence in self._searcher.search(sources)
    ]

  def _hypothesis(self, found: FoundSequence) -> Hypothesis:
    text = self.tokenizer.decode(found.ids)
    return Hypothesis(
      # A vocabulary can spell a line feed; a translation is one line.
      text=" ".join(text.replace("\r", "\n").split("\n")),
      score=found.score,
      tokens=self.tokenizer.pieces(found.ids),
      finished=found.finished,
    )


def _join(line: _Line, pieces: list[list[Hypothesis]]) -> Translation:
  """Joins the translations of a line's pieces.

  Args:
    line: as it was cut.
    pieces: each one's hypotheses. The n-th of the line is made of the n-th of
      each piece, as far as all have one.
  """
  if len(pieces) == 1:
    return Translation(pieces[0], 1)
  if not pieces:
    return Translation([Hypothesis("", 0.0, [], True)], 0)
  hypotheses = []
  for parts in zip(*pieces, strict=False):
    joined = zip(line.pieces, parts, strict=True)
    hypotheses.append(
      Hypothesis(
        text="".join(piece.joint + part.text for piece, part in joined),
        score=sum(part.score for part in parts),
        tokens=[token for part in parts for token in part.tokens],
        finished=all(part.finished for part in parts),
      )
    )
  return Translation(hypotheses, len(pieces))
