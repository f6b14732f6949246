"""A training run, from the data directory to the last checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf
from absl import logging

from official_transformer.model.cross_entropy import summed_cross_entropies
from official_transformer.model.transformer import Transformer, create_model
from official_transformer.model.weights import OPTIMIZER, WEIGHTS
from official_transformer.model_directory import LOGS, ModelDirectory
from official_transformer.model_params import PAD_ID, TransformerParams
from official_transformer.training import run_report
from official_transformer.training.callbacks import (
  Milestones,
  Profiler,
  ProgressReport,
)
from official_transformer.training.checkpoints import (
  LOSS_SCALE,
  CheckpointManager,
  read_progress,
)
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.distribution import Distribution
from official_transformer.training.loss_scale import DynamicLossScale
from official_transformer.training.optimizer import create_optimizer
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.step_runner import FitModel, StepRunner
from official_transformer.training.summaries import SummaryWriter
from official_transformer.training.training_step import TrainingStep


class Evaluation(NamedTuple):
  """What a milestone's evaluation found.

  Attributes:
    scores: logged under their names.
    samples: rows of source, reference and translation.
  """

  scores: Mapping[str, float]
  samples: Sequence[tuple[str, str, str]] = ()


Evaluate = Callable[[Transformer, int], Evaluation]

# The official model stops by BLEU without case.
STOPPING_SCORE = "evaluation/bleu_uncased"


class Trainer:
  """Builds the training model, resumes where there is a checkpoint, trains.

  Attributes:
    directory: the model directory, written already.
    params: the model's hyper-parameters.
    settings: how the run goes.
    evaluate: called at each milestone, where given.
    distribution: the devices, here and elsewhere, that share the run.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    params: TransformerParams,
    settings: TrainingSettings,
    evaluate: Evaluate | None = None,
    distribution: Distribution | None = None,
  ) -> None:
    self.directory = directory
    self.params = params
    self.settings = settings
    self.evaluate = evaluate
    self.distribution = distribution or Distribution(
      tf.distribute.get_strategy()
    )
    self.feed = DataFeed(settings)
    keras.utils.set_random_seed(settings.seed)
    with self.distribution.strategy.scope():
      self._build()
    self.transformer: Transformer = self.model.get_layer(
      "teacher_forcing"
    ).transformer
    self.checkpoints = CheckpointManager(
      directory,
      {
        WEIGHTS: self.model.weights,
        OPTIMIZER: self.optimizer.variables,
        LOSS_SCALE: getattr(self.loss_scale, "variables", []),
      },
      settings.keep_checkpoint_max,
    )
    self._summaries: SummaryWriter | None = None
    self._validation_losses = tf.function(
      self._batch_losses,
      input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2,
      autograph=False,
    )

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
    step = TrainingStep(
      self.model,
      self.optimizer,
      settings.seed,
      self.loss_scale,
      accumulates=accumulate_steps > 1,
      with_gradient_norm=settings.with_tensorboard,
    )
    self.model.step_runner = StepRunner(
      step, self.distribution.strategy, accumulate_steps, execution.compile
    )

  def train(self) -> None:
    """Trains until `train_steps`, from the newest checkpoint if there is one.

    Raises:
      InputError: where data or checkpoint cannot be used, or the memory does
        not suffice.
    """
    settings = self.settings
    steps = self.directory.checkpoint_steps()
    if steps and steps[-1] >= settings.train_steps:
      logging.info(
        "the model has %d steps already, and this run is to end with %d",
        steps[-1],
        settings.train_steps,
      )
      return
    self._describe()
    self._rehearse()
    step = self._resume()
    progress = ProgressReport(
      step,
      settings.train_steps,
      settings.log_steps,
      with_throughput=settings.with_throughput,
      replicas=self.distribution.replicas,
      on_report=self._write_report,
    )
    callbacks: list[keras.callbacks.Callback] = [progress]
    if settings.with_tensorboard and self.distribution.is_chief:
      self._summaries = SummaryWriter(self.directory.join(LOGS))
    if settings.profile_steps and self.distribution.is_chief:
      first, last = settings.profile_steps
      if first > settings.train_steps or last <= step:
        logging.warning(
          "--profile_steps=%d,%d: no step of this run, %d to %d",
          *(first, last, step + 1, settings.train_steps),
        )
      callbacks.append(Profiler(self.directory.join(LOGS), first, last, step))
    callbacks.append(
      Milestones(self._milestone, settings.is_milestone, step, progress)
    )
    run = self._loop if self._needs_loop() else self._fit
    started = time.monotonic()
    with self.feed.damage_is_the_users():
      run(self.feed.training_batches(step), step, callbacks)
    self.distribution.meet()  # Nobody leaves while the chief still evaluates.
    logging.info(
      "trained %d steps in %.0f s; the model is in %s",
      progress.step - step,
      time.monotonic() - started,
      self.directory.path,
    )

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
    if isinstance(self.loss_scale, DynamicLossScale):
      self.loss_scale.reset()

  def validate(self) -> dict[str, float]:
    """Returns the loss on development data, in nats a target token.

    `loss` is smoothed as in training, `perplexity` is not. Empty where all
    pairs are longer than `max_length`.
    """
    sums = [
      self._validation_losses(inputs, targets)
      for inputs, targets in self.feed.development_batches()
    ]
    if not sums:
      logging.warning("no validation loss: no development pair is usable")
      return {}
    smoothed, plain, tokens = (float(n) for n in tf.add_n(sums))
    return {
      "loss": smoothed / tokens,
      "perplexity": float(tf.exp(plain / tokens)),
    }

  def _batch_losses(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns a batch's summed loss, smoothed and not, and its tokens."""
    states = self.transformer.decoder_states([inputs, targets])
    labels = tf.reshape(targets, [-1])
    weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
    sums = summed_cross_entropies(
      tf.reshape(states, [-1, self.params.hidden_size]),
      tf.convert_to_tensor(self.transformer.embedding.table),
      labels,
      weights,
      (self.params.label_smoothing, 0.0),
    )
    return tf.concat([sums, [tf.reduce_sum(weights)]], axis=0)

  def _milestone(self, step: int) -> None:
    """Saves, measures, and ends the run where it is good enough."""
    stop = self.distribution.is_chief and self._measure(step)
    if self.settings.stop_threshold is not None:
      stop = bool(self.distribution.value_of_chief(int(stop)))
      self.model.stop_training = stop

  def _measure(self, step: int) -> bool:
    """Saves first, so that nothing an evaluation does can cost the steps.

    Returns:
      Whether the score is reached that ends the run.
    """
    if self.settings.with_checkpoints:
      self.checkpoints.save(step, self.settings.seed)
    scalars: dict[str, float] = {}
    samples: Sequence[tuple[str, ...]] = ()
    if self.feed.has_development_data:
      scalars |= {f"validation/{k}": v for k, v in self.validate().items()}
    if self.evaluate:
      scores, samples = self.evaluate(self.transformer, step)
      scalars |= {f"evaluation/{k}": v for k, v in scores.items()}
    if scalars:
      logging.info(
        "step %d: %s",
        step,
        ", ".join(f"{name} {value:.4f}" for name, value in scalars.items()),
      )
    if self._summaries:
      self._summaries.write_scalars(scalars, step)
      if samples:
        heading = ("source", "reference", "translation")
        self._summaries.write_table("translations", [heading, *samples], step)
    threshold = self.settings.stop_threshold
    if threshold is None or scalars[STOPPING_SCORE] < threshold:
      return False
    logging.info(
      "stopping: %s %.4f has reached --stop_threshold=%g",
      STOPPING_SCORE,
      scalars[STOPPING_SCORE],
      threshold,
    )
    return True

  def _write_report(self, numbers: Mapping[str, float], step: int) -> None:
    """Writes a progress report's numbers for TensorBoard."""
    if self._summaries:
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
      logging.info(
        "resuming after step %d from %s; reading past the batches before it",
        step,
        prefix,
      )
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
    run_report.warn_of_warmup(self.params, self.settings)
    if not self.settings.with_checkpoints:
      logging.warning("no checkpoints: the model will be lost")
    self.feed.warn_of_omissions()
