"""The flags of translation_report."""

from __future__ import annotations

from absl import flags

from official_transformer.commands.decoding_flags import define_checkpoint_flag
from official_transformer.commands.scoring_flags import (
  define_certainty_flags,
  define_comet_flags,
  define_tokenize_flag,
)
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import (
  Effect,
  define,
  start_section,
)


def define_report_flags() -> None:
  """Defines the command's flags."""
  start_section("translation_report")
  for name, text in (
    ("source", "File of the source text."),
    ("reference", "File of the reference translation; several between commas."),
    ("output", "The page to write: a file that any browser opens."),
  ):
    define(flags.DEFINE_string, name, None, text, required=True)
  define(
    flags.DEFINE_multi_string,
    "translation",
    None,
    "File of translated text, or of --mode=predict's JSON lines, if its name "
    "ends in .jsonl. Given again: a second one, to compare with the first.",
    required=True,
  )
  define(
    flags.DEFINE_string,
    "title",
    None,
    "The page's heading. Unset: what is translated.",
  )
  define(
    flags.DEFINE_string,
    "frequency_text",
    None,
    "Text, such as the training's target side, in which words are counted: by "
    "their rarest word, sentences are put into groups. Unset: the references.",
  )
  define_tokenize_flag("tokenize", Effect())
  define_certainty_flags(Effect())
  define_comet_flags(Effect())
  _define_attention_flags()


def _define_attention_flags() -> None:
  start_section("Attention in the report")
  of_model = Effect().idle_if(
    lambda v: not v.model_dir, "there is no --model_dir"
  )
  define(
    flags.DEFINE_string,
    "model_dir",
    None,
    "The model that made the first translation: its attention is shown for "
    "some sentences.",
  )
  define(
    flags.DEFINE_list,
    "attention_lines",
    None,
    "The sentences, by number, from 1. Unset: those where two systems differ "
    "most, or where one is worst.",
    of_model,
  )
  define(
    flags.DEFINE_integer,
    "attention_count",
    10,
    "How many, if --attention_lines does not say.",
    of_model.idle_if(
      lambda v: v.attention_lines is not None, "--attention_lines says which"
    ),
    lower_bound=0,
  )
  define_checkpoint_flag()
  flags_core.define_num_gpus()
