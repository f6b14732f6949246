"""The flags of transformer_main, defined inside functions, never at import."""

from __future__ import annotations

from absl import flags

from flags import core as flags_core
from flags.core import help_wrap
from official_transformer.commands.decoding_flags import define_decoding_flags
from official_transformer.commands.training_flags import (
  define_averaging_flags,
  define_training_flags,
)
from official_transformer.model_params import DEFAULT_PARAM_SET, PARAM_SETS

MODES = ("train", "average", "eval", "predict", "score")


def define_transformer_flags() -> None:
  """Defines every flag of transformer_main."""
  flags_core.define_base(
    data_dir="/tmp/translate_ende",
    model_dir="/tmp/transformer_model",
    batch_size=None,
  )
  flags_core.define_performance()
  flags_core.define_distribution()
  flags_core.define_device()
  flags_core.define_benchmark()
  flags.DEFINE_enum(
    "mode",
    "train",
    list(MODES),
    help_wrap(
      "train: train or resume a model. average: make a checkpoint of the mean "
      "of several, for --checkpoint=average. eval: translate --bleu_source and "
      "score it against --bleu_ref. predict: translate --text or --file. "
      "score: tell how probable each line of --reference_file is as the "
      "translation of --file."
    ),
  )
  define_model_flags()
  define_training_flags()
  define_averaging_flags()
  _define_evaluation_flags()
  define_decoding_flags()
  flags.DEFINE_string(
    "reference_file",
    None,
    help_wrap("With --mode=score: the translations of --file to score."),
  )


def define_model_flags() -> None:
  """Defines what says which model is meant."""
  flags.DEFINE_enum(
    "param_set",
    DEFAULT_PARAM_SET,
    list(PARAM_SETS),
    help_wrap("The hyper-parameters to start from."),
    short_name="mp",
  )
  flags.DEFINE_string(
    "params_override",
    "",
    help_wrap(
      "Fields of the parameter set to change, e.g. hidden_size=128,num_heads=4."
    ),
  )
  flags.DEFINE_string(
    "vocab_file",
    None,
    help_wrap(
      "The vocabulary. Unset: the model directory's own, else the one that "
      "the data directory names."
    ),
    short_name="vf",
  )


def _define_evaluation_flags() -> None:
  flags.DEFINE_string(
    "bleu_source",
    None,
    help_wrap("Text to translate for BLEU, at milestones and in eval mode."),
    short_name="bls",
  )
  flags.DEFINE_string(
    "bleu_ref",
    None,
    help_wrap("Its reference translation."),
    short_name="blr",
  )
  flags.register_multi_flags_validator(
    ["bleu_source", "bleu_ref"],
    lambda values: bool(values["bleu_source"]) == bool(values["bleu_ref"]),
    "--bleu_source and --bleu_ref are given together or not at all",
  )
