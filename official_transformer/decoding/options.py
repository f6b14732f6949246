"""Options of decoding, without TensorFlow."""

from __future__ import annotations

import dataclasses
import re

from absl import logging

from official_transformer.decoding.engines import TENSORFLOW, Engine
from official_transformer.errors import InputError
from official_transformer.model_params import TransformerParams
from official_transformer.search.options import SearchOptions

_USUAL_BEAM = 4


@dataclasses.dataclass(frozen=True)
class BatchLimits:
  """The largest batches of decoding.

  Attributes:
    tokens: the number of lines times the tokens of the longest; a longer line
      is a batch of its own.
    lines: most lines of a batch, because a short line needs less memory for its
      own tokens than for those of its translation.
  """

  tokens: int = 2048
  lines: int = 128

  def __post_init__(self) -> None:
    for name in ("tokens", "lines"):
      value = getattr(self, name)
      if value < 1:
        raise InputError(f"{name} is {value}, must be at least 1")

  def for_beam(self, beam_size: int) -> BatchLimits:
    """Returns the limits for so many hypotheses a line.

    Up to a beam of 4 they are these; the lines of a batch with a larger one are
    as many fewer, so that its hypotheses are no more.
    """
    share = max(beam_size, _USUAL_BEAM)
    return BatchLimits(
      max(1, self.tokens * _USUAL_BEAM // share),
      max(1, self.lines * _USUAL_BEAM // share),
    )

  def size(self, longest: int) -> int:
    """Returns the lines of a batch whose longest line has so many tokens."""
    return min(self.lines, max(1, self.tokens // max(1, longest)))


@dataclasses.dataclass(frozen=True)
class StaticShapes:
  """The shapes of static batches: one for each multiple of a width.

  Attributes:
    width: tokens.
    limits: decide how many rows go with a multiple.
    longest: most tokens that a model reads; None if any number will do.
  """

  width: int
  limits: BatchLimits
  longest: int | None = None

  def shape(self, longest: int) -> tuple[int, int]:
    """Returns rows and columns of batches with lines of so many tokens."""
    columns = -(-longest // self.width) * self.width
    if self.longest is not None:
      columns = min(columns, self.longest)
    return self.limits.size(columns), columns


@dataclasses.dataclass(frozen=True)
class AlignmentRule:
  """The attention to the source that word alignments are read from.

  A piece is looked for in the row that predicts it, in the mean of a layer's
  heads. How much it attends to a source piece is multiplied by its share of all
  the attention that this source piece gets, once rows and columns have been
  brought to a sum of 1 a few times: both must mean each other. Of all
  that was measured, over four models, the sum of that over all layers came
  nearest to the truth, and no single layer did in each of them. The same is
  done once more for words.

  Attributes:
    layers: which, counted from 0; None is all.
  """

  layers: tuple[int, ...] | None = None

  def check(self, num_layers: int) -> None:
    """Raises an `InputError` if a model has not as many layers."""
    if wrong := [n for n in self.layers or () if not 0 <= n < num_layers]:
      raise InputError(
        f"there is no layer {wrong[0]}: the model has {num_layers}, counted "
        "from 0"
      )


@dataclasses.dataclass(frozen=True)
class DecodingOptions:
  """Options of decoding and output.

  The first three change speed and memory, and no translation.

  Attributes:
    limits: how many lines are decoded at once.
    workers: batches decoded side by side.
    padded_length: with more than 0, batches have static shapes, of lines padded
      to a multiple of so many tokens, and XLA compiles the search.
    split_sentences: whether each sentence of a line is translated by itself;
      None: as the model was trained.
    split_long_lines: whether a text of more tokens than nearly all training
      lines is cut, at the end of a clause or else of a word.
    recase: whether text in capitals or title case is translated as a sentence,
      and the translation gets its letter case; see `letter_case.case_of`.
      None: yes, unless an earlier run of the same files did not.
    replace_unk: whether unknown tokens are replaced by source text; see
      `unknown_words.replace_unknown`.
    is_html: whether lines are HTML, the tags of which come back.
    keep: pattern of text that is copied instead of translated.
    n_best: most hypotheses returned for a line; at most the beam.
    engine: library that computes.
    alignment: how word alignments are read from attention; None reads none.
    search: penalties, forbidden phrases, sampling and the choice by MBR; the
      defaults are plain beam search.
  """

  limits: BatchLimits = dataclasses.field(default_factory=BatchLimits)
  workers: int = 1
  padded_length: int = 0
  split_sentences: bool | None = None
  split_long_lines: bool = True
  recase: bool | None = None
  replace_unk: bool = False
  is_html: bool = False
  keep: re.Pattern[str] | None = None
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
    asking = {
      "alignments": self.alignment,
      "replace_unk": self.replace_unk,
      "markup": self.is_html,
      "keep": self.keep,
    }
    asked = [name for name, value in asking.items() if value]
    if asked and self.engine.name != TENSORFLOW:
      raise InputError(
        f"{asked[0]} needs TensorFlow's attention, from which word alignments "
        f"are read: leave the engine {self.engine.name} out"
      )
    if self.alignment and (self.is_html or self.keep):
      raise InputError(
        "alignments are for text without markup; leave them out, or markup "
        "and keep"
      )
    if self.search.changes_search:
      self.check_guided()

  def limits_within_line(self, beam_size: int) -> BatchLimits:
    """Returns the limits for the pieces of one line.

    They go together where one line is translated at a time, too; but static
    shapes are compiled for each number of them.
    """
    if self.limits.lines > 1 or self.padded_length:
      return self.limits
    usual = BatchLimits().for_beam(self.search.hypotheses(beam_size))
    return dataclasses.replace(self.limits, lines=usual.lines)

  def as_trained(self, on_sentences: bool) -> DecodingOptions:
    """Returns options with the choices that were left open.

    Sentences are split if training lines were single ones, and text in capitals
    is translated as sentences. Explicit choices are kept. A log message says if
    lines are not split.

    Args:
      on_sentences: whether most training lines were single sentences.
    """
    decided = dataclasses.replace(self, recase=self.recase is not False)
    if self.split_sentences is not None:
      return decided
    if not on_sentences:
      logging.info(
        "lines are translated whole, as the model was trained on lines of "
        "several sentences; --split_sentences translates each by itself"
      )
    return dataclasses.replace(decided, split_sentences=on_sentences)

  def check_guided(self) -> None:
    """Raises an `InputError` if the engine cannot be guided."""
    if self.padded_length:
      raise InputError(
        "padded_length is for XLA, which compiles no guided search: by "
        "phrases, prefixes, penalties or samples"
      )
    if self.engine.name != TENSORFLOW:
      raise InputError(
        "samples, phrases, prefixes and penalties are TensorFlow's search "
        f"alone, and the engine is {self.engine.name}"
      )

  def check(self, params: TransformerParams) -> None:
    """Raises an `InputError` if a model cannot be decoded so."""
    number = self.search.hypotheses(params.beam_size)
    if self.n_best > number:
      raise InputError(
        f"n_best is {self.n_best}, but a beam of {number} finds no more "
        "hypotheses than that; raise beam_size"
      )
    if self.alignment:
      self.alignment.check(params.decoder_layers)
    self.check_length(self.search, params)

  def check_length(
    self, search: SearchOptions, params: TransformerParams
  ) -> None:
    """Raises an `InputError` if a model writes too little for a search."""
    longest = params.longest_output
    if longest is not None and search.min_length >= longest:
      raise InputError(
        f"min_length is {search.min_length}, but the model has learnt "
        f"{params.longest} positions, and writes at most {longest} tokens"
      )

  def static_shapes(self, params: TransformerParams) -> StaticShapes | None:
    """Returns the shapes of a model's batches, if they are static."""
    if not self.padded_length:
      return None
    return StaticShapes(self.padded_length, self.limits, params.longest)
