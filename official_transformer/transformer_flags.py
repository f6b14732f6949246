"""The flags of transformer_main, defined inside functions, never at import."""

from __future__ import annotations

from absl import flags

from flags import core as flags_core
from flags.core import help_wrap
from official_transformer.model_directory import LATEST
from official_transformer.model_params import (
  DEFAULT_MAX_LENGTH,
  DEFAULT_PARAM_SET,
  PARAM_SETS,
)

MODES = ("train", "average", "eval", "predict", "score")
OUTPUT_FORMATS = ("text", "jsonl")
STOPPING_MEASURES = ("bleu", "loss")
INVALID_UTF8 = ("refuse", "replace")


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
  _define_training_flags()
  _define_schedule_flags()
  _define_milestone_flags()
  _define_averaging_flags()
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


def _define_training_flags() -> None:
  flags.DEFINE_integer(
    "max_length",
    DEFAULT_MAX_LENGTH,
    help_wrap(
      "Longest training example in tokens, EOS included; longer ones are "
      "left out."
    ),
    lower_bound=2,
    short_name="ml",
  )
  flags.DEFINE_integer(
    "seed",
    None,
    help_wrap(
      "Decides initial weights, data order and dropout. Unset: a random "
      "one, kept when the run is resumed."
    ),
    lower_bound=0,
    upper_bound=2**31 - 1,
  )
  flags.DEFINE_bool(
    "deterministic",
    False,
    help_wrap(
      "Keep TensorFlow to operations that give the same bits each time: runs "
      "of one --seed are then equal, interrupted or not, on the same kind of "
      "machine with the same versions."
    ),
  )
  flags.DEFINE_integer(
    "max_nonfinite_steps",
    20,
    help_wrap(
      "Updates in a row that are skipped because the loss or its gradients "
      "are not finite; one more stops the run."
    ),
    lower_bound=0,
  )
  flags.DEFINE_bool(
    "skip_bad_records",
    False,
    help_wrap(
      "Leave out records that cannot be read, hold ids outside the vocabulary "
      "or an empty side, and missing shards, and report them, instead of "
      "refusing the data."
    ),
  )
  flags.DEFINE_string(
    "init_checkpoint",
    None,
    help_wrap(
      "A model directory, or checkpoints/step-N, best or average in one, whose "
      "weights a new model starts from, its step and optimizer afresh: "
      "fine-tuning."
    ),
  )
  flags.DEFINE_bool(
    "static_batch",
    False,
    help_wrap(
      "Pad every batch to one shape, --batch_size // --max_length sentences of "
      "--max_length tokens, instead of grouping sentences by length."
    ),
    short_name="sb",
  )
  flags.DEFINE_integer(
    "accumulate_steps",
    1,
    help_wrap(
      "Batches whose gradients are summed into one update, as if they were one."
    ),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "target_batch_tokens",
    None,
    help_wrap(
      "Tokens an update is to take: sums the gradients of as many batches of "
      "--batch_size as it takes."
    ),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "steps_per_loop",
    1,
    help_wrap(
      "Updates made in one call into TensorFlow, never past a report or a "
      "milestone; above 1, by the loop of --use_ctl."
    ),
    lower_bound=1,
  )
  flags.DEFINE_list(
    "profile_steps",
    None,
    help_wrap(
      "The first and the last step, such as 10,12, that TensorFlow's profiler "
      "records for TensorBoard."
    ),
  )
  flags.DEFINE_bool(
    "use_ctl",
    False,
    help_wrap(
      "Train by a loop over the strategy instead of Keras' fit: the same "
      "updates."
    ),
  )
  flags.DEFINE_bool(
    "clean",
    False,
    help_wrap("Delete the model in --model_dir first, and train a new one."),
  )
  flags.DEFINE_bool("enable_mlir_bridge", False, help_wrap("Accepted."))
  flags.DEFINE_list("hooks", None, help_wrap("Accepted."), short_name="hk")


def _define_schedule_flags() -> None:
  flags.DEFINE_integer(
    "train_steps",
    300000,
    help_wrap("Updates in all, counted across resumed runs."),
    lower_bound=1,
    short_name="ts",
  )
  flags.DEFINE_integer(
    "steps_between_evals",
    5000,
    help_wrap(
      "Updates between two milestones: a checkpoint, the validation loss, "
      "and BLEU where --bleu_source and --bleu_ref are given."
    ),
    lower_bound=1,
    short_name="sbe",
  )
  flags.DEFINE_integer(
    "train_epochs",
    None,
    help_wrap("Passes over the data in all, instead of --train_steps."),
    lower_bound=1,
    short_name="te",
  )
  flags.DEFINE_integer(
    "epochs_between_evals",
    1,
    help_wrap("With --train_epochs: passes between two milestones."),
    lower_bound=1,
    short_name="ebe",
  )
  flags.DEFINE_float(
    "stop_threshold",
    None,
    help_wrap(
      "Stop at the first milestone whose BLEU, ignoring case, reaches this."
    ),
    lower_bound=0.0,
    upper_bound=100.0,
    short_name="st",
  )
  flags.DEFINE_integer(
    "early_stopping_patience",
    None,
    help_wrap(
      "Stop after so many milestones in a row that were no better than the "
      "best before them; see --early_stopping_measure."
    ),
    lower_bound=1,
  )
  flags.DEFINE_enum(
    "early_stopping_measure",
    None,
    list(STOPPING_MEASURES),
    help_wrap(
      "What --early_stopping_patience looks at. Unset: BLEU, ignoring case, "
      "where --bleu_source is given, else the validation loss."
    ),
  )


def _define_milestone_flags() -> None:
  flags.DEFINE_integer(
    "validation_steps",
    64,
    help_wrap("Batches the validation loss is taken over; 0 for none."),
    lower_bound=0,
    short_name="vs",
  )
  flags.DEFINE_integer(
    "keep_checkpoint_max",
    5,
    help_wrap(
      "Checkpoints to keep, the newest, interim ones apart; 0 keeps all."
    ),
    lower_bound=0,
  )
  flags.DEFINE_integer(
    "save_checkpoints_steps",
    None,
    help_wrap("Save a checkpoint every so many updates too."),
    lower_bound=1,
  )
  flags.DEFINE_float(
    "save_checkpoints_secs",
    1800.0,
    help_wrap(
      "Save a checkpoint to go on from, which the next one replaces, after so "
      "many seconds without any; 0 for none."
    ),
    lower_bound=0.0,
  )
  flags.DEFINE_bool(
    "enable_checkpointing",
    True,
    help_wrap("Save a checkpoint at each milestone."),
  )
  flags.DEFINE_bool(
    "save_weights_only",
    True,
    help_wrap("Accepted; a checkpoint always holds the optimizer's state too."),
  )
  flags.DEFINE_bool(
    "enable_time_history",
    True,
    help_wrap("Report source and target tokens a second."),
  )
  flags.DEFINE_bool(
    "enable_tensorboard",
    False,
    help_wrap("Write TensorBoard scalars under the model directory."),
  )
  flags.DEFINE_bool(
    "enable_metrics_in_training",
    False,
    help_wrap(
      "Measure accuracy, top-5 accuracy, accuracy per sequence and negative "
      "log perplexity on training batches."
    ),
  )


def _define_averaging_flags() -> None:
  flags.DEFINE_integer(
    "average_last",
    5,
    help_wrap(
      "With --mode=average: how many checkpoints, the newest, interim ones "
      "and the one of step 0 apart."
    ),
    lower_bound=1,
  )
  flags.DEFINE_list(
    "average_checkpoints",
    None,
    help_wrap(
      "With --mode=average: the steps of this model's checkpoints to take, "
      "instead of --average_last."
    ),
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


def define_decoding_flags() -> None:
  """Defines what to translate, how, and where the translation goes."""
  flags.DEFINE_string(
    "checkpoint",
    LATEST,
    help_wrap(
      "The weights to use: latest, best (at a milestone of training, by BLEU "
      "where it was measured, else by validation loss), average (see "
      "--mode=average), or the step of a checkpoint that is kept."
    ),
  )
  _define_text_flags()
  _define_search_flags()
  _define_decoding_speed_flags()


def _define_text_flags() -> None:
  """Defines what is read and what is written."""
  flags.DEFINE_string("text", None, help_wrap("One sentence to translate."))
  flags.DEFINE_string(
    "file", None, help_wrap("A file to translate; - is standard input.")
  )
  flags.DEFINE_string(
    "file_out",
    "-",
    help_wrap("Where its translation goes; - is standard output."),
  )
  flags.DEFINE_enum(
    "output_format",
    "text",
    list(OUTPUT_FORMATS),
    help_wrap(
      "text: a line for each line. jsonl: a JSON object for each, with score, "
      "tokens and flags."
    ),
  )
  flags.DEFINE_integer(
    "n_best",
    1,
    help_wrap(
      "Hypotheses to write for each line, best first: so many lines of text, "
      "the missing ones empty, or one JSON object."
    ),
    lower_bound=1,
  )
  flags.DEFINE_bool(
    "interactive",
    False,
    help_wrap(
      "Answer each line of standard input as soon as it is there, as on a "
      "terminal."
    ),
  )
  flags.DEFINE_bool(
    "split_long_lines",
    True,
    help_wrap(
      "Cut lines that are longer than the model was trained with at the ends "
      "of sentences, and join the translations. Off: decode them whole, which "
      "takes memory by the square of their length."
    ),
  )
  flags.DEFINE_enum(
    "invalid_utf8",
    "refuse",
    list(INVALID_UTF8),
    help_wrap(
      "What to do about a line of --file that is not UTF-8: refuse the file, "
      "or replace the bytes by U+FFFD and report the line, as --interactive "
      "always does."
    ),
  )


def _define_search_flags() -> None:
  """Defines what decides which translation is found."""
  flags.DEFINE_integer(
    "beam_size",
    None,
    help_wrap("Hypotheses kept; 1 is greedy. Unset: the model's own, 4."),
    lower_bound=1,
  )
  flags.DEFINE_float(
    "alpha",
    None,
    help_wrap("Strength of length normalisation. Unset: the model's own, .6."),
    lower_bound=0.0,
  )
  flags.DEFINE_integer(
    "extra_decode_length",
    None,
    help_wrap(
      "Tokens a translation may be longer than its source. Unset: the "
      "model's own, 50."
    ),
    lower_bound=0,
  )


def _define_decoding_speed_flags() -> None:
  """Defines what changes how fast lines are decoded, and in which memory."""
  flags.DEFINE_integer(
    "decode_batch_size",
    128,
    help_wrap("Most lines decoded at once; see --decode_batch_tokens."),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "decode_batch_tokens",
    2048,
    help_wrap("Most lines, times the tokens of the longest, decoded at once."),
    lower_bound=1,
  )
  flags.DEFINE_integer(
    "decode_workers",
    None,
    help_wrap(
      "Batches decoded side by side on a CPU, its threads shared out among "
      "them. Unset: one a processor, up to 4."
    ),
    lower_bound=1,
  )
  flags.DEFINE_bool(
    "padded_decode",
    False,
    help_wrap(
      "Pad lines to a multiple of --decode_max_length tokens, one shape of "
      "batches for each, and compile the search with XLA, as TPUs need it; no "
      "translation changes."
    ),
  )
  flags.DEFINE_integer(
    "decode_max_length",
    97,
    help_wrap("With --padded_decode: tokens a line is padded to."),
    lower_bound=1,
  )
