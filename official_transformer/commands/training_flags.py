"""The flags of `--mode=train`, and of `--mode=average` after it."""

from __future__ import annotations

from absl import flags

from official_transformer.commands.regularization_flags import (
  define_sampling_flags,
  define_weight_flags,
)
from official_transformer.flag_groups.core import (
  DTYPES,
  accepted_only,
  define,
  read_by,
  start_section,
)
from official_transformer.model_params import DEFAULT_MAX_LENGTH

STOPPING_MEASURES = ("bleu", "loss")

_TRAINING = read_by("train")
_SAVING = _TRAINING.idle_if(
  lambda v: not v.enable_checkpointing, "nothing is saved"
)


def define_training_flags() -> None:
  """Defines how a run goes, when it saves, measures and ends."""
  start_section("Training: data and batches")
  _define_batch_flags()
  define_sampling_flags()
  start_section("Training: how a run goes")
  _define_run_flags()
  define_weight_flags()
  _define_loop_flags()
  start_section("Training: how long, and when it is evaluated")
  _define_length_flags()
  _define_stopping_flags()
  start_section("Training: what is saved and reported")
  _define_saving_flags()
  _define_report_flags()


def _define_batch_flags() -> None:
  define(
    flags.DEFINE_integer,
    "max_length",
    DEFAULT_MAX_LENGTH,
    "Longest training example in tokens, EOS included; longer ones are left "
    "out.",
    _TRAINING,
    lower_bound=2,
    short_name="ml",
  )
  define(
    flags.DEFINE_bool,
    "static_batch",
    False,
    "Pad every batch to one shape, --batch_size // --max_length sentences of "
    "--max_length tokens, instead of grouping sentences by length.",
    _TRAINING,
    short_name="sb",
  )
  define(
    flags.DEFINE_integer,
    "accumulate_steps",
    1,
    "Batches whose gradients are summed into one update, as if they were one.",
    _TRAINING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_integer,
    "target_batch_tokens",
    None,
    "Tokens an update is to take: sums the gradients of as many batches of "
    "--batch_size as it takes.",
    _TRAINING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_bool,
    "skip_bad_records",
    False,
    "Leave out records that cannot be read, hold ids outside the vocabulary "
    "or an empty side, and missing shards, and report them, instead of "
    "refusing the data.",
    _TRAINING.idle_if(lambda v: v.use_synthetic_data, "no data are read"),
  )


def _define_run_flags() -> None:
  define(
    flags.DEFINE_integer,
    "seed",
    None,
    "Decides initial weights, data order and dropout. Unset: a random one, "
    "kept when the run is resumed.",
    _TRAINING,
    lower_bound=0,
    upper_bound=2**31 - 1,
  )
  define(
    flags.DEFINE_bool,
    "deterministic",
    False,
    "Keep TensorFlow to operations that give the same bits each time: runs of "
    "one --seed are then equal, interrupted or not, on the same kind of "
    "machine with the same versions.",
    _TRAINING,
  )
  define(
    flags.DEFINE_integer,
    "max_nonfinite_steps",
    20,
    "Updates in a row that are skipped because the loss or its gradients are "
    "not finite; one more stops the run.",
    _TRAINING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_string,
    "init_checkpoint",
    None,
    "A model directory, or checkpoints/step-N, best or average in one, whose "
    "weights a new model starts from, its step and optimizer afresh: "
    "fine-tuning.",
    _TRAINING,
    path=True,
  )
  define(
    flags.DEFINE_bool,
    "clean",
    False,
    "Delete the model in --model_dir first, and train a new one.",
    _TRAINING,
  )


def _define_loop_flags() -> None:
  define(
    flags.DEFINE_bool,
    "recompute",
    False,
    "Compute each layer again in the backward pass instead of keeping what it "
    "computed: less memory, or larger batches, for a longer step.",
    _TRAINING,
  )
  define(
    flags.DEFINE_integer,
    "steps_per_loop",
    1,
    "Updates made in one call into TensorFlow, never past a report or an "
    "evaluation; above 1, by the loop of --use_ctl.",
    _TRAINING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_list,
    "profile_steps",
    None,
    "The first and the last step, such as 10,12, that TensorFlow's profiler "
    "records for TensorBoard.",
    _TRAINING,
  )
  define(
    flags.DEFINE_bool,
    "use_ctl",
    False,
    "Train by a loop over the strategy instead of Keras' fit: the same "
    "updates.",
    _TRAINING,
  )
  define(
    flags.DEFINE_bool,
    "enable_mlir_bridge",
    False,
    "Accepted.",
    accepted_only("TensorFlow always compiles through it"),
  )
  define(
    flags.DEFINE_list,
    "hooks",
    None,
    "Accepted.",
    accepted_only(
      "they belong to TensorFlow 1; see --log_steps and --enable_tensorboard"
    ),
    short_name="hk",
  )


def _define_length_flags() -> None:
  define(
    flags.DEFINE_integer,
    "train_steps",
    300000,
    "Updates in all, counted across resumed runs; with --plots=schedule, those "
    "that are drawn.",
    read_by("train", "plot"),
    lower_bound=1,
    short_name="ts",
  )
  define(
    flags.DEFINE_integer,
    "steps_between_evals",
    5000,
    "Updates between two evaluations, each of which saves a checkpoint and "
    "takes the validation loss, and BLEU if --bleu_source and --bleu_ref are "
    "given.",
    _TRAINING.idle_if(
      lambda v: v.train_epochs is not None,
      "with --train_epochs, see --epochs_between_evals",
    ),
    lower_bound=1,
    short_name="sbe",
  )
  define(
    flags.DEFINE_integer,
    "train_epochs",
    None,
    "Passes over the data in all, instead of --train_steps.",
    _TRAINING,
    lower_bound=1,
    short_name="te",
  )
  define(
    flags.DEFINE_integer,
    "epochs_between_evals",
    1,
    "With --train_epochs: passes between two evaluations.",
    _TRAINING.idle_if(
      lambda v: v.train_epochs is None,
      "it goes with --train_epochs; see --steps_between_evals",
    ),
    lower_bound=1,
    short_name="ebe",
  )


def _define_stopping_flags() -> None:
  define(
    flags.DEFINE_float,
    "stop_threshold",
    None,
    "Stop at the first evaluation whose BLEU, ignoring case, reaches this.",
    _TRAINING,
    lower_bound=0.0,
    upper_bound=100.0,
    short_name="st",
  )
  define(
    flags.DEFINE_integer,
    "early_stopping_patience",
    None,
    "Stop after so many evaluations in a row that were no better than the "
    "best before them; see --early_stopping_measure.",
    _TRAINING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_enum,
    "early_stopping_measure",
    None,
    "What --early_stopping_patience looks at. Unset: BLEU, ignoring case, if "
    "--bleu_source is given, else the validation loss.",
    _TRAINING.idle_if(
      lambda v: v.early_stopping_patience is None,
      "it goes with --early_stopping_patience",
    ),
    enum_values=list(STOPPING_MEASURES),
  )
  define(
    flags.DEFINE_integer,
    "validation_steps",
    64,
    "Batches the validation loss is taken over; 0 for none.",
    _TRAINING.idle_if(lambda v: v.use_synthetic_data, "no data are read"),
    lower_bound=0,
    short_name="vs",
  )


def _define_saving_flags() -> None:
  define(
    flags.DEFINE_integer,
    "keep_checkpoint_max",
    5,
    "Checkpoints to keep, the newest, interim ones apart; 0 keeps all.",
    _SAVING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_integer,
    "save_checkpoints_steps",
    None,
    "Save a checkpoint every so many updates too.",
    _SAVING,
    lower_bound=1,
  )
  define(
    flags.DEFINE_float,
    "save_checkpoints_secs",
    1800.0,
    "Save a checkpoint to go on from, which the next one replaces, after so "
    "many seconds without any; 0 for none.",
    _SAVING,
    lower_bound=0.0,
  )
  define(
    flags.DEFINE_bool,
    "enable_checkpointing",
    True,
    "Save a checkpoint at each evaluation.",
    _TRAINING,
  )
  define(
    flags.DEFINE_bool,
    "save_weights_only",
    True,
    "Accepted; a checkpoint always holds the optimizer's state too.",
    accepted_only(
      "every checkpoint holds the optimizer's state too, so that a run can "
      "always be resumed"
    ),
  )


def _define_report_flags() -> None:
  define(
    flags.DEFINE_bool,
    "enable_time_history",
    True,
    "Report source and target tokens a second.",
    _TRAINING,
  )
  define(
    flags.DEFINE_bool,
    "enable_tensorboard",
    False,
    "Write what TensorBoard shows under the model directory: numbers, "
    "hyper-parameters and, with --bleu_source, samples and their attention.",
    _TRAINING,
  )
  define(
    flags.DEFINE_bool,
    "tensorboard_histograms",
    False,
    "Write the histograms of all weights, too, at each evaluation.",
    _TRAINING.idle_if(
      lambda v: not v.enable_tensorboard, "see --enable_tensorboard"
    ),
  )
  define(
    flags.DEFINE_bool,
    "enable_metrics_in_training",
    False,
    "Measure accuracy, top-5 accuracy, accuracy per sequence and negative log "
    "perplexity on training batches.",
    _TRAINING,
  )


def define_averaging_flags() -> None:
  """Defines which checkpoints are averaged."""
  start_section("Averaging")
  define(
    flags.DEFINE_integer,
    "average_last",
    5,
    "How many of the newest checkpoints; step 0 and interim ones are left out.",
    read_by("average").idle_if(
      lambda v: v.average_checkpoints is not None,
      "--average_checkpoints says which",
    ),
    lower_bound=1,
  )
  define(
    flags.DEFINE_list,
    "average_checkpoints",
    None,
    "The steps of this model's checkpoints to take, instead of --average_last.",
    read_by("average"),
  )
  define(
    flags.DEFINE_enum,
    "storage",
    "fp32",
    "What numbers the average is stored in: fp16 and bf16 take half the space, "
    "and are read as float32 by everything that reads a model.",
    read_by("average"),
    enum_values=list(DTYPES),
  )
