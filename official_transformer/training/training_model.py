"""A transformer together with all that updates it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Container, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.model_directory.checkpoint_files import (
  LOSS_SCALE,
  MOVING_AVERAGE,
  OPTIMIZER,
  WEIGHTS,
)
from official_transformer.model_params import TransformerParams
from official_transformer.ops.recompute import recompute_in_gradients
from official_transformer.training.frozen_weights import freeze
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.step.loss_scale import DynamicLossScale
from official_transformer.training.step.moving_average import AveragingAdam
from official_transformer.training.step.optimizer import (
  FusedAdam,
  create_optimizer,
)
from official_transformer.training.step.step_runner import FitModel, StepRunner
from official_transformer.training.step.training_step import TrainingStep
from official_transformer.training.strategy import Distribution


class TrainingModel:
  """The model, the optimizer, and the step that joins them.

  Attributes:
    transformer: model that is trained.
    keras_model: takes ids to the loss; its `fit` makes updates by `runner`.
    optimizer: updates its variables.
    loss_scale: for `fp16`, a constant or one that adapts; else None.
    step: update of one replica.
    runner: makes updates of batches.
  """

  def __init__(
    self,
    params: TransformerParams,
    settings: TrainingSettings,
    distribution: Distribution,
  ) -> None:
    execution = settings.execution
    keras.utils.set_random_seed(settings.seed)
    with distribution.strategy.scope():
      self.transformer = build_transformer(params, execution.dtype)
      if execution.recompute:
        for stack in (
          self.transformer.encoder_stack,
          self.transformer.decoder_stack,
        ):
          for layer in stack.layers:
            recompute_in_gradients(layer)
      freeze(self.transformer.weights, settings.freeze)
      model = create_training_model(
        self.transformer, settings.enable_metrics_in_training
      )
      self.keras_model = FitModel(inputs=model.inputs, outputs=model.outputs)
      self.optimizer = self._create_optimizer(settings.average_decay)
      self.optimizer.build(self.keras_model.trainable_variables)
      self.keras_model.compile(optimizer=self.optimizer, jit_compile=False)
      self.loss_scale: float | DynamicLossScale | None = None
      if execution.dtype == "fp16":
        self.loss_scale = execution.loss_scale or DynamicLossScale()
      accumulate_steps = settings.batching.accumulate_steps
      self.step = TrainingStep(
        self.keras_model,
        self.optimizer,
        settings.seed,
        self.loss_scale,
        accumulates=accumulate_steps > 1,
        clip_norm=params.clip_norm,
      )
      self.runner = StepRunner(
        self.step,
        distribution.strategy,
        accumulate_steps,
        execution.compile,
        with_clock=not execution.deterministic,
      )
      self.keras_model.step_runner = self.runner

  @property
  def weights(self) -> list[keras.Variable]:
    """The transformer's variables."""
    return self.keras_model.weights

  def variable_groups(self) -> dict[str, Sequence[keras.Variable]]:
    """Returns the variables of a checkpoint, by the name of their group."""
    groups: dict[str, Sequence[keras.Variable]] = {
      WEIGHTS: self.weights,
      OPTIMIZER: self.optimizer.variables,
    }
    if isinstance(self.loss_scale, DynamicLossScale):
      groups[LOSS_SCALE] = [
        *self.loss_scale.variables,
        self.step.finite_updates.skipped,
      ]
    if isinstance(self.optimizer, AveragingAdam):
      moving = self.optimizer.average
      averages = {average.path: average for average in moving.averages}
      # The average of a frozen weight is the weight.
      groups[MOVING_AVERAGE] = [
        averages.get(weight.path, weight) for weight in self.weights
      ]
    return groups

  def _create_optimizer(self, average_decay: float) -> FusedAdam:
    params = self.transformer.params
    if not average_decay:
      return create_optimizer(params)
    return create_optimizer(
      params, functools.partial(AveragingAdam, average_decay)
    )

  def start_groups(self, groups: Container[str]) -> None:
    """Initializes groups that a checkpoint lacked, such as an average."""
    if MOVING_AVERAGE in groups and isinstance(self.optimizer, AveragingAdam):
      self.optimizer.average.start()

  def measured(self) -> contextlib.AbstractContextManager[None]:
    """Gives the model, while it is measured, the weights to decode with."""
    if not isinstance(self.optimizer, AveragingAdam):
      return contextlib.nullcontext()
    return self.optimizer.average.in_place()

  def rehearse(self, batches: Iterator[Any]) -> None:
    """Makes an update from the next batches, and undoes it.

    The first update's learning rate is 0, so that no weight changes.

    Args:
      batches: as the strategy distributes them.

    Raises:
      InputError: if the memory does not suffice.
    """
    logs = self.runner(batches)
    float(logs["loss"])  # Waits for the devices.
    self.keras_model.reset_metrics()
    for variable in self.optimizer.variables:
      variable.assign(tf.zeros(variable.shape, variable.dtype))
    self.step.finite_updates.reset()
    if isinstance(self.loss_scale, DynamicLossScale):
      self.loss_scale.reset()
