"""The flags of `--mode=train`, and of `--mode=average` after it."""

from __future__ import annotations

from absl import flags

from flags.core import help_wrap
from official_transformer.model_params import DEFAULT_MAX_LENGTH

STOPPING_MEASURES = ("bleu", "loss")


def define_training_flags() -> None:
  """Defines how a run goes, when it saves, measures and ends."""
  _define_run_flags()
  _define_schedule_flags()
  _define_milestone_flags()


def _define_run_flags() -> None:
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


def define_averaging_flags() -> None:
  """Defines which checkpoints are averaged."""
  flags.DEFINE_integer(
    "average_last",
    5,
    help_wrap(
      "With --mode=average: how many of the newest checkpoints; step 0 and "
      "interim ones are left out."
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
