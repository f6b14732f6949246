"""A training run, from the data directory to the last checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf
from absl import logging

from official_transformer.data.prepared_data import PreparedData
from official_transformer.distribution.strategy import Distribution
from official_transformer.durable_files import write_text
from official_transformer.errors import Interrupted, RunError
from official_transformer.model.transformer import Transformer, create_model
from official_transformer.model_directory.checkpoint_files import (
  OPTIMIZER,
  WEIGHTS,
)
from official_transformer.model_directory.directory import (
  LOGS,
  MEASUREMENTS_FILE,
  NONFINITE,
  ModelDirectory,
)
from official_transformer.model_directory.measurements import Measurements
from official_transformer.model_params import TransformerParams
from official_transformer.training.checkpoints import (
  LOSS_SCALE,
  CheckpointManager,
  read_progress,
)
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.evaluations import (
  Milestones,
  failures_are_logged,
)
from official_transformer.training.interruption import Interruption
from official_transformer.training.reporting import run_report
from official_transformer.training.reporting.progress import (
  Profiler,
  ProgressReport,
)
from official_transformer.training.reporting.summaries import SummaryWriter
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.step.finite_updates import (
  Divergence,
  FiniteUpdatesGuard,
)
from official_transformer.training.step.loss_scale import DynamicLossScale
from official_transformer.training.step.optimizer import create_optimizer
from official_transformer.training.step.step_runner import FitModel, StepRunner
from official_transformer.training.step.training_step import TrainingStep
from official_transformer.training.validation import Validation


class Evaluation(NamedTuple):
  """What a milestone's evaluation found.

  Attributes:
    scores: logged under their names.
    samples: rows of source, reference and translation.
  """

  scores: Mapping[str, float]
  samples: Sequence[tuple[str, str, str]] = ()


Evaluate = Callable[[Transformer, int], Evaluation]


class Trainer:
  """Builds the training model, resumes where there is a checkpoint, trains.

  Attributes:
    directory: the model directory, written already.
    params: the model's hyper-parameters.
    settings: how the run goes.
    evaluate: called at each milestone, where given.
    distribution: the devices, here and elsewhere, that share the run.
    interruption: knows of signals; nobody's, unless somebody listens.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    params: TransformerParams,
    settings: TrainingSettings,
    data: PreparedData | None,
    evaluate: Evaluate | None = None,
    distribution: Distribution | None = None,
    interruption: Interruption | None = None,
  ) -> None:
    self.directory = directory
    self.params = params
    self.settings = settings
    self.evaluate = evaluate
    self.distribution = distribution or Distribution(
      tf.distribute.get_strategy()
    )
    self.interruption = interruption or Interruption()
    self.feed = DataFeed(settings, data)
    keras.utils.set_random_seed(settings.seed)
    with self.distribution.strategy.scope():
      self._build()
    self.transformer: Transformer = self.model.get_layer(
      "teacher_forcing"
    ).transformer
    self.validation = Validation(self.transformer, params)
    groups = {WEIGHTS: self.model.weights, OPTIMIZER: self.optimizer.variables}
    if isinstance(self.loss_scale, DynamicLossScale):
      groups[LOSS_SCALE] = [
        *self.loss_scale.variables,
        self.step.finite_updates.skipped,
      ]
    self.checkpoints = CheckpointManager(
      directory, groups, settings.keep_checkpoint_max
    )
    self._summaries: SummaryWriter | None = None

  def _build(self) -> None:
    """Makes the model, the optimizer and the step that joins them."""
    settings, execution = self.settings, self.settings.execution
    model = create_model(
      self.params,
      is_train=True,
      with_metrics=settings.with_metrics,
      dtype=execution.dtype,
    )
    self.model = FitModel(inputs=model.inputs, outputs=model.outputs)
    self.optimizer = create_optimizer(self.params)
    self.optimizer.build(self.model.trainable_variables)
    self.model.compile(optimizer=self.optimizer, jit_compile=False)
    self.loss_scale: float | DynamicLossScale | None = None
    if execution.dtype == "fp16":
      self.loss_scale = execution.loss_scale or DynamicLossScale()
    accumulate_steps = settings.batching.accumulate_steps
    self.step = TrainingStep(
      self.model,
      self.optimizer,
      settings.seed,
      self.loss_scale,
      accumulates=accumulate_steps > 1,
      clip_norm=self.params.clip_norm,
    )
    self.model.step_runner = StepRunner(
      self.step,
      self.distribution.strategy,
      accumulate_steps,
      execution.compile,
      with_clock=not execution.deterministic,
    )

  def train(self) -> None:
    """Trains until `train_steps`, from the newest checkpoint if there is one.

    Raises:
      InputError: where data or checkpoint cannot be used, or the memory does
        not suffice.
      RunError: where loss or gradients stay not finite.
      Interrupted: where a signal has ended the run; the model is saved.
      OSError: where the last checkpoint cannot be saved.
    """
    settings = self.settings
    steps = self.directory.checkpoint_steps()
    is_finished = bool(steps) and steps[-1] >= settings.train_steps
    if is_finished:
      logging.info(
        "the model has %d steps already, and this run is to end with %d",
        steps[-1],
        settings.train_steps,
      )
    else:
      self._describe()
      self._rehearse()
    step = self._resume()
    measurements = Measurements(self.directory.join(MEASUREMENTS_FILE))
    if self.distribution.is_chief:
      if not step:
        self.directory.remove_derived()
      self.checkpoints.drop_best_after(step)
      measurements.forget_after(step)
    if settings.with_tensorboard and self.distribution.is_chief:
      self._summaries = SummaryWriter(self.directory.join(LOGS))
    progress = ProgressReport(
      step,
      settings.train_steps,
      settings.log_steps,
      with_throughput=settings.with_throughput,
      replicas=self.distribution.replicas,
      on_report=self._write_report,
    )
    milestones = Milestones(
      settings,
      self.checkpoints,
      measurements,
      self._measure,
      self.distribution,
      self.interruption,
      progress,
      step,
    )
    if not milestones.catch_up() and not is_finished:
      self._run(progress, milestones)
    self.distribution.meet()  # Nobody leaves while the chief still evaluates.

  def _run(self, progress: ProgressReport, milestones: Milestones) -> None:
    """Makes the updates that are left, and says how they ended."""
    settings, first = self.settings, milestones.step
    guard = FiniteUpdatesGuard(settings.max_nonfinite_steps, first)
    callbacks: list[keras.callbacks.Callback] = [progress, guard, milestones]
    if settings.profile_steps and self.distribution.is_chief:
      callbacks.insert(1, self._profiler(*settings.profile_steps, first))
    if first:
      logging.info(
        "resuming after step %d: reading past the batches before it", first
      )
    run = self._loop if self._needs_loop() else self._fit
    started = time.monotonic()
    with self.feed.damage_is_the_users():
      run(self.feed.training_batches(first), first, callbacks)
    if guard.divergence:
      raise self._failure(guard.divergence)
    if milestones.stopped_by is not None:
      milestones.save(interim=True, must=True)
      self.distribution.meet()
      raise Interrupted(
        milestones.stopped_by,
        f"step {milestones.step} of {settings.train_steps} was the last"
        + ", and is saved: the same command goes on, without --clean"
        * settings.with_checkpoints,
      )
    milestones.save(must=True)  # It may have ended early, on a full disk.
    logging.info(
      "trained %d steps in %.0f s; the model is in %s",
      progress.step - first,
      time.monotonic() - started,
      self.directory.path,
    )

  def _profiler(self, first: int, last: int, step: int) -> Profiler:
    """Returns what records some steps."""
    if first > self.settings.train_steps or last <= step:
      logging.warning(
        "--profile_steps=%d,%d: no step of this run, %d to %d",
        *(first, last, step + 1, self.settings.train_steps),
      )
    return Profiler(self.directory.join(LOGS), first, last, step)

  def _needs_loop(self) -> bool:
    """Tells whether Keras' `fit` is not wanted, or cannot do it."""
    execution = self.settings.execution
    divisor = self.settings.batching.batch_divisor
    return (
      execution.custom_loop
      or self.distribution.needs_loop
      # It takes equal shares of a batch only, and counts a step a call.
      or divisor % self.distribution.replicas != 0
      or execution.steps_per_loop > 1
    )

  def _fit(
    self,
    batches: tf.data.Dataset,
    step: int,
    callbacks: list[keras.callbacks.Callback],
  ) -> None:
    """Trains by Keras' `fit`."""
    # One epoch of exactly the updates that are left: milestones count steps
    # of the whole run, so that a resumed run has them where it would have.
    self.model.fit(
      batches,
      epochs=1,
      steps_per_epoch=self.settings.train_steps - step,
      callbacks=callbacks,
      shuffle=False,  # The pipeline has done it.
      verbose=0,
    )

  def _loop(
    self,
    batches: tf.data.Dataset,
    step: int,
    callbacks: list[keras.callbacks.Callback],
  ) -> None:
    """Trains by a loop of our own: the same updates."""
    # Keras' list of callbacks would read every result back at once.
    for callback in callbacks:
      callback.set_model(self.model)
      callback.on_train_begin()
    iterator = iter(self.distribution.distribute(batches))
    self.model.stop_training = False
    while step < self.settings.train_steps and not self.model.stop_training:
      steps = self.settings.next_pause(step) - step
      logs = {**self.model.step_runner(iterator, steps), "steps": steps}
      step += steps
      for callback in callbacks:
        callback.on_train_batch_end(step, logs)
    for callback in callbacks:
      callback.on_train_end()

  def _rehearse(self) -> None:
    """Makes an update from the longest batches, and undoes it.

    A lack of memory shows now, not hours later. The first update's learning
    rate is 0, so that no weight changes.
    """
    batches = self.distribution.distribute(self.feed.longest_batches())
    logs = self.model.step_runner(iter(batches))
    float(logs["loss"])  # Waits for the devices.
    self.model.reset_metrics()
    for variable in self.optimizer.variables:
      variable.assign(tf.zeros(variable.shape, variable.dtype))
    self.step.finite_updates.reset()
    if isinstance(self.loss_scale, DynamicLossScale):
      self.loss_scale.reset()

  def validate(self) -> dict[str, float]:
    """Returns the loss on development data, in nats a target token.

    `loss` is smoothed as in training, `perplexity` is not. Empty where all
    pairs are longer than `max_length`.
    """
    found = self.validation(self.feed.development_batches())
    if not found:
      logging.warning("no validation loss: no development pair is usable")
    return found

  def _measure(self, step: int) -> dict[str, float]:
    """Returns all that a milestone is to measure, of what does not fail."""
    values: dict[str, float] = {}
    if self.feed.has_development_data:
      with failures_are_logged(f"the validation after step {step}"):
        values |= {f"validation/{k}": v for k, v in self.validate().items()}
    samples: Sequence[tuple[str, ...]] = ()
    if self.evaluate:
      with failures_are_logged(f"the evaluation after step {step}"):
        scores, samples = self.evaluate(self.transformer, step)
        values |= {f"evaluation/{k}": v for k, v in scores.items()}
    if self._summaries:
      with failures_are_logged(f"TensorBoard's record of step {step}"):
        self._summaries.write_scalars(values, step)
        if samples:
          heading = ("source", "reference", "translation")
          self._summaries.write_table("translations", [heading, *samples], step)
    return values

  def _failure(self, found: Divergence) -> RunError:
    """Returns what to say of updates that were not finite."""
    number = self.settings.batching.accumulate_steps
    first, last = (found.first - 1) * number, found.last * number - 1
    message = (
      f"steps {found.first} to {found.last}: the loss or its gradients were "
      f"not finite in each (loss {found.loss:g}, learning rate "
      f"{found.learning_rate:.3g}, batches {first} to {last} of the run, from "
      "0). They have changed no weight, and the checkpoints before them are "
      "kept. A learning rate too high is the usual cause: start a new model "
      "with a lower learning_rate, a longer learning_rate_warmup_steps or a "
      "clip_norm in --params_override, from --init_checkpoint if from these "
      "weights; or a dtype too narrow: see --dtype=bf16"
    )
    if self.distribution.is_chief and self.feed.data:
      path = self.directory.join(f"{NONFINITE}{found.first}.jsonl")
      logging.info("reading up to the batches of step %d", found.first)
      with failures_are_logged(f"writing {path}"):
        write_text(path, "".join(self.feed.lines_of_update(found.first)))
        message += f". The ids of step {found.first} are in {path}"
    return RunError(message)

  def _write_report(self, numbers: Mapping[str, float], step: int) -> None:
    """Writes a progress report's numbers for TensorBoard."""
    if self._summaries:
      with failures_are_logged(f"TensorBoard's record of step {step}"):
        self._summaries.write_scalars(
          {f"train/{name}": value for name, value in numbers.items()}, step
        )

  def _resume(self) -> int:
    """Restores the newest checkpoint, if any; returns the finished steps."""
    step = 0
    if self.directory.checkpoint_steps():
      prefix = self.directory.latest_checkpoint()
      self.checkpoints.restore(prefix)
      step, _ = read_progress(prefix)
      if self.distribution.is_chief:
        self.checkpoints.drop_superseded(step)
      logging.info("the model is that of step %d, in %s", step, prefix)
    self.distribution.check_agreement(
      step, f"the newest checkpoint in --model_dir={self.directory.path}"
    )
    return step

  def _describe(self) -> None:
    """Logs what is about to run, and warns of what will disappoint."""
    run_report.log_configuration(self.params, self.settings)
    run_report.log_size(
      self.model.trainable_variables,
      self.params,
      self.settings,
      self.feed.longest_example,
      self.distribution,
    )
    run_report.warn_of_settings(self.params, self.settings)
    if not self.settings.with_checkpoints:
      logging.warning("no checkpoints: the model will be lost")
    self.feed.warn_of_omissions()
