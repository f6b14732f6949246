"""A training run, from the data directory to the last checkpoint."""

from __future__ import annotations

import functools
import time

import keras
import tensorflow as tf
from absl import logging

from official_transformer.data.prepared_data import PreparedData
from official_transformer.data.record_check import READ_ERRORS
from official_transformer.errors import Interrupted
from official_transformer.model_directory.directory import (
  LOGS,
  NONFINITE,
  ModelDirectory,
)
from official_transformer.model_params import TransformerParams
from official_transformer.training.checkpoints import (
  CheckpointManager,
  read_progress,
)
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.divergence import DivergenceGuard
from official_transformer.training.endings import data_have_changed, diverged
from official_transformer.training.evaluations import (
  Evaluations,
  ScoredSet,
  measure,
  open_measurements,
)
from official_transformer.training.interruption import Interruption
from official_transformer.training.reporting import run_report
from official_transformer.training.reporting.profiler import Profiler
from official_transformer.training.reporting.progress import ProgressReport
from official_transformer.training.reporting.summaries import SummaryWriter
from official_transformer.training.run_control import RunControl
from official_transformer.training.saving import Saver
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.strategy import Distribution
from official_transformer.training.training_model import TrainingModel
from official_transformer.training.validation import Validation


class Trainer:
  """Builds the training model, resumes if there is a checkpoint, trains.

  Attributes:
    directory: the model directory, written already.
    settings: how the run goes.
    scored_set: the test set that is translated and scored, if there is one.
    distribution: the devices, here and elsewhere, that share the run.
    feed: the batches.
    model: the model, and all that updates it.
    checkpoints: writes and restores it.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    params: TransformerParams,
    settings: TrainingSettings,
    data: PreparedData | None,
    scored_set: ScoredSet | None = None,
    distribution: Distribution | None = None,
  ) -> None:
    self.directory = directory
    self.settings = settings
    self.scored_set = scored_set
    self.distribution = distribution or Distribution(
      tf.distribute.get_strategy()
    )
    self.feed = DataFeed(settings, data)
    self.model = TrainingModel(params, settings, self.distribution)
    self.checkpoints = CheckpointManager(
      directory, self.model.variable_groups(), settings.keep_checkpoint_max
    )
    self._validation = Validation(self.model.transformer)
    self._summaries: SummaryWriter | None = None

  def train(self, interruption: Interruption | None = None) -> None:
    """Trains until `train_steps`, from the newest checkpoint if there is one.

    Args:
      interruption: receives the signals that end the run; by default none is
        handled.

    Raises:
      InputError: if data or checkpoint cannot be used, or the memory does not
        suffice.
      RunError: if loss or gradients stay not finite.
      Interrupted: if a signal has ended the run; the model is saved.
      OSError: if the last checkpoint cannot be saved.
    """
    settings = self.settings
    steps = self.directory.checkpoint_steps()
    is_finished = bool(steps) and steps[-1] >= settings.train_steps
    if is_finished:
      logging.info(
        "the model is trained for %d steps already, and --train_steps is %d",
        steps[-1],
        settings.train_steps,
      )
    else:
      run_report.describe_run(
        self.model.transformer,
        self.settings,
        self.feed.largest_shapes,
        self.distribution,
      )
      self.feed.warn_of_omissions()
      # A lack of memory shows now, not hours later.
      for batches in self.feed.largest_batches():
        self.model.rehearse(iter(self.distribution.distribute(batches)))
    step = self._resume()
    control = self._control(step, interruption or Interruption())
    if not control.catch_up() and not is_finished:
      self._run(control)
    # Nobody leaves while the chief still evaluates.
    self.distribution.barrier()

  def validate(self) -> dict[str, float]:
    """Returns the loss on development data, in nats a target token.

    `loss` is smoothed as in training, `perplexity` is not. Empty if all pairs
    are longer than `max_length`.
    """
    found = self._validation(self.feed.development_batches)
    if not found:
      logging.warning("no validation loss: no development pair is usable")
    return found

  def _control(self, step: int, interruption: Interruption) -> RunControl:
    """Returns the callback for the time between two updates."""
    settings, is_chief = self.settings, self.distribution.is_chief
    # A run that saves nothing leaves a trained model's results as they are.
    writes = is_chief and (settings.enable_checkpointing or not step)
    measured_on = {
      "validation": self.feed.development_set,
      "evaluation": self.scored_set and self.scored_set.identity,
    }
    measurements = open_measurements(self.directory, measured_on, step, writes)
    if writes:
      self.checkpoints.drop_derived(step)
    if is_chief and settings.enable_tensorboard:
      self._summaries = run_report.open_summaries(
        self.directory, self.model.transformer, settings, self.distribution
      )
    saver = Saver(settings, self.checkpoints, is_chief, step)
    progress = ProgressReport(
      step,
      settings.train_steps,
      settings.log_steps,
      with_throughput=settings.enable_time_history,
      replicas=self.distribution.replicas,
      on_report=self._summaries.write_report if self._summaries else None,
    )
    return RunControl(
      saver,
      Evaluations(self._measure, measurements, saver, interruption),
      self.distribution,
      interruption,
      progress,
    )

  def _measure(self, step: int) -> dict[str, float]:
    """Measures the current model."""
    model, evaluate = self.model.transformer, None
    if self.scored_set:
      evaluate = functools.partial(self.scored_set.evaluate, model, step)
    with self.model.measured():
      return measure(
        step,
        self.validate if self.feed.has_development_data else None,
        evaluate,
        self._summaries,
        model.trainable_variables,
      )

  def _run(self, control: RunControl) -> None:
    """Makes the remaining updates, and reports how they ended."""
    settings, first = self.settings, control.step
    guard = DivergenceGuard(settings.max_nonfinite_steps, first)
    callbacks: list[keras.callbacks.Callback] = [control.progress, guard]
    if settings.profile_steps and self.distribution.is_chief:
      callbacks.append(
        Profiler(
          self.directory.join(LOGS), settings.profile_steps, first
        ).checked(settings.train_steps)
      )
    callbacks.append(control)
    if first:
      logging.info("resuming after step %d", first)
    started = time.monotonic()
    try:
      batches = self.feed.training_batches(first)
      if self._needs_loop():
        self._loop(batches, first, callbacks)
      else:
        self._fit(batches, first, callbacks)
    except READ_ERRORS as error:
      change = self.feed.change()
      if change is None:
        raise
      raise data_have_changed(change, control) from error
    if guard.divergence:
      path = self.directory.join(NONFINITE)
      raise diverged(guard.divergence, self.feed, path, control)
    if control.stopped_by is not None:
      control.save_last(interim=True)
      self.distribution.barrier()
      raise Interrupted(
        control.stopped_by,
        f"step {control.step} of {settings.train_steps} was the last"
        + ", and is saved: the same command goes on, without --clean"
        * settings.enable_checkpointing,
      )
    control.save_last()  # It may have ended early, on a full disk.
    logging.info(
      "trained %d steps in %.0f s; the model is in %s",
      control.step - first,
      time.monotonic() - started,
      self.directory.path,
    )

  def _needs_loop(self) -> bool:
    """Returns whether Keras' `fit` is not wanted, or cannot do it."""
    execution = self.settings.execution
    # It takes equal shares of a batch only, and counts a step a call.
    remainder = (
      self.settings.batching.batch_divisor % self.distribution.replicas
    )
    return (
      execution.use_ctl
      or self.distribution.needs_loop
      or remainder != 0
      or execution.steps_per_loop > 1
    )

  def _fit(
    self,
    batches: tf.data.Dataset,
    step: int,
    callbacks: list[keras.callbacks.Callback],
  ) -> None:
    """Trains by Keras' `fit`."""
    # One epoch of exactly the updates that are left: evaluations count steps
    # of the whole run, so that a resumed run has them when it would have.
    self.model.keras_model.fit(
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
    model = self.model.keras_model
    for callback in callbacks:
      callback.set_model(model)
      callback.on_train_begin()
    iterator = iter(self.distribution.distribute(batches))
    model.stop_training = False
    while step < self.settings.train_steps and not model.stop_training:
      steps = self.settings.next_pause(step) - step
      logs = {**self.model.runner(iterator, steps), "steps": steps}
      step += steps
      for callback in callbacks:
        callback.on_train_batch_end(step, logs)
    for callback in callbacks:
      callback.on_train_end()

  def _resume(self) -> int:
    """Restores the newest checkpoint, if any; returns the finished steps."""
    step = 0
    if self.directory.checkpoint_steps():
      prefix = self.directory.latest_checkpoint()
      self.model.start_groups(self.checkpoints.restore(prefix))
      step, _ = read_progress(prefix)
      logging.info("the model is that of step %d, in %s", step, prefix)
    else:
      logging.info("no checkpoint yet: the first update is step 1")
    self.distribution.check_agreement(
      step, f"the newest checkpoint in --model_dir={self.directory.path}"
    )
    return step
