"""How lines are brought to a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from official_transformer.data.vocabulary_files import Tokenizers
from official_transformer.decoding.alignment import AlignmentRule
from official_transformer.decoding.batching import BatchLimits, check_n_best
from official_transformer.decoding.engines import (
  TENSORFLOW,
  Engine,
  SequenceSearcher,
  check_installed,
)
from official_transformer.decoding.guided_searcher import GuidedSearcher
from official_transformer.decoding.searcher import Searcher, StaticShapes
from official_transformer.errors import InputError
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import TransformerParams
from official_transformer.search.options import SearchOptions


@dataclasses.dataclass(frozen=True)
class DecodingOptions:
  """How lines are brought to the model, and what is told of each.

  The first three change speed and memory, and no translation.

  Attributes:
    limits: how many lines are decoded at once.
    workers: batches decoded side by side.
    padded_length: with more than 0, batches have static shapes, of lines padded
      to a multiple of so many tokens, and XLA compiles the search.
    split_long_lines: whether lines longer than those the model was trained with
      are cut at the ends of sentences.
    n_best: most hypotheses returned for a line; at most the beam.
    engine: what computes.
    alignment: where word alignments are read, if they are wanted.
    search: what is searched for, besides what the model finds best.
  """

  limits: BatchLimits = dataclasses.field(default_factory=BatchLimits)
  workers: int = 1
  padded_length: int = 0
  split_long_lines: bool = True
  n_best: int = 1
  engine: Engine = dataclasses.field(default_factory=Engine)
  alignment: AlignmentRule | None = None
  search: SearchOptions = dataclasses.field(default_factory=SearchOptions)

  def __post_init__(self) -> None:
    for name in ("workers", "n_best"):
      if getattr(self, name) < 1:
        raise InputError(f"{name} is {getattr(self, name)}, must be at least 1")
    if self.padded_length < 0:
      raise InputError(f"padded_length is {self.padded_length}, below 0")
    if self.padded_length and self.engine.name != TENSORFLOW:
      raise InputError(
        "padded_length is for XLA, which compiles TensorFlow's search alone"
      )
    if self.alignment and self.engine.name != TENSORFLOW:
      raise InputError(
        f"alignments are read from TensorFlow's attention, and the engine is "
        f"{self.engine.name}"
      )
    if self.search.changes_search and self.padded_length:
      raise InputError(
        "padded_length is for XLA, which compiles no guided search: by "
        "phrases, prefixes, penalties or samples"
      )
    if self.search.changes_search and self.engine.name != TENSORFLOW:
      raise InputError(
        "samples, phrases, prefixes and penalties are TensorFlow's search "
        f"alone, and the engine is {self.engine.name}"
      )

  def check(self, params: TransformerParams) -> None:
    """Raises an `InputError` if a model cannot be decoded so."""
    check_n_best(self.n_best, params.beam_size)
    if self.alignment:
      self.alignment.check(params.decoder_layers)
    self._check_length(params)

  def _check_length(self, params: TransformerParams) -> None:
    longest = params.longest_output
    if longest is not None and self.search.min_length >= longest:
      raise InputError(
        f"min_length is {self.search.min_length}, but the model has learnt "
        f"{params.longest} positions, and writes at most {longest} tokens"
      )

  def create_searcher(
    self, transformers: Sequence[Transformer], tokenizers: Tokenizers
  ) -> SequenceSearcher | GuidedSearcher:
    """Returns what searches with a model, or with several.

    Raises:
      InputError: if several cannot decide together.
    """
    transformer = transformers[0]
    if len(transformers) > 1 or self.search.changes_search:
      if self.engine.name != TENSORFLOW or self.padded_length:
        raise InputError(
          "several models decide together in TensorFlow's search alone, which "
          "XLA does not compile then: leave --engine and --padded_decode out"
        )
      for model in transformers:
        self._check_length(model.params)
      return GuidedSearcher(transformers, tokenizers, self.search)
    if self.engine.name == TENSORFLOW:
      size = tokenizers.target.vocab_size
      shapes = self.static_shapes(transformer.params)
      return Searcher(transformer, size, shapes)
    check_installed()
    # It may not be installed.
    from official_transformer.decoding import ctranslate2_searcher

    return ctranslate2_searcher.CTranslate2Searcher.of(
      transformer, tokenizers, self.engine, self.workers
    )

  def static_shapes(self, params: TransformerParams) -> StaticShapes | None:
    """Returns the shapes of a model's batches, if they are static."""
    if not self.padded_length:
      return None
    return StaticShapes(self.padded_length, self.limits, params.longest)
