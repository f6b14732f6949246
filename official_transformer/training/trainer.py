"""A training run, from the data directory to the last checkpoint."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from official_transformer.model.metrics import padded_cross_entropy_loss
from official_transformer.model.transformer import Transformer, create_model
from official_transformer.model.weights import OPTIMIZER, WEIGHTS
from official_transformer.model_directory import LOGS, ModelDirectory
from official_transformer.model_params import TransformerParams
from official_transformer.training.callbacks import (
  Milestones,
  ProgressReport,
  ScalarWriter,
)
from official_transformer.training.checkpoints import (
  LOSS_SCALE,
  CheckpointManager,
  read_progress,
)
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.loss_scale import DynamicLossScale
from official_transformer.training.optimizer import create_optimizer
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.training_step import FitModel, TrainingStep

# Scores the model at a milestone; the numbers are logged under their names.
Evaluate = Callable[[Transformer, int], Mapping[str, float]]

# The official model stops by BLEU without case.
STOPPING_SCORE = "evaluation/bleu_uncased"


class Trainer:
  """Builds the training model, resumes where there is a checkpoint, trains.

  Attributes:
    directory: the model directory, written already.
    params: the model's hyper-parameters.
    settings: how the run goes.
    evaluate: called at each milestone, where given.
    strategy: how the run is spread over devices.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    params: TransformerParams,
    settings: TrainingSettings,
    evaluate: Evaluate | None = None,
    strategy: tf.distribute.Strategy | None = None,
  ) -> None:
    self.directory = directory
    self.params = params
    self.settings = settings
    self.evaluate = evaluate
    self.strategy = strategy or tf.distribute.get_strategy()
    self.feed = DataFeed(settings)
    keras.utils.set_random_seed(settings.seed)
    with self.strategy.scope():
      self._build()
    self.transformer: Transformer = self.model.get_layer("transformer")
    self.checkpoints = CheckpointManager(
      directory,
      {
        WEIGHTS: self.model.weights,
        OPTIMIZER: self.optimizer.variables,
        LOSS_SCALE: getattr(self.loss_scale, "variables", []),
      },
      settings.keep_checkpoint_max,
    )
    self._scalars: ScalarWriter | None = None
    self._validation_losses = tf.function(
      self._batch_losses,
      input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2,
      autograph=False,
    )

  def _build(self) -> None:
    """Makes the model, the optimizer and the step that joins them."""
    execution = self.settings.execution
    model = create_model(
      self.params,
      is_train=True,
      with_metrics=self.settings.with_metrics,
      dtype=execution.dtype,
    )
    self.model = FitModel(inputs=model.inputs, outputs=model.outputs)
    self.optimizer = create_optimizer(self.params)
    self.optimizer.build(self.model.trainable_variables)
    # With "auto", Keras would compile anew for every shape of batch.
    self.model.compile(
      optimizer=self.optimizer,
      jit_compile=execution.compile,
    )
    self.loss_scale: float | DynamicLossScale = execution.loss_scale or 1.0
    if execution.dtype == "fp16" and execution.loss_scale is None:
      self.loss_scale = DynamicLossScale()
    self.model.training_step = TrainingStep(
      self.model,
      self.optimizer,
      self.settings.seed,
      self.loss_scale,
    )

  def train(self) -> None:
    """Trains until `train_steps`, from the newest checkpoint if there is one.

    Raises:
      InputError: where data or checkpoint cannot be used.
    """
    settings = self.settings
    step = self._resume()
    if step >= settings.train_steps:
      logging.info(
        "the model has %d steps already, and this run is to end with %d",
        step,
        settings.train_steps,
      )
      return
    self._describe(step)
    batches = self.feed.training_batches(skip=step)
    progress = ProgressReport(
      step,
      settings.train_steps,
      settings.log_steps,
      with_throughput=settings.with_throughput,
    )
    callbacks: list[keras.callbacks.Callback] = [progress]
    if settings.with_tensorboard:
      self._scalars = ScalarWriter(
        self.directory.join(LOGS), step, settings.log_steps
      )
      callbacks.append(self._scalars)
    callbacks.append(
      Milestones(self._milestone, settings.is_milestone, step, progress)
    )
    # Keras' fit takes equal shares of a batch only.
    replicas = self.strategy.num_replicas_in_sync
    uneven = settings.batching.batch_divisor % replicas != 0
    by_loop = settings.execution.custom_loop or uneven
    run = self._loop if by_loop else self._fit
    started = time.monotonic()
    with self.feed.damage_is_the_users():
      run(batches, settings.train_steps - step, callbacks)
    logging.info(
      "trained %d steps in %.0f s; the model is in %s",
      progress.step - step,
      time.monotonic() - started,
      self.directory.path,
    )

  def _fit(
    self,
    batches: tf.data.Dataset,
    steps: int,
    callbacks: list[keras.callbacks.Callback],
  ) -> None:
    """Trains by Keras' `fit`."""
    # One epoch of exactly the updates that are left: milestones count steps
    # of the whole run, so that a resumed run has them where it would have.
    self.model.fit(
      batches,
      epochs=1,
      steps_per_epoch=steps,
      callbacks=callbacks,
      shuffle=False,  # The pipeline has done it.
      verbose=0,
    )

  def _loop(
    self,
    batches: tf.data.Dataset,
    steps: int,
    callbacks: list[keras.callbacks.Callback],
  ) -> None:
    """Trains by a loop of our own over `strategy.run`: the same updates."""
    strategy = self.strategy
    listeners = keras.callbacks.CallbackList(callbacks, model=self.model)

    def update(batch: tuple[tf.Tensor, tf.Tensor]) -> dict[str, Any]:
      logs = strategy.run(self.model.training_step.logs, args=batch)
      # What a step reports is the global batch's, equal on all replicas.
      return tf.nest.map_structure(
        lambda value: strategy.experimental_local_results(value)[0], logs
      )

    update = tf.function(
      update,
      autograph=False,
      reduce_retracing=True,
      jit_compile=self.settings.execution.compile,
    )
    distributed = iter(strategy.experimental_distribute_dataset(batches))
    self.model.stop_training = False
    listeners.on_train_begin()
    for number in range(steps):
      listeners.on_train_batch_end(number, update(next(distributed)))
      if self.model.stop_training:
        break
    listeners.on_train_end()

  def validate(self) -> dict[str, float]:
    """Returns the loss on development data, in nats a target token.

    `loss` is smoothed as in training, `perplexity` is not. Empty where all
    pairs are longer than `max_length`.
    """
    totals = [
      self._validation_losses(inputs, targets)
      for inputs, targets in self.feed.development_batches()
    ]
    if not totals:
      logging.warning("no validation loss: no development pair is usable")
      return {}
    smoothed, plain, tokens = (float(sum(t)) for t in zip(*totals, strict=True))
    return {
      "loss": smoothed / tokens,
      "perplexity": float(tf.exp(plain / tokens)),
    }

  def _batch_losses(
    self, inputs: tf.Tensor, targets: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns a batch's summed loss, smoothed and not, and its tokens."""
    logits = self.transformer([inputs, targets], training=False)
    smoothed, weights = padded_cross_entropy_loss(
      logits, targets, self.params.label_smoothing
    )
    plain, _ = padded_cross_entropy_loss(logits, targets, 0.0)
    return (
      tf.reduce_sum(smoothed),
      tf.reduce_sum(plain),
      tf.reduce_sum(weights),
    )

  def _milestone(self, step: int) -> None:
    """Saves first, so that nothing an evaluation does can cost the steps."""
    if self.settings.with_checkpoints:
      self.checkpoints.save(step, self.settings.seed)
    scalars: dict[str, float] = {}
    if self.feed.has_development_data:
      scalars |= {f"validation/{k}": v for k, v in self.validate().items()}
    if self.evaluate:
      scalars |= {
        f"evaluation/{k}": v
        for k, v in self.evaluate(self.transformer, step).items()
      }
    if scalars:
      logging.info(
        "step %d: %s",
        step,
        ", ".join(f"{name} {value:.4f}" for name, value in scalars.items()),
      )
    if self._scalars:
      self._scalars.write(scalars, step)
    threshold = self.settings.stop_threshold
    if threshold is not None and scalars[STOPPING_SCORE] >= threshold:
      logging.info(
        "stopping: %s %.4f has reached --stop_threshold=%g",
        STOPPING_SCORE,
        scalars[STOPPING_SCORE],
        threshold,
      )
      self.model.stop_training = True

  def _resume(self) -> int:
    """Restores the newest checkpoint, if any; returns the finished steps."""
    if not self.directory.checkpoint_steps():
      return 0
    prefix = self.directory.latest_checkpoint()
    self.checkpoints.restore(prefix)
    step, _ = read_progress(prefix)
    logging.info(
      "resuming after step %d from %s; reading past the batches before it",
      step,
      prefix,
    )
    return step

  def _describe(self, step: int) -> None:
    """Logs what is about to run, and warns of what will disappoint."""
    settings, params = self.settings, self.params
    logging.info(
      "parameters: %s",
      ", ".join(_resolved(dataclasses.asdict(params))),
    )
    logging.info(
      "run: %s",
      ", ".join(_resolved(dataclasses.asdict(settings))),
    )
    logging.info(
      "%s trainable parameters, steps %d to %d, %d tokens a step",
      f"{sum(int(tf.size(v.value)) for v in self.model.trainable_variables):,}",
      step,
      settings.train_steps,
      settings.batching.batch_size,
    )
    if params.learning_rate_warmup_steps > settings.train_steps / 2:
      logging.warning(
        "the learning rate warms up for %d steps, over half of "
        "the %d of this run, which may never leave the ground; a new model "
        "takes --params_override=learning_rate_warmup_steps=%d",
        params.learning_rate_warmup_steps,
        settings.train_steps,
        max(1, settings.train_steps // 5),
      )
    if not settings.with_checkpoints:
      logging.warning("no checkpoints: the model will be lost")
    self.feed.warn_of_omissions()


def _resolved(values: Mapping[str, Any]) -> Iterator[str]:
  """Yields `name=value` for all values, those of inner records too."""
  for name, value in values.items():
    if isinstance(value, dict):
      yield from _resolved(value)
    else:
      yield f"{name}={value}"
