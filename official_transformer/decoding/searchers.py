"""Chooses the search of a batch: the model's own, or a guided one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from official_transformer.decoding.engines import (
  TENSORFLOW,
  SequenceSearcher,
  check_installed,
)
from official_transformer.decoding.guided_searcher import GuidedSearcher
from official_transformer.decoding.hypotheses import FoundSequence, as_one_line
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.mbr import by_risk
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.searcher import Searcher
from official_transformer.errors import InputError
from official_transformer.model.transformer import Transformer
from official_transformer.search.options import SearchOptions
from official_transformer.text.vocabulary_files import Tokenizers


class Searchers:
  """Searches with a model, or with several; safe to call from several threads.

  Attributes:
    plain: searcher of pieces without guidance: the engine or, for several
      models, the guided searcher.
  """

  def __init__(
    self,
    transformers: Sequence[Transformer],
    tokenizers: Tokenizers,
    options: DecodingOptions,
  ) -> None:
    """Initializes the searchers.

    Raises:
      InputError: if several models cannot decide together.
    """
    self._options = options
    self._target = tokenizers.target
    self._guided = GuidedSearcher(transformers, tokenizers)
    if len(transformers) == 1:
      self.plain = _engine_searcher(transformers[0], tokenizers, options)
      return
    if options.engine.name != TENSORFLOW or options.padded_length:
      raise InputError(
        "several models decide together in TensorFlow's search alone, which "
        "XLA does not compile then: leave --engine and --padded_decode out"
      )
    for model in transformers:
      options.check_length(options.search, model.params)
    self.plain = self._guided

  def search(
    self, batch: Sequence[PieceToTranslate]
  ) -> list[list[FoundSequence]]:
    """Returns the sequences of each piece, the one that is chosen first.

    Raises:
      InputError: if the memory does not suffice, or a piece needs something
        that the engine cannot do.
    """

    def kind(row: int) -> tuple[bool, SearchOptions]:
      return batch[row].is_guided, batch[row].search

    kinds = list(dict.fromkeys(map(kind, range(len(batch)))))
    found: dict[int, list[FoundSequence]] = {}
    rows = sorted(range(len(batch)), key=lambda row: kinds.index(kind(row)))
    for (guided, search), group in itertools.groupby(rows, kind):
      alike = list(group)
      sequences = self._search_alike([batch[row] for row in alike], guided)
      if search.mbr:
        # It takes all of them to choose.
        sequences = [by_risk(sentence, self.text) for sentence in sequences]
      found.update(zip(alike, sequences, strict=True))
    return [found[row] for row in range(len(batch))]

  def _search_alike(
    self, batch: Sequence[PieceToTranslate], guided: bool
  ) -> list[list[FoundSequence]]:
    """Searches for pieces that ask for the same."""
    sources = [piece.ids for piece in batch]
    if not guided:
      return self.plain.search(sources)
    self._options.check_guided()
    constraints = [piece.constraints for piece in batch]
    return self._guided.search(sources, constraints, batch[0].search)

  def search_best(
    self, batch: Sequence[PieceToTranslate], number: int
  ) -> list[list[FoundSequence]]:
    """Searches; returns the `best` of each piece."""
    return [
      self.best(piece, found, number)
      for piece, found in zip(batch, self.search(batch), strict=True)
    ]

  def best(
    self, piece: PieceToTranslate, found: Sequence[FoundSequence], number: int
  ) -> list[FoundSequence]:
    """Returns at most `number` of the sequences found for a piece.

    Of hypotheses that spell the same text, only the best counts. Equal samples
    all count, because they are drawn as often as they are probable.
    """
    if number == 1 or piece.search.sampling:
      return list(found[:number])
    by_text: dict[str, FoundSequence] = {}
    for sequence in found:
      by_text.setdefault(self.text(sequence), sequence)
    return list(by_text.values())[:number]

  def text(self, found: FoundSequence) -> str:
    """Returns the found hypotheses as text."""
    return as_one_line(self._target.decode(found.ids))


def _engine_searcher(
  transformer: Transformer, tokenizers: Tokenizers, options: DecodingOptions
) -> SequenceSearcher:
  """Returns the engine's searcher for one model."""
  if options.engine.name == TENSORFLOW:
    size = tokenizers.target.vocab_size
    shapes = options.static_shapes(transformer.params)
    return Searcher(transformer, size, shapes)
  check_installed()
  # It may not be installed.
  from official_transformer.decoding import ctranslate2_searcher

  return ctranslate2_searcher.CTranslate2Searcher.of(
    transformer, tokenizers, options.engine, options.workers
  )
