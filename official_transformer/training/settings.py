"""Settings of a run, apart from the parameters of the model."""

from __future__ import annotations

import dataclasses

from official_transformer.data.buckets import Batching

MEMORY_ADVICE = (
  "train with --recompute or --dtype=bf16, whichever is not on yet, or on more "
  "devices; for a new model, lower --batch_size and pass what it was as "
  "--target_batch_tokens, which sums the gradients of several smaller batches, "
  "or lower --max_length"
)


@dataclasses.dataclass(frozen=True)
class Execution:
  """How updates are computed: precision, compilation, loop.

  Attributes:
    dtype: `fp32`, or `bf16` or `fp16` for all but softmax, norms and loss.
    loss_scale: for `fp16`, a constant factor of the loss; None adapts it.
    compile: whether XLA compiles the whole step; only for static batches.
    recompute: whether the backward pass computes each layer again, instead of
      keeping its activations.
    use_ctl: whether a loop over `strategy.run` trains, instead of `fit`.
    steps_per_loop: updates that may be made in one call into TensorFlow.
    deterministic: whether TensorFlow is kept to operations that give the same
      bits each time.
  """

  dtype: str = "fp32"
  loss_scale: float | None = None
  compile: bool = False
  recompute: bool = False
  use_ctl: bool = False
  steps_per_loop: int = 1
  deterministic: bool = False


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
  """A rule that ends a run after evaluations without improvement.

  Attributes:
    measure: the measure to compare, by its name in `Measurements`.
    patience: how many in a row.
  """

  measure: str
  patience: int


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
  """A run.

  Attributes:
    train_steps: updates in all, counted across resumed runs.
    steps_between_evals: updates between two evaluations, each of which saves
      a checkpoint first.
    batching: how examples are grouped.
    validation_steps: development batches the validation loss is taken over; 0
      for no validation.
    seed: decides initial weights, data order and dropout.
    keep_checkpoint_max: number of newest checkpoints to keep; 0 keeps all.
      Checkpoints saved by time, or at a signal, are not counted.
    log_steps: updates between two reports.
    enable_metrics_in_training: whether accuracies are measured on training
      batches.
    enable_tensorboard: whether TensorBoard has something to show.
    tensorboard_histograms: whether TensorBoard has histograms of all weights,
      too.
    num_parallel_calls: threads that read shards; 0 for one a processor.
    evaluated_steps: the steps of all evaluations, if they are not every
      `steps_between_evals`.
    stop_threshold: the score from which on an evaluation ends the run.
    early_stopping: rule for ending the run early; None is no rule.
    datasets_num_private_threads: threads of the pipeline's own pool; None
      shares TensorFlow's.
    enable_checkpointing: whether anything is saved.
    save_checkpoints_steps: updates between two checkpoints, in addition to the
      checkpoints of evaluations.
    save_checkpoints_secs: seconds after which one is saved to go on from, if
      nothing else was saved meanwhile; 0 for never.
    max_nonfinite_steps: updates in a row that may be skipped because loss or
      gradients were not finite.
    enable_time_history: whether reports have tokens a second.
    execution: how the updates are computed.
    profile_steps: the first and the last update that TensorFlow's profiler
      records.
    average_decay: decay of the moving average of the weights; 0 keeps none.
    freeze: patterns of the paths of variables that stay as they are.
  """

  train_steps: int
  steps_between_evals: int
  batching: Batching
  validation_steps: int
  seed: int
  keep_checkpoint_max: int
  log_steps: int
  num_parallel_calls: int
  enable_metrics_in_training: bool = False
  enable_tensorboard: bool = False
  tensorboard_histograms: bool = False
  evaluated_steps: tuple[int, ...] = ()
  stop_threshold: float | None = None
  early_stopping: EarlyStopping | None = None
  datasets_num_private_threads: int | None = None
  enable_checkpointing: bool = True
  save_checkpoints_steps: int | None = None
  save_checkpoints_secs: float = 0.0
  max_nonfinite_steps: int = 20
  enable_time_history: bool = True
  execution: Execution = Execution()
  profile_steps: tuple[int, int] | None = None
  average_decay: float = 0.0
  freeze: tuple[str, ...] = ()

  def is_evaluated(self, step: int) -> bool:
    """Returns whether an evaluation follows an update."""
    if step == self.train_steps:
      return True
    if self.evaluated_steps:
      return step in self.evaluated_steps
    return step % self.steps_between_evals == 0

  def is_saved(self, step: int) -> bool:
    """Returns whether a checkpoint follows an update, evaluated or not."""
    every = self.save_checkpoints_steps
    return self.is_evaluated(step) or (every is not None and step % every == 0)

  def next_pause(self, step: int) -> int:
    """Returns the step of the next report, checkpoint or profile boundary.

    Args:
      step: finished updates.
    """
    profiled = self.profile_steps or (0, 0)
    pauses = {profiled[0] - 1, profiled[1]}
    for pause in range(step + 1, step + self.execution.steps_per_loop):
      if pause % self.log_steps == 0 or pause in pauses:
        return pause
      if self.is_saved(pause):
        return pause
    return min(step + self.execution.steps_per_loop, self.train_steps)
