"""Lines in, translated lines out, one for one and in order.

translator = Translator.load("my_model")
translator.translate(["A dog runs.", "Two men sit."])
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.decoding.alignment import (
  Aligner,
  Alignment,
  TranslatedPiece,
)
from official_transformer.decoding.batching import map_by_length, windows
from official_transformer.decoding.engines import Engine
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import (
  LinePreparer,
  PieceToTranslate,
  PreparedLine,
)
from official_transformer.decoding.loading import (
  LoadedCheckpoint,
  LoadedModel,
  load_models,
  open_model,
)
from official_transformer.decoding.options import (
  AlignmentRule,
  DecodingOptions,
)
from official_transformer.decoding.pipeline import Started, in_order
from official_transformer.decoding.requests import (
  LineRequest,
  TranslationRequest,
)
from official_transformer.decoding.searchers import Searchers
from official_transformer.decoding.translation import (
  Hypothesis,
  SpansOfTokens,
  Translation,
  join_pieces,
  translated_pieces,
  with_alignments,
  with_case,
)
from official_transformer.decoding.unknown_words import replace_unknown
from official_transformer.decoding.window_batches import start_window
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import LATEST
from official_transformer.model_params import DEFAULT_MAX_LENGTH, EOS_ID
from official_transformer.text.tokenizer import Tokenizer, has_unknown
from official_transformer.text.vocabulary_files import Tokenizers

if TYPE_CHECKING:
  from official_transformer.decoding.attention import (
    AttentionReader,
    LineAttention,
  )
  from official_transformer.decoding.model_weights import ModelWeights
  from official_transformer.model.transformer import Transformer

  _Model = Transformer | ModelWeights


class Translator:
  """A model, its tokenizer, and how to decode.

  Attributes:
    params: hyper-parameters of the model, the first of several; they decide
      beam, alpha, patience and limit.
    tokenizers: tokenizers of source and target.
    options: how lines are brought to the model, fewer at once for large beams.
    longest_piece: most tokens of a line that is translated in one piece, EOS
      included; longer ones are cut, unless `options` say otherwise.
    checkpoint: the one that was loaded, if one was.
    searchers: search for each batch's best sequences.
  """

  checkpoint: LoadedCheckpoint | None = None

  def __init__(
    self,
    transformer: _Model | Sequence[_Model],
    tokenizers: Tokenizer | Tokenizers,
    options: DecodingOptions | None = None,
    longest_piece: int = DEFAULT_MAX_LENGTH,
  ) -> None:
    """Starts the engine that `options` name, with one model or several.

    CTranslate2 takes one `ModelWeights`, TensorFlow one transformer or several.

    Raises:
      InputError: if the engine cannot search so.
    """
    models = transformer if isinstance(transformer, Sequence) else [transformer]
    self.params = params = models[0].params
    self.tokenizers = Tokenizers.of(tokenizers)
    options = (options or DecodingOptions()).as_trained(on_sentences=True)
    options.check(params)
    number = options.search.hypotheses(params.beam_size)
    self.options = dataclasses.replace(
      options, limits=options.limits.for_beam(number)
    )
    self.longest_piece = longest_piece
    self._preparer = LinePreparer.of(self.tokenizers, options, longest_piece)
    self.searchers = Searchers.of(models, self.tokenizers, self.options)

  @classmethod
  def load(
    cls,
    model_dir: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dtype: str = "fp32",
    options: DecodingOptions | None = None,
    checkpoint: str = LATEST,
    engine: str | None = None,
    **decoding: float | None,
  ) -> Translator:
    """Loads a checkpoint of a model directory.

    Args:
      model_dir: as training made it; nothing else is needed. Of several, which
        have one vocabulary, the probabilities are averaged.
      dtype: type of TensorFlow's computation, as in `load_model`.
      options: how lines are brought to the model.
      checkpoint: which one, as in `load_model`.
      engine: `tensorflow` or `ctranslate2`; None is the one of `options`.
      **decoding: values of `DECODING_FIELDS` instead of the model's own.

    Raises:
      InputError: if the directory holds no usable model.
    """
    options = options or DecodingOptions()
    if engine is not None:
      options = dataclasses.replace(options, engine=Engine(engine))
    if isinstance(model_dir, (str, os.PathLike)):
      model_dir = [model_dir]
    opened = [open_model(os.fspath(name), **decoding) for name in model_dir]
    models = load_models(opened, dtype, checkpoint, options.engine.name)
    return cls.of(models, options)

  @classmethod
  def of(
    cls,
    model: LoadedModel | Sequence[LoadedModel],
    options: DecodingOptions | None = None,
  ) -> Translator:
    """Returns a translator with models that have been loaded."""
    models = [model] if isinstance(model, LoadedModel) else model
    first = models[0]
    translator = cls(
      [m.transformer for m in models],
      first.tokenizers,
      (options or DecodingOptions()).as_trained(
        all(m.splits_sentences for m in models)
      ),
      min(m.longest_piece for m in models),
    )
    translator.checkpoint = first.checkpoint
    return translator

  def translate(self, lines: Iterable[str | LineRequest]) -> list[str]:
    """Returns one translation for each line, in order."""
    return [t.text for t in self.translate_stream(lines)]

  def translate_stream(
    self,
    lines: Iterable[str | LineRequest],
    on_decoded: Callable[[int], object] = lambda count: None,
  ) -> Generator[Translation, None, None]:
    """Yields one translation for each line, in order, window by window.

    Args:
      lines: read, and cut into tokens, in the background.
      on_decoded: called with the number of lines of each batch as soon as it is
        done, from any thread. A line in pieces counts with its last one.

    Raises:
      TypeError: if `lines` is one string.
    """

    def prepare(window: list[str | LineRequest]) -> list[PreparedLine]:
      return [self.prepare(line) for line in window]

    def start(
      window: list[PreparedLine], pool: ThreadPoolExecutor
    ) -> Started[Translation]:
      return start_window(
        window,
        pool,
        self.options,
        self.params,
        self._translate_batch,
        on_decoded,
      )

    stream = in_order(windows(lines, len), prepare, start, self.options.workers)
    with contextlib.closing(stream):
      yield from _telling_of_pieces(stream, self.longest_piece)

  @property
  def attention_reader(self) -> AttentionReader | None:
    """Computes the first model's attention; None without TensorFlow."""
    return self.searchers.engine.attention_reader

  def warm_up(self) -> None:
    """Makes an engine trace the search now, not when a line waits for it."""
    # An empty line would be no work for some engines.
    ids = [self.tokenizers.source.vocab_size - 1, EOS_ID]
    self.searchers.search(
      [PieceToTranslate("", ids, search=self.options.search)]
    )

  def check(self, request: TranslationRequest) -> None:
    """Raises a `RequestError` if this translator cannot meet a request."""
    request.check(
      self.options, self.params, self.tokenizers, self.longest_piece
    )

  def translate_line(
    self, line: str | LineRequest, aligned: bool = False
  ) -> Translation:
    """Translates one line without waiting for others; aligned, if asked."""
    prepared = self.prepare(line)
    aligned |= self.options.alignment is not None
    reads = aligned or bool(prepared.runs)
    pieces = map_by_length(
      prepared.to_translate(),
      lambda piece: len(piece.ids),
      self.options.limits_within_line(self.params.beam_size),
      lambda batch: self._translate_batch(batch, reads),
    )
    return join_pieces(prepared, pieces, aligned)

  def attention(
    self, source: str | LineRequest, target: str | None = None
  ) -> LineAttention:
    """Returns the attention of all layers and heads.

    The line is not cut, however long it is.

    Args:
      source: a line.
      target: translation of the line; None is the model's own.

    Raises:
      InputError: if another engine than TensorFlow searches, or the memory does
        not suffice.
    """
    reader = self._attention()
    line = self._preparer.whole(source)
    if target is None:
      found = self.searchers.search([line])[0][0].ids
    else:
      found = self.tokenizers.target.encode(target.strip())
    return reader.read(line.ids, [*found, EOS_ID])

  def align(self, pieces: Sequence[TranslatedPiece]) -> list[Alignment]:
    """Returns which words of translations come from which of the source.

    Raises:
      InputError: as `attention`.
    """
    rule = self.options.alignment or AlignmentRule()
    return Aligner(self._attention(), rule).align(pieces)

  def _attention(self) -> AttentionReader:
    if self.attention_reader is None:
      raise InputError(
        "only TensorFlow has attention to show, but the engine is "
        f"{self.options.engine.name}"
      )
    return self.attention_reader

  def prepare(self, line: str | LineRequest) -> PreparedLine:
    """Cuts a line into pieces and tokens."""
    return self._preparer.prepare(line)

  def _translate_batch(
    self, batch: Sequence[PieceToTranslate], aligned: bool
  ) -> list[list[Hypothesis]]:
    """Decodes one batch of lines."""
    found = self.searchers.search_best(batch, self.options.n_best)
    return self.hypotheses(batch, found, aligned)

  def hypotheses(
    self,
    batch: Sequence[PieceToTranslate],
    found: Sequence[Sequence[FoundSequence]],
    aligned: bool,
  ) -> list[list[Hypothesis]]:
    """Returns the hypotheses of a batch as text, with alignments if wanted."""
    hypotheses = [[self.hypothesis(f) for f in sentence] for sentence in found]
    spans: SpansOfTokens = {}
    if self.options.replace_unk:
      rule, reader = self.options.alignment, self._attention()
      hypotheses, spans = replace_unknown(
        reader, rule, batch, found, hypotheses
      )
    if aligned:
      pieces = translated_pieces(batch, found, hypotheses, spans)
      hypotheses = with_alignments(hypotheses, self.align(pieces))
    return list(map(with_case, batch, hypotheses))

  def hypothesis(self, found: FoundSequence) -> Hypothesis:
    """Returns a found hypothesis as text."""
    return Hypothesis(
      text=self.searchers.text(found),
      score=found.score,
      tokens=self.tokenizers.target.pieces(found.ids),
      finished=found.finished,
      utility=found.utility,
      has_unknown=has_unknown(self.tokenizers.target, found.ids),
    )


def _telling_of_pieces(
  translations: Iterable[Translation], longest_piece: int
) -> Iterator[Translation]:
  """Yields translations, and logs at the end how many lines were cut."""
  cut = 0
  for translation in translations:
    cut += translation.pieces > 1
    yield translation
  if cut:
    logging.info(
      "%d lines were translated in pieces: they have several sentences, or "
      "more than %d tokens",
      cut,
      longest_piece,
    )
