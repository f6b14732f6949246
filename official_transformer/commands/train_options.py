"""Flags of training: data, batches, length, saving, reports."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from official_transformer.commands.decoding_options import (
  BeamSearchOptions,
  PaddedLineOptions,
)
from official_transformer.commands.export import FinalExportOptions
from official_transformer.commands.flag_records import Options, flag
from official_transformer.commands.model_options import ModelOptions
from official_transformer.commands.plot import TrainStepsOptions
from official_transformer.commands.shared_options import (
  NO_DATA,
  BaseOptions,
  DistributionOptions,
  LogStepsOptions,
  PerformanceOptions,
  TpuOptions,
)
from official_transformer.commands.text_options import EvaluationOptions
from official_transformer.data.buckets import Batching
from official_transformer.data.data_directory import DataDirectory
from official_transformer.data.segmentation import SIDES, SubwordSampling
from official_transformer.errors import InputError
from official_transformer.model_directory.measurements import (
  BLEU,
  VALIDATION_LOSS,
)
from official_transformer.model_params import DEFAULT_MAX_LENGTH
from official_transformer.training.requested_batching import RequestedBatching
from official_transformer.training.settings import (
  EarlyStopping,
  Execution,
  TrainingSettings,
)

STOPPING_MEASURES = ("bleu", "loss")
LOSS_NEEDED = (
  "--early_stopping_patience looks at the validation loss, or at BLEU if "
  "--bleu_source and --bleu_ref are given"
)
_NOT_SAVED = (
  lambda o: not o.enable_checkpointing or o.use_synthetic_data,
  "nothing is saved",
)
_NOT_SAMPLED = (
  lambda o: o.sampling_alpha is None,
  "there is no --sampling_alpha",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchingOptions(BaseOptions, TpuOptions, DistributionOptions):
  """Flags of batches."""

  heading = "Training: data and batches"

  max_length: int = flag(
    DEFAULT_MAX_LENGTH,
    "Longest training example in tokens, EOS included; longer ones are left "
    "out.",
    lower_bound=2,
    short_name="ml",
  )
  static_batch: bool = flag(
    False,
    "Pad every batch to one shape, --batch_size // --max_length sentences of "
    "--max_length tokens, instead of grouping sentences by length.",
    short_name="sb",
  )
  accumulate_steps: int = flag(
    1,
    "Batches whose gradients are summed into one update, as if they were one.",
    lower_bound=1,
  )
  target_batch_tokens: int | None = flag(
    None,
    "Tokens of an update: the gradients of as many batches of --batch_size as "
    "needed are summed.",
    lower_bound=1,
  )

  @property
  def batching(self) -> RequestedBatching:
    """The given settings that decide the order of the data."""
    given = {
      field.name: getattr(self, field.name)
      for field in dataclasses.fields(RequestedBatching)
      if field.name in self.given
    }
    if self.distribution_strategy == "tpu":
      given["static_batch"] = True  # It compiles the step for one shape.
    return RequestedBatching(**given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingOptions(Options):
  """Flags of bad records, and of subword sampling."""

  heading = "Training: data and batches"

  skip_bad_records: bool = flag(
    False,
    "Leave out records that cannot be read, hold ids outside the vocabulary "
    "or an empty side, and missing shards, and report them, instead of "
    "refusing the data.",
    NO_DATA,
  )
  sampling_alpha: float | None = flag(
    None,
    "Resample the subword segmentations at every epoch (subword "
    "regularisation). With a unigram model: how much better segmentations are "
    "preferred, .2 to .5 (0: not at all). With BPE: the probability that a "
    "merge is left out, .1.",
    NO_DATA,
    lower_bound=0.0,
  )
  sampling_nbest: int = flag(
    64,
    "How many of the best segmentations a unigram model draws from; -1: all.",
    _NOT_SAMPLED,
    lower_bound=-1,
  )
  sampling_sides: str = flag(
    "both",
    "Sides whose segmentations are resampled.",
    _NOT_SAMPLED,
    choices=SIDES,
  )

  @property
  def subword_sampling(self) -> SubwordSampling | None:
    """Settings of subword sampling; None if it is off."""
    if self.sampling_alpha is None:
      return None
    return SubwordSampling(
      self.sampling_alpha, self.sampling_nbest, self.sampling_sides
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopOptions(PerformanceOptions):
  """Flags of the training loop."""

  heading = "Training: how a run goes"

  seed: int | None = flag(
    None,
    "Decides initial weights, data order and dropout. Unset: a random seed, "
    "which a resumed run keeps.",
    lower_bound=0,
    upper_bound=2**31 - 1,
  )
  deterministic: bool = flag(
    False,
    "Keep TensorFlow to operations that give the same bits each time: runs of "
    "one --seed are then equal, interrupted or not, on the same kind of "
    "machine with the same versions.",
  )
  max_nonfinite_steps: int = flag(
    20,
    "Updates in a row that are skipped because the loss or its gradients are "
    "not finite; one more stops the run.",
    lower_bound=0,
  )
  init_checkpoint: str | None = flag(
    None,
    "A model directory, or checkpoints/step-N, best or average in one, whose "
    "weights a new model starts from, its step and optimizer afresh: "
    "fine-tuning.",
    path=True,
  )
  clean: bool = flag(
    False, "Delete the model in --model_dir first, and train a new one."
  )
  average_decay: float = flag(
    0.0,
    "Keep a moving average of the weights with this decay, such as .999. "
    "Evaluations use it, and so does decoding from a checkpoint. 0: none.",
    lower_bound=0.0,
    upper_bound=0.999999,
  )
  freeze: tuple[str, ...] | None = flag(
    None,
    "Weights that stay as they are: patterns of variables' paths between "
    "commas, such as encoder_stack/*,embedding/*.",
  )
  recompute: bool = flag(
    False,
    "Compute each layer again in the backward pass instead of keeping its "
    "activations: less memory, or larger batches, for a longer step.",
  )
  steps_per_loop: int = flag(
    1,
    "Updates made in one call into TensorFlow, never past a report or an "
    "evaluation; above 1, by the loop of --use_ctl.",
    lower_bound=1,
  )
  profile_steps: tuple[str, ...] | None = flag(
    None,
    "The first and the last step, such as 10,12, that TensorFlow's profiler "
    "records for TensorBoard.",
  )
  use_ctl: bool = flag(
    False,
    "Train by a loop over the strategy instead of Keras' fit: the same "
    "updates.",
  )

  @property
  def profiled(self) -> tuple[int, int] | None:
    """The first and the last step to record.

    Raises:
      InputError: if they are no two steps in order.
    """
    if not self.profile_steps:
      return None
    try:
      first, last = (int(text) for text in self.profile_steps)
    except ValueError:
      first, last = 0, 0
    if not 1 <= first <= last:
      raise InputError(
        f"--profile_steps={','.join(self.profile_steps)}: give the first and "
        "the last step to record, such as 10,12"
      )
    return first, last


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthOptions(TrainStepsOptions, EvaluationOptions):
  """Flags of the length of a run, and of its evaluations."""

  heading = "Training: how long, and when it is evaluated"

  steps_between_evals: int = flag(
    5000,
    "Updates between two evaluations, each of which saves a checkpoint and "
    "takes the validation loss, and BLEU if --bleu_source and --bleu_ref are "
    "given.",
    (
      lambda o: o.train_epochs is not None,
      "with --train_epochs, see --epochs_between_evals",
    ),
    lower_bound=1,
    short_name="sbe",
  )
  train_epochs: int | None = flag(
    None,
    "Number of epochs, instead of --train_steps.",
    lower_bound=1,
    short_name="te",
  )
  epochs_between_evals: int = flag(
    1,
    "With --train_epochs: epochs between two evaluations.",
    (
      lambda o: o.train_epochs is None,
      "it goes with --train_epochs; see --steps_between_evals",
    ),
    lower_bound=1,
    short_name="ebe",
  )
  stop_threshold: float | None = flag(
    None,
    "Stop at the first evaluation whose official BLEU, ignoring case, reaches "
    "this.",
    lower_bound=0.0,
    upper_bound=100.0,
    short_name="st",
  )
  early_stopping_patience: int | None = flag(
    None,
    "Stop after this many evaluations in a row that were no better than the "
    "best one before them; see --early_stopping_measure.",
    lower_bound=1,
  )
  early_stopping_measure: str | None = flag(
    None,
    "Measure of --early_stopping_patience: the validation loss, or sacreBLEU "
    "in --bleu_tokenize. Unset: bleu if --bleu_source is given, else loss.",
    (
      lambda o: o.early_stopping_patience is None,
      "it goes with --early_stopping_patience",
    ),
    choices=STOPPING_MEASURES,
  )
  validation_steps: int = flag(
    64,
    "Batches the validation loss is taken over; 0 for none.",
    NO_DATA,
    lower_bound=0,
    short_name="vs",
  )

  @property
  def early_stopping(self) -> EarlyStopping | None:
    """The rule that ends the run early, if there is one."""
    if self.early_stopping_patience is None:
      return None
    measure = self.early_stopping_measure
    by_loss = measure == "loss" or (measure is None and not self.bleu_source)
    return EarlyStopping(
      VALIDATION_LOSS if by_loss else BLEU, self.early_stopping_patience
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavingOptions(LogStepsOptions):
  """Flags of saving and reporting."""

  heading = "Training: what is saved and reported"

  keep_checkpoint_max: int = flag(
    5,
    "Checkpoints to keep, the newest, interim ones apart; 0 keeps all.",
    _NOT_SAVED,
    lower_bound=0,
  )
  save_checkpoints_steps: int | None = flag(
    None,
    "Updates between further checkpoints, besides those of evaluations.",
    _NOT_SAVED,
    lower_bound=1,
  )
  save_checkpoints_secs: float = flag(
    1800.0,
    "Save a checkpoint for resuming after this many seconds without one; the "
    "next checkpoint replaces it. 0: none.",
    _NOT_SAVED,
    lower_bound=0.0,
  )
  enable_checkpointing: bool = flag(
    True, "Save a checkpoint at each evaluation."
  )
  enable_time_history: bool = flag(
    True, "Report source and target tokens a second."
  )
  enable_tensorboard: bool = flag(
    False,
    "Write a log for TensorBoard into the model directory: numbers, "
    "hyper-parameters and, with --bleu_source, samples and their attention.",
  )
  tensorboard_histograms: bool = flag(
    False,
    "Write the histograms of all weights, too, at each evaluation.",
    (lambda o: not o.enable_tensorboard, "see --enable_tensorboard"),
  )
  enable_metrics_in_training: bool = flag(
    False,
    "Measure accuracy, top-5 accuracy, accuracy per sequence and negative log "
    "perplexity on training batches.",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions(
  BatchingOptions, SamplingOptions, LoopOptions, LengthOptions, SavingOptions
):
  """A run, apart from the model's own parameters."""

  def settings(
    self,
    batching: Batching,
    seed: int,
    replicas: int,
    evaluated: tuple[int, ...],
  ) -> TrainingSettings:
    """Returns the flags as settings of a training.

    Args:
      batching: batching of the model.
      seed: seed of the run.
      replicas: replicas that share a batch.
      evaluated: the steps of all evaluations, the last step last, if epochs
        decide them.
    """
    settings = {
      **self._fields_of(TrainingSettings),
      "batching": batching,
      "seed": seed,
      "execution": self._execution(batching, replicas),
      "profile_steps": self.profiled,
      "freeze": self.freeze or (),
      # A model that was trained on ones must not be trained further.
      "enable_checkpointing": self.enable_checkpointing
      and not self.use_synthetic_data,
    }
    if evaluated:
      settings["train_steps"] = evaluated[-1]
      settings["evaluated_steps"] = evaluated
    return TrainingSettings(**settings)

  @property
  def learning_flags(self) -> dict[str, Any]:
    """Flags that decide what is learned, by name; None is unset.

    A model's parameters, batches and seed are kept elsewhere, and checkpoints
    tell of moving averages and frozen weights.
    """
    sampling = self.subword_sampling
    fields = dataclasses.asdict(sampling) if sampling else {"alpha": None}
    return {"dtype": self.dtype} | {
      f"sampling_{name}": value for name, value in fields.items()
    }

  def _execution(self, batching: Batching, replicas: int) -> Execution:
    """Returns how updates are computed."""
    is_static = batching.static_batch or self.use_synthetic_data
    return Execution(
      **{
        **self._fields_of(Execution),
        "loss_scale": self.fixed_loss_scale,
        # XLA compiles no exchange between devices, but on TPUs, unasked.
        "compile": self.enable_xla and is_static and replicas == 1,
      }
    )

  def _fields_of(self, record: type) -> dict[str, Any]:
    """Returns the values of the fields that another record also has."""
    names = (field.name for field in dataclasses.fields(record))
    return {name: getattr(self, name) for name in names if hasattr(self, name)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions(
  RunOptions,
  ModelOptions,
  PaddedLineOptions,
  BeamSearchOptions,
  FinalExportOptions,
):
  """All flags of training."""

  summary = "train or resume a model"
  most_used = (
    "data_dir",
    "model_dir",
    "vocab_file",
    "param_set",
    "batch_size",
    "train_steps",
    "steps_between_evals",
    "bleu_source",
    "bleu_ref",
    "num_gpus",
  )

  @property
  def translates(self) -> bool:
    """Whether anything is decoded."""
    return bool(self.bleu_source)

  @property
  def environment(self) -> dict[str, str]:
    """Environment variables that TensorFlow reads when it is imported."""
    found = super().environment
    if self.enable_xla:
      # Without this, clusters are compiled for GPUs alone.
      found["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit"
    return found

  def __post_init__(self) -> None:
    """Refuses flags that contradict each other."""
    super().__post_init__()
    if self.train_epochs is not None and "train_steps" in self.given:
      raise InputError("pass --train_steps or --train_epochs, not both")
    if self.train_epochs is not None and self.use_synthetic_data:
      raise InputError("synthetic data have no epochs; pass --train_steps")
    if self.stop_threshold is not None and not self.bleu_source:
      raise InputError(
        "--stop_threshold is a BLEU: it needs --bleu_source and --bleu_ref"
      )
    rule = self.early_stopping
    if rule and rule.measure == VALIDATION_LOSS:
      if self.use_synthetic_data or not self.validation_steps:
        raise InputError(f"no validation in this run: {LOSS_NEEDED}")
    elif rule and not self.bleu_source:
      raise InputError(
        "--early_stopping_measure=bleu needs --bleu_source and --bleu_ref"
      )
    if "accumulate_steps" in self.given and self.target_batch_tokens:
      raise InputError("pass --accumulate_steps or --target_batch_tokens")
    # Raise InputError if they are invalid.
    _ = self.profiled, self.requested_params, self.subword_sampling, self.kept

  @functools.cached_property
  def data(self) -> DataDirectory:
    """The prepared data."""
    return DataDirectory(self.data_dir)
