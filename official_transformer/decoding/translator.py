"""Lines in, translated lines out, one for one and in order.

translator = Translator.load("my_model")
translator.translate(["A dog runs.", "Two men sit."])
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from absl import logging

from official_transformer.data.tokenizer import Tokenizer
from official_transformer.data.vocabulary_files import Tokenizers
from official_transformer.decoding.batching import (
  batches_by_length,
  windows,
)
from official_transformer.decoding.engines import Engine
from official_transformer.decoding.hypotheses import (
  FoundSequence,
  as_one_line,
)
from official_transformer.decoding.loading import (
  LoadedCheckpoint,
  LoadedModel,
  load_model,
  open_model,
)
from official_transformer.decoding.long_lines import Piece, cut_line
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.pipeline import Started, in_order
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.directory import LATEST
from official_transformer.model_params import DEFAULT_MAX_LENGTH, EOS_ID


@dataclasses.dataclass(frozen=True)
class Hypothesis:
  """One translation of a line.

  Attributes:
    text: never holds a line feed.
    score: normalised by length if `finished`, else the log-probability; the
      sum over its pieces, if the line was cut.
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


FIRST_EAST_ASIAN = "\u2e80"
BLANK = Translation([Hypothesis("", 0.0, [], True)], 0)


@dataclasses.dataclass(frozen=True)
class PreparedLine:
  """A line as it is decoded.

  Attributes:
    pieces: none, if it is blank; more than one, if it was cut.
    ids: of each piece, ending in EOS.
  """

  pieces: list[Piece]
  ids: list[list[int]]


class Translator:
  """A model, its tokenizer, and how to decode.

  Attributes:
    params: of the model; they decide beam, alpha and limit.
    tokenizers: of source and target.
    options: how lines are brought to the model, fewer at once for large beams.
    max_length: the longest line the model was trained with, in tokens.
    checkpoint: the one that was loaded, if one was.
    searcher: searches for each batch's best sequences.
  """

  checkpoint: LoadedCheckpoint | None = None

  def __init__(
    self,
    transformer: Transformer,
    tokenizers: Tokenizer | Tokenizers,
    options: DecodingOptions | None = None,
    max_length: int = DEFAULT_MAX_LENGTH,
  ) -> None:
    self.params = params = transformer.params
    self.tokenizers = Tokenizers.of(tokenizers)
    options = options or DecodingOptions()
    options.check(params)
    self.options = dataclasses.replace(
      options, limits=options.limits.for_beam(params.beam_size)
    )
    self.max_length = max_length
    self.searcher = self.options.create_searcher(transformer, self.tokenizers)

  @classmethod
  def load(
    cls,
    model_dir: str,
    dtype: str = "fp32",
    options: DecodingOptions | None = None,
    checkpoint: str = LATEST,
    engine: str | None = None,
    **decoding: float | None,
  ) -> Translator:
    """Loads a checkpoint of a model directory.

    Args:
      model_dir: as training made it; nothing else is needed.
      dtype: what to compute in, as in `load_model`.
      options: how lines are brought to the model.
      checkpoint: which one, as in `load_model`.
      engine: `tensorflow` or `ctranslate2`; None is the one of `options`.
      **decoding: `beam_size`, `alpha` or `extra_decode_length`, instead of the
        model's own.

    Raises:
      InputError: if the directory holds no usable model.
    """
    options = options or DecodingOptions()
    if engine is not None:
      options = dataclasses.replace(options, engine=Engine(engine))
    directory, description = open_model(model_dir, **decoding)
    return cls.of(
      load_model(directory, description, dtype, checkpoint), options
    )

  @classmethod
  def of(
    cls, model: LoadedModel, options: DecodingOptions | None = None
  ) -> Translator:
    """Returns a translator with a model that has been loaded."""
    translator = cls(
      model.transformer, model.tokenizers, options, model.max_length
    )
    translator.checkpoint = model.checkpoint
    return translator

  def translate(self, lines: Iterable[str]) -> list[str]:
    """Returns one translation for each line, in order."""
    return [t.text for t in self.translate_stream(lines)]

  def translate_stream(
    self,
    lines: Iterable[str],
    on_decoded: Callable[[int], object] = lambda count: None,
  ) -> Generator[Translation, None, None]:
    """Yields one translation for each line, in order, window by window.

    Args:
      lines: read, and cut into tokens, in the background.
      on_decoded: told how many lines each batch was, as soon as it is done,
        from any thread. A line in pieces is counted with its last one.
    """

    def prepare(window: list[str]) -> list[PreparedLine]:
      return [self.prepare(line) for line in window]

    def start(
      window: list[PreparedLine], pool: ThreadPoolExecutor
    ) -> Started[Translation]:
      return self._start(window, pool, on_decoded)

    cut = 0
    stream = in_order(windows(lines, len), prepare, start, self.options.workers)
    with contextlib.closing(stream):
      for translation in stream:
        cut += translation.pieces > 1
        yield translation
    if cut:
      logging.info(
        "lines of over %d tokens, the longest the model was trained with, that "
        "were split at the ends of sentences: %d",
        self.max_length,
        cut,
      )

  def warm_up(self) -> None:
    """Makes TensorFlow trace the search now, not when a line waits for it."""
    # An empty line would be no work for some engines.
    last = self.tokenizers.source.vocab_size - 1
    self.searcher.search([[last, EOS_ID]])

  def translate_line(self, line: str) -> Translation:
    """Translates one line by itself, at once."""
    prepared = self.prepare(line)
    pieces = [self._translate_batch([ids])[0] for ids in prepared.ids]
    return join_pieces(prepared, pieces)

  def prepare(self, line: str) -> PreparedLine:
    """Cuts a line into pieces and tokens."""
    line = line.strip()
    if not line:
      return PreparedLine([], [])
    encode = self.tokenizers.source.encode
    ids = encode(line, add_eos=True)
    pieces, encoded = [Piece(line, "")], [ids]
    if self.options.split_long_lines and len(ids) > self.max_length:
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
    return len(self.tokenizers.source.encode(text, add_eos=True))

  def _start(
    self,
    window: Sequence[PreparedLine],
    pool: ThreadPoolExecutor,
    on_decoded: Callable[[int], object],
  ) -> Started[Translation]:
    """Hands a window to the pool, in batches."""
    sources = [ids for line in window for ids in line.ids]
    on_decoded(sum(not line.ids for line in window))
    ends = itertools.accumulate(len(line.ids) for line in window if line.ids)
    last = {end - 1 for end in ends}
    shapes = self.options.static_shapes()
    # Lines that are padded to the same width count alike.
    lengths = [
      shapes.shape(len(ids))[1] if shapes else len(ids) for ids in sources
    ]
    batches = batches_by_length(
      lengths, self.options.limits, self.options.workers
    )

    def translate(batch: list[int]) -> list[list[Hypothesis]]:
      found = self._translate_batch([sources[i] for i in batch])
      on_decoded(len(last.intersection(batch)))
      return found

    work = [pool.submit(translate, batch) for batch in batches]

    def results() -> list[Translation]:
      found: dict[int, list[Hypothesis]] = {}
      for batch, future in zip(batches, work, strict=True):
        found.update(zip(batch, future.result(), strict=True))
      pieces = (found[i] for i in range(len(sources)))
      return [
        join_pieces(line, list(itertools.islice(pieces, len(line.ids))))
        for line in window
      ]

    return Started(work, results)

  def _translate_batch(
    self, sources: Sequence[Sequence[int]]
  ) -> list[list[Hypothesis]]:
    """Decodes one batch of token lists, each ending in EOS."""
    return [
      [self.hypothesis(found) for found in sentence[: self.options.n_best]]
      for sentence in self.searcher.search(sources)
    ]

  def hypothesis(self, found: FoundSequence) -> Hypothesis:
    """Returns what a search has found, as text."""
    return Hypothesis(
      text=as_one_line(self.tokenizers.target.decode(found.ids)),
      score=found.score,
      tokens=self.tokenizers.target.pieces(found.ids),
      finished=found.finished,
    )


def join_pieces(
  line: PreparedLine, pieces: list[list[Hypothesis]]
) -> Translation:
  """Joins the translations of a line's pieces.

  Args:
    line: as it was cut.
    pieces: each one's hypotheses. The n-th of the line is made of the n-th of
      each piece, as far as all have one.
  """
  if len(pieces) == 1:
    return Translation(pieces[0], 1)
  if not pieces:
    return BLANK
  joints = [piece.joint for piece in line.pieces]
  hypotheses = []
  for parts in zip(*pieces, strict=False):
    text = parts[0].text
    for joint, part in zip(joints[1:], parts[1:], strict=True):
      text += _joint(text, joint, part.text) + part.text
    hypotheses.append(
      Hypothesis(
        text=text,
        score=sum(part.score for part in parts),
        tokens=[token for part in parts for token in part.tokens],
        finished=all(part.finished for part in parts),
      )
    )
  return Translation(hypotheses, len(pieces))


def _joint(left: str, joint: str, right: str) -> str:
  """Returns what stands between two pieces' translations.

  It is what stood in the source; but where that was nothing, as in scripts that
  write no spaces, a sentence's end and a letter are still set apart.
  """
  apart = left[-1:] in tuple(".!?,;:") and right[:1].isalnum()
  return " " if apart and right[:1] < FIRST_EAST_ASIAN else joint
