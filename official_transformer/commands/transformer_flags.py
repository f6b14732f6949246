"""The flags of transformer_main, defined inside functions, never at import."""

from __future__ import annotations

from absl import flags

from official_transformer.commands.decoding_flags import define_decoding_flags
from official_transformer.commands.export_flags import define_export_flags
from official_transformer.commands.picture_flags import define_picture_flags
from official_transformer.commands.scoring import (
  TOKENIZE_HELP,
  MetricsOptions,
)
from official_transformer.commands.training_flags import (
  define_averaging_flags,
  define_training_flags,
)
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, read_by
from official_transformer.model_params import DEFAULT_PARAM_SET, PARAM_SETS

MODES = (
  "train",
  "average",
  "eval",
  "predict",
  "score",
  "export",
  "attention",
  "plot",
)

_COMPUTING = read_by(
  "train", "eval", "predict", "score", "export", "attention", "plot"
)


def define_transformer_flags() -> None:
  """Defines every flag of transformer_main."""
  flags_core.start_section("What to do, with which model")
  define(
    flags.DEFINE_enum,
    "mode",
    "train",
    "train: train or resume a model. average: make a checkpoint of the mean "
    "of several, for --checkpoint=average. eval: translate --bleu_source and "
    "score it against --bleu_ref. predict: translate --text or --file. "
    "score: tell how probable each line of --reference_file is as the "
    "translation of --file. export: write the model for use without this "
    "package. attention: write what the model attends to, as numbers and as "
    "pictures. plot: draw runs, schedules, positions and embeddings.",
    enum_values=list(MODES),
  )
  flags_core.define_base(
    data_dir="/tmp/translate_ende",
    model_dir="/tmp/transformer_model",
    batch_size=None,
  )
  define_model_flags()
  _define_evaluation_flags()
  define_training_flags()
  define_averaging_flags()
  define_decoding_flags()
  define(
    flags.DEFINE_string,
    "reference_file",
    None,
    "The translations of --file: to score, or to show the attention of. "
    "Without it, --mode=attention takes the model's own.",
    read_by("score", "attention"),
    path=True,
  )
  define_picture_flags()
  flags_core.define_flags(flags_core.BeamOptions, read_by("predict"))
  define_export_flags()
  flags_core.start_section("Precision, compilation, threads")
  flags_core.define_performance()
  flags_core.start_section("Devices")
  flags_core.define_distribution()
  flags_core.define_device()
  flags_core.start_section("Reports, and sinks that upstream had")
  flags_core.define_benchmark()


def define_model_flags() -> None:
  """Defines what says which model is meant."""
  define(
    flags.DEFINE_enum,
    "param_set",
    DEFAULT_PARAM_SET,
    "The hyper-parameters to start from.",
    _COMPUTING,
    enum_values=list(PARAM_SETS),
    short_name="mp",
  )
  define(
    flags.DEFINE_string,
    "params_override",
    "",
    "Fields of the parameter set to change, e.g. hidden_size=128,num_heads=4.",
    _COMPUTING,
  )
  define(
    flags.DEFINE_string,
    "vocab_file",
    None,
    "The vocabulary. Unset: the model directory's own, else the one that the "
    "data directory names.",
    _COMPUTING,
    short_name="vf",
    path=True,
  )


def _define_evaluation_flags() -> None:
  for name, short_name, text in (
    (
      "bleu_source",
      "bls",
      "Text to translate for BLEU, in training too. With --mode=eval: several "
      "files between commas.",
    ),
    ("bleu_ref", "blr", "Its reference translation; of each file, in order."),
  ):
    define(
      flags.DEFINE_string,
      name,
      None,
      text,
      read_by("train", "eval"),
      short_name=short_name,
      path=True,
    )
  flags.register_multi_flags_validator(
    ["bleu_source", "bleu_ref"],
    lambda values: bool(values["bleu_source"]) == bool(values["bleu_ref"]),
    "--bleu_source and --bleu_ref are given together or not at all",
  )
  define(
    flags.DEFINE_string,
    "bleu_tokenize",
    "auto",
    TOKENIZE_HELP,
    read_by("train", "eval").idle_if(
      lambda v: not v.bleu_source, "nothing is scored without --bleu_source"
    ),
  )
  define(
    flags.DEFINE_string,
    "compare_with",
    None,
    "Another model directory, or the same: it translates the same text, by "
    "its own beam and alpha unless they are given, and --model_dir is compared "
    "with it.",
    read_by("eval"),
    path=True,
  )
  define(
    flags.DEFINE_string,
    "compare_checkpoint",
    None,
    "The weights of --compare_with. Unset: as --checkpoint says.",
    read_by("eval").idle_if(
      lambda v: not v.compare_with, "there is no --compare_with"
    ),
  )
  flags_core.define_flags(MetricsOptions, read_by("eval"))
