"""The flags of what decodes: which weights, what to translate, and how."""

from __future__ import annotations

import dataclasses

from absl import flags

from official_transformer.commands.search_flags import define_leading_flags
from official_transformer.decoding.engines import (
  CTRANSLATE2,
  ENGINES,
  QUANTIZATIONS,
  TENSORFLOW,
)
from official_transformer.flag_groups.core import (
  Effect,
  define,
  read_by,
  start_section,
)
from official_transformer.flag_groups.records import (
  Options,
  define_flags,
  flag,
)
from official_transformer.model_directory.directory import LATEST

OUTPUT_FORMATS = ("text", "jsonl")
INVALID_UTF8 = ("refuse", "replace")

_TRANSLATING = read_by("train", "eval", "predict").idle_if(
  lambda v: "mode" in v and v.mode == "train" and not v.bleu_source,
  "training translates nothing without --bleu_source",
)
_SEARCHING = read_by("train", "eval", "predict", "export", "attention")


def _uses_ctranslate2(values: flags.FlagValues) -> bool:
  if "mode" in values and values.mode == "export":
    return values.export_format == CTRANSLATE2
  return values.engine == CTRANSLATE2


def _idle_line_by_line(effect: Effect) -> Effect:
  return effect.idle_if(
    # A service has neither.
    lambda v: "text" in v and bool(v.interactive or v.text is not None),
    "one line at a time is translated",
  )


def define_decoding_flags() -> None:
  """Defines what to translate, how, and where the translation goes."""
  start_section("Decoding: what is read and written")
  define_checkpoint_flag()
  _define_input_flags()
  _define_invalid_utf8_flag()
  _define_output_flags()
  _define_alignment_flags()
  define_search_flags()
  _define_padding_flags()
  define_leading_flags()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions(Options):
  """Which weights are used."""

  checkpoint: str = flag(
    LATEST,
    "The weights to use: latest (of a model that has nothing else, the "
    "average), best (at an evaluation of training, by BLEU if it was measured, "
    "else by validation loss), average (see --mode=average), or the step of a "
    "checkpoint that is kept.",
  )


def define_checkpoint_flag() -> None:
  """Defines which weights are used."""
  define_flags(
    CheckpointOptions,
    read_by("eval", "predict", "score", "export", "attention", "plot"),
  )


def define_search_flags() -> None:
  """Defines how to search, how fast, and on what."""
  start_section("Decoding: the search")
  _define_search_flags()
  _define_splitting_flag()
  start_section("Decoding: speed and memory")
  _define_engine_flags()
  _define_decoding_speed_flags()


def _define_input_flags() -> None:
  define(
    flags.DEFINE_string,
    "text",
    None,
    "One sentence to translate.",
    read_by("predict"),
  )
  define(
    flags.DEFINE_string,
    "file",
    None,
    "A file to translate; - is standard input. With --runner: several, as a "
    "pattern or between commas. With --mode=export: lines to verify the export "
    "with, instead of the development data's.",
    read_by("predict", "score", "export", "attention"),
    path=True,
  )
  define(
    flags.DEFINE_bool,
    "interactive",
    False,
    "Answer each line of standard input as soon as it is there, as on a "
    "terminal.",
    read_by("predict"),
  )


def _define_splitting_flag() -> None:
  define(
    flags.DEFINE_bool,
    "split_long_lines",
    True,
    "Cut lines that are longer than the model was trained with at the ends of "
    "sentences, and join the translations. Off: decode them whole, which "
    "takes memory by the square of their length.",
    _TRANSLATING,
  )


def _define_invalid_utf8_flag() -> None:
  define(
    flags.DEFINE_enum,
    "invalid_utf8",
    "refuse",
    "What to do about a line of --file that is not UTF-8: refuse the file, or "
    "replace the bytes by U+FFFD and report the line, as --interactive always "
    "does.",
    read_by("predict", "score", "export", "attention").idle_if(
      lambda v: v.file is None or v.interactive,
      "it is about what is read from --file",
    ),
    enum_values=list(INVALID_UTF8),
  )


def _define_output_flags() -> None:
  define(
    flags.DEFINE_string,
    "file_out",
    "-",
    "Where its translation goes; - is standard output. With --runner: a "
    "directory.",
    read_by("predict", "score"),
    path=True,
  )
  define(
    flags.DEFINE_enum,
    "output_format",
    "text",
    "text: a line for each line. jsonl: a JSON object for each, with score, "
    "tokens and flags.",
    read_by("predict", "score"),
    enum_values=list(OUTPUT_FORMATS),
  )
  define(
    flags.DEFINE_integer,
    "n_best",
    1,
    "Hypotheses to write for each line, best first: so many lines of text, "
    "the missing ones empty, or one JSON object.",
    read_by("predict"),
    lower_bound=1,
  )


def _define_alignment_flags() -> None:
  define(
    flags.DEFINE_bool,
    "alignments",
    False,
    "Tell which words of a translation come from which of its source: after "
    "|||, as Pharaoh's 0-0 1-2, or as fields of JSON. Words end at blanks; in "
    "scripts without them, each character is one.",
    read_by("predict"),
  )
  define(
    flags.DEFINE_integer,
    "alignment_layer",
    None,
    "The decoder's layer whose attention they are read from, counted from 0. "
    "Unset: all of them, which was the best.",
    read_by("predict").idle_if(
      lambda v: not v.alignments, "there are no --alignments"
    ),
    lower_bound=0,
  )


def _define_search_flags() -> None:
  define(
    flags.DEFINE_integer,
    "beam_size",
    None,
    "Hypotheses kept; 1 is greedy. Unset: the model's own, 4.",
    _SEARCHING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_float,
    "alpha",
    None,
    "Strength of length normalisation. Unset: the model's own, .6.",
    read_by("train", "eval", "predict", "score", "export", "attention"),
    lower_bound=0.0,
  )
  define(
    flags.DEFINE_integer,
    "extra_decode_length",
    None,
    "Tokens a translation may be longer than its source. Unset: the model's "
    "own, 50.",
    _SEARCHING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_float,
    "patience",
    None,
    "A sentence's search ends at the latest when so many times --beam_size "
    "hypotheses have ended, as CTranslate2's does with 1 (Kasai et al. 2022): "
    "much sooner where --alpha is large. 0: only when none that goes on could "
    "still win, as the official model's does; 1.5 for --engine=ctranslate2. "
    "Unset: the model's own.",
    _SEARCHING.idle_if(
      lambda v: "sample" in v and v.sample, "samples end one by one"
    ),
    lower_bound=0.0,
  )


def _define_engine_flags() -> None:
  define(
    flags.DEFINE_enum,
    "engine",
    TENSORFLOW,
    "What searches: tensorflow, the reference, or ctranslate2, which is faster "
    "on many processors and finds the same on nearly every line (extra "
    "[ctranslate2]).",
    read_by("eval", "predict"),
    enum_values=list(ENGINES),
  )
  define(
    flags.DEFINE_enum,
    "quantization",
    QUANTIZATIONS[0],
    "How CTranslate2 keeps the weights: in fewer bits they take less memory, "
    "and on many processors less time.",
    read_by("eval", "predict", "export").idle_if(
      lambda v: not _uses_ctranslate2(v), "TensorFlow keeps weights in --dtype"
    ),
    enum_values=list(QUANTIZATIONS),
  )


def _define_decoding_speed_flags() -> None:
  batches = read_by("train", "eval", "predict", "score").idle_if(
    lambda v: "mode" in v and v.mode == "train" and not v.bleu_source,
    "training translates nothing without --bleu_source",
  )
  define(
    flags.DEFINE_integer,
    "decode_batch_size",
    128,
    "Most lines decoded at once; as many fewer with a beam above 4. See "
    "--decode_batch_tokens.",
    _idle_line_by_line(batches),
    lower_bound=1,
  )
  define(
    flags.DEFINE_integer,
    "decode_batch_tokens",
    2048,
    "Most lines, times the tokens of the longest, decoded at once; as many "
    "fewer with a beam above 4.",
    _idle_line_by_line(batches),
    lower_bound=1,
  )
  define(
    flags.DEFINE_integer,
    "decode_workers",
    None,
    "Batches decoded side by side on a CPU, its threads shared out among "
    "them. Unset: one a processor, up to 4.",
    _idle_line_by_line(read_by("eval", "predict")).idle_if(
      lambda v: "padded_decode" in v and v.padded_decode,
      "XLA shares the processors out by itself",
    ),
    lower_bound=1,
  )


def _define_padding_flags() -> None:
  define(
    flags.DEFINE_bool,
    "padded_decode",
    False,
    "Pad lines to a multiple of --decode_max_length tokens, one shape of "
    "batches for each, and compile the search with XLA, as TPUs need it; no "
    "translation changes.",
    _TRANSLATING,
  )
  define(
    flags.DEFINE_integer,
    "decode_max_length",
    97,
    "With --padded_decode: tokens a line is padded to.",
    read_by("train", "eval", "predict")
    .idle_if(
      lambda v: not v.padded_decode,
      "lines of any length are decoded; see --padded_decode",
    )
    .idle_if(
      lambda v: "mode" in v and v.mode == "train" and not v.bleu_source,
      "training translates nothing without --bleu_source",
    ),
    lower_bound=1,
  )
