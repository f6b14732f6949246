"""Starts an engine, and chooses the search of each batch: plain, or guided."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from official_transformer.decoding.engines import (
  TENSORFLOW,
  check_installed,
  check_number,
)
from official_transformer.decoding.hypotheses import FoundSequence, as_one_line
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.mbr import by_risk
from official_transformer.decoding.model_weights import ModelWeights
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.started_engine import StartedEngine
from official_transformer.search.options import SearchOptions
from official_transformer.text.tokenizer import Tokenizer
from official_transformer.text.vocabulary_files import Tokenizers


class Searchers:
  """Searches with a model, or with several; safe to call from several threads.

  Attributes:
    engine: what the engine offers.
    plain: searcher of pieces without guidance: the engine's. It is a guided
      one if several models decide together.
  """

  def __init__(
    self, engine: StartedEngine, target: Tokenizer, options: DecodingOptions
  ) -> None:
    self.engine = engine
    self.plain = engine.plain
    self._target = target
    self._options = options

  @classmethod
  def of(
    cls,
    models: Sequence[Any],
    tokenizers: Tokenizers,
    options: DecodingOptions,
  ) -> Searchers:
    """Starts the engine that `options` name.

    Args:
      models: one `Transformer`, or several that decide together; for
        CTranslate2, one or its `ModelWeights`.
      tokenizers: tokenizers of source and target.
      options: the engine, and how it searches.

    Raises:
      InputError: if the engine cannot search so.
    """
    engine = _started(models, tokenizers, options)
    return cls(engine, tokenizers.target, options)

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
    assert self.engine.guided is not None
    constraints = [piece.constraints for piece in batch]
    return self.engine.guided.search(sources, constraints, batch[0].search)

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


def _started(
  models: Sequence[Any], tokenizers: Tokenizers, options: DecodingOptions
) -> StartedEngine:
  """Returns the engine that `options` name, with models."""
  if options.engine.name == TENSORFLOW:
    if any(isinstance(model, ModelWeights) for model in models):
      raise TypeError("TensorFlow searches with a Transformer, not its weights")
    from official_transformer.decoding import tensorflow_engine

    return tensorflow_engine.start_tensorflow_engine(
      models, tokenizers, options
    )
  check_number(options.engine.name, len(models))
  check_installed()
  # It may not be installed.
  from official_transformer.decoding import ctranslate2_searcher

  searcher = ctranslate2_searcher.CTranslate2Searcher.of(
    ModelWeights.of(models[0]), tokenizers, options.engine, options.workers
  )
  return StartedEngine(searcher)
