"""Flags of decoding: the search, its engine, its batches."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from official_transformer.commands.flag_records import Options, flag
from official_transformer.commands.model_options import StoredModelOptions
from official_transformer.commands.shared_options import (
  DtypeOptions,
  GpuOptions,
  ThreadOptions,
)
from official_transformer.decoding.engines import (
  CTRANSLATE2,
  ENGINES,
  QUANTIZATIONS,
  TENSORFLOW,
  Engine,
  check_installed,
  check_number,
)
from official_transformer.decoding.options import BatchLimits, DecodingOptions
from official_transformer.errors import InputError
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory

if TYPE_CHECKING:
  from official_transformer.decoding.translator import Translator
  from official_transformer.decoding.translator_plan import TranslatorPlan

_NOTHING = (
  lambda o: not o.translates,
  "training translates nothing without --bleu_source",
)
_LINE_BY_LINE = (
  lambda o: getattr(o, "line_by_line", False),
  "one line at a time is translated",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlphaOptions(Options):
  """Flag of length normalisation."""

  heading = "Decoding: the search"

  alpha: float | None = flag(
    None,
    "Strength of length normalisation. Unset: the model's own, .6 "
    "in a new one.",
    lower_bound=0.0,
    upper_bound=10.0,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamSearchOptions(AlphaOptions):
  """Flags of the beam search."""

  heading = "Decoding: the search"

  beam_size: int | None = flag(
    None,
    "Number of hypotheses that the search keeps; 1 is greedy search. Unset: "
    "the model's own, 4 in a new one.",
    lower_bound=1,
  )
  extra_decode_length: int | None = flag(
    None,
    "Tokens a translation may be longer than its source. Unset: the model's "
    "own, 50 in a new one.",
    lower_bound=0,
  )
  patience: float | None = flag(
    None,
    "Ends the search of a sentence at the latest when this many times "
    "--beam_size hypotheses have ended (Kasai et al. 2022); 1 is CTranslate2's "
    "rule. This saves most with a large --alpha, with which the official rule "
    "searches long. 0: the official rule, by which the search ends when no "
    "unfinished hypothesis can still win; --engine=ctranslate2 then takes 1.5. "
    "Unset: the model's own.",
    (lambda o: getattr(o, "sample", False), "samples end one by one"),
    lower_bound=0.0,
  )
  suppress_unk: bool | None = flag(
    None,
    "Never write \u2047, the token for text that the vocabulary lacks, but the "
    "next best token. Unset: the model's own, false.",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions(Options):
  """Flags of the size of batches."""

  heading = "Decoding: speed and memory"

  decode_batch_size: int = flag(
    128,
    "Most lines decoded at once; as many fewer with a beam above 4. See "
    "--decode_batch_tokens.",
    _NOTHING,
    _LINE_BY_LINE,
    lower_bound=1,
  )
  decode_batch_tokens: int = flag(
    2048,
    "Most lines, times the tokens of the longest, decoded at once; as many "
    "fewer with a beam above 4.",
    _NOTHING,
    _LINE_BY_LINE,
    lower_bound=1,
  )

  @property
  def translates(self) -> bool:
    """Whether anything is decoded."""
    return True

  @property
  def limits(self) -> BatchLimits:
    """These flags as `BatchLimits`."""
    return BatchLimits(self.decode_batch_tokens, self.decode_batch_size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LineOptions(BatchOptions):
  """Flags of cutting and preparing lines."""

  heading = "Decoding: the search"

  split_sentences: bool | None = flag(
    None,
    "Translate each sentence of a line by itself, and join the translations "
    "with the blanks that stood between the sentences: a model that was "
    "trained on single sentences drops some sentences of several, or mixes "
    "them. A line with a prefix, required phrases or a least length is always "
    "translated whole. Default: on; off for a model of whose training lines "
    "30% or more held several sentences.",
    _NOTHING,
  )
  split_long_lines: bool = flag(
    True,
    "Cut text that has more tokens than 99.9% of the training lines at the end "
    "of a sentence, else at a comma, else between words, and join the "
    "translations. Off: decode it whole, which takes memory by the square of "
    "its length.",
    _NOTHING,
  )
  recase: bool | None = flag(
    None,
    "Translate text in capitals or in title case as a sentence, and give the "
    "translation the same case: training text has few such lines, and models "
    "translate them badly. Names and abbreviations keep their case, and so do "
    "lines with a prefix or phrases, lower-cased models, and all lines with "
    "--forbidden_phrases. Default: on. Off: as the official model does, and "
    "for Turkish.",
    _NOTHING,
  )
  replace_unk: bool = flag(
    False,
    "Write source text for each \u2047, the unknown token: the unknown part "
    "of the source that it attends to most; if there is none, and the token is "
    "a word by itself, the word.",
    _NOTHING,
  )
  keep: str | None = flag(
    None,
    "A regular expression, such as '%[sd]'. Text that it matches is not "
    "translated, but copied, beside the translation of the word next to it.",
    _NOTHING,
  )

  @property
  def kept(self) -> re.Pattern[str] | None:
    """The pattern of `--keep`.

    Raises:
      InputError: if it is no regular expression.
    """
    try:
      return re.compile(self.keep) if self.keep else None
    except re.error as error:
      raise InputError(
        f"--keep={self.keep} is no regular expression: {error}"
      ) from None

  def decoding(self) -> DecodingOptions:
    """Returns the flags as options of the decoder."""
    return DecodingOptions(
      limits=self.limits,
      keep=self.kept,
      recase=self.recase,
      replace_unk=self.replace_unk,
      split_sentences=self.split_sentences,
      split_long_lines=self.split_long_lines,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaddedLineOptions(LineOptions):
  """Flags of lines, and of batches with static shapes."""

  heading = "Decoding: speed and memory"

  padded_decode: bool = flag(
    False,
    "Pad lines to a multiple of --decode_max_length tokens, one shape of "
    "batches for each, and compile the search with XLA, as TPUs need it; no "
    "translation changes.",
    _NOTHING,
  )
  decode_max_length: int = flag(
    97,
    "With --padded_decode: tokens a line is padded to.",
    (
      lambda o: not o.padded_decode,
      "lines of any length are decoded; see --padded_decode",
    ),
    _NOTHING,
    lower_bound=1,
  )

  def decoding(self) -> DecodingOptions:
    """Returns the flags as options of the decoder."""
    padded_length = self.decode_max_length if self.padded_decode else 0
    return dataclasses.replace(super().decoding(), padded_length=padded_length)


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuantizationOptions(Options):
  """Flag of CTranslate2's weights."""

  heading = "Decoding: speed and memory"

  quantization: str = flag(
    QUANTIZATIONS[0],
    "How CTranslate2 keeps the weights: in fewer bits they take less memory, "
    "and on many processors less time.",
    (lambda o: not o.is_quantized, "TensorFlow keeps weights in --dtype"),
    choices=tuple(QUANTIZATIONS),
  )

  @property
  def is_quantized(self) -> bool:
    """Whether CTranslate2 has the weights."""
    raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslatorOptions(StoredModelOptions, BeamSearchOptions, GpuOptions):
  """Flags of commands that load a translator."""

  heading = "Decoding: the search"

  def decoding(self) -> DecodingOptions:
    """Returns how lines are brought to the model: one by one."""
    return DecodingOptions(limits=BatchLimits(lines=1))

  def plan(self) -> TranslatorPlan:
    """Returns which translator is asked for.

    Raises:
      InputError: if there is no model, or it cannot be decoded so.
    """
    plan = self.plan_for(*self.model)
    others = tuple((d.path, described) for d, described in self.models[1:])
    return dataclasses.replace(plan, others=others)

  def plan_for(
    self, directory: ModelDirectory, description: ModelDescription
  ) -> TranslatorPlan:
    """Returns the same, of another model."""
    from official_transformer.decoding.translator_plan import TranslatorPlan

    decoding = self.decoding()
    decoding.check(description.params)
    return TranslatorPlan(
      directory.path, description, self.checkpoint, decoding, self.num_gpus
    )

  def load_one_by_one(self) -> Translator:
    """Loads a translator that is given one line at a time."""
    plan = self.plan()
    options = dataclasses.replace(plan.options, limits=BatchLimits(lines=1))
    return dataclasses.replace(plan, options=options).load()


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineOptions(LineOptions, QuantizationOptions, TranslatorOptions):
  """Flags of the engine and its processors."""

  heading = "Decoding: speed and memory"

  engine: str = flag(
    TENSORFLOW,
    "Library that translates: tensorflow, the reference, or ctranslate2, "
    "which is faster for small models and in int8, and gives the same text on "
    "nearly every line (extra [ctranslate2]).",
    choices=tuple(ENGINES),
  )
  decode_workers: int | None = flag(
    None,
    "Batches decoded side by side on a CPU, its threads shared out among "
    "them. Unset: one a processor, up to 4.",
    _LINE_BY_LINE,
    (
      lambda o: getattr(o, "padded_decode", False),
      "XLA shares the processors out by itself",
    ),
    lower_bound=1,
  )

  @property
  def is_quantized(self) -> bool:
    """Whether CTranslate2 has the weights."""
    return self.engine == CTRANSLATE2

  @property
  def needs_tensorflow(self) -> bool:
    """Whether TensorFlow translates; its import takes seconds."""
    return self.engine == TENSORFLOW

  def plan_for(
    self, directory: ModelDirectory, description: ModelDescription
  ) -> TranslatorPlan:
    """Returns which translator is asked for."""
    plan = super().plan_for(directory, description)
    options = plan.options
    if self.engine != TENSORFLOW:
      engine = Engine(self.engine, self.quantization)
      options = dataclasses.replace(options, engine=engine)
    return dataclasses.replace(
      plan, options=options, workers=self.decode_workers
    )

  def check_engine(self) -> None:
    """Refuses an engine that is missing, or cannot decode with these flags."""
    if self.engine == TENSORFLOW:
      return
    check_number(self.engine, len(self.model_directories))
    check_installed()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationOptions(
  PaddedLineOptions, EngineOptions, DtypeOptions, ThreadOptions
):
  """Flags of commands that translate text by themselves."""

  heading = "Decoding: speed and memory"

  def plan_for(
    self, directory: ModelDirectory, description: ModelDescription
  ) -> TranslatorPlan:
    """Returns which translator is asked for."""
    plan = super().plan_for(directory, description)
    return dataclasses.replace(plan, dtype=self.dtype)

  def check_engine(self) -> None:
    """Refuses an engine that is missing, or cannot decode with these flags."""
    super().check_engine()
    if self.engine != TENSORFLOW and self.padded_decode:
      raise InputError(
        f"--padded_decode has XLA compile TensorFlow's search; --engine="
        f"{self.engine} has one of its own: leave one of them out"
      )
