"""Running training steps under a strategy, as Keras' `fit` or a loop asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.training.settings import MEMORY_ADVICE
from official_transformer.training.step.training_step import TrainingStep

Logs = dict[str, tf.Tensor]

# Logs that are summed over the steps of one call; of the others, the last value
# counts.
_SUMMED = ("loss", "source_tokens", "target_tokens", "input_seconds")


class StepRunner:
  """Takes batches from an iterator and makes updates of them.

  The iterator's batches, all replicas, all micro-batches and, if asked for,
  several updates are one call into TensorFlow.

  Attributes:
    step: update of one replica.
    strategy: how replicas are spread over devices.
    accumulate_steps: micro-batches an update takes.
    compile: whether XLA compiles a replica's update as a whole; batches must
      have one static shape.
    with_clock: whether the time is taken that updates wait for data; TensorFlow
      forbids that to runs that are to be deterministic.
    replica_update: makes an update from a replica's inputs and targets.
  """

  def __init__(
    self,
    step: TrainingStep,
    strategy: tf.distribute.Strategy,
    accumulate_steps: int = 1,
    compile: bool = False,
    with_clock: bool = True,
  ) -> None:
    self.step = step
    self.strategy = strategy
    self.accumulate_steps = accumulate_steps
    self.compile = compile
    self.with_clock = with_clock
    # Once for all: each of them is compiled once, wherever it is traced.
    self.replica_update = self._compiled(self._update_on_replica)
    self._accumulate = self._compiled(self._accumulate_on_replica)
    self._update_accumulated = self._compiled(
      self._update_accumulated_on_replica
    )
    self._update_once = tf.function(self._one_update, autograph=False)
    self._update_often = tf.function(self._several_updates, autograph=False)

  def __call__(self, iterator: Iterator, steps: int = 1) -> Logs:
    """Makes some updates.

    Args:
      iterator: iterator of pairs of inputs and targets, as the strategy
        distributes them.
      steps: how many updates.

    Returns:
      The logs of `TrainingStep.logs`, with the loss as a mean and tokens as
      sums over the steps; and `input_seconds`, the time that updates waited for
      data, NaN without a clock.

    Raises:
      InputError: if the memory does not suffice.
    """
    try:
      if steps == 1:
        return self._update_once(iterator)
      return self._update_often(iterator, tf.constant(steps))
    except tf.errors.ResourceExhaustedError as error:
      reason = error.message.split("\n")[0]
      raise InputError(
        f"a training step needs more memory than there is ({reason}): "
        f"{MEMORY_ADVICE}"
      ) from None

  def _several_updates(self, iterator: Iterator, steps: tf.Tensor) -> Logs:
    """Makes `steps` updates, at least one, without leaving TensorFlow."""

    def body(done: tf.Tensor, before: Logs) -> tuple[tf.Tensor, Logs]:
      logs = self._one_update(iterator)
      sums = {name: before[name] + logs[name] for name in _SUMMED}
      return done + 1, {**logs, **sums}

    _, logs = tf.while_loop(
      cond=lambda done, _: done < steps,
      body=body,
      loop_vars=(tf.constant(1), self._one_update(iterator)),
      parallel_iterations=1,
    )
    return {**logs, "loss": logs["loss"] / tf.cast(steps, tf.float32)}

  def _one_update(self, iterator: Iterator) -> Logs:
    """Makes one update."""
    if self.accumulate_steps == 1:
      batch, waited = self._next_batch(iterator)
      # The clock first: on one core, the update would be counted as waiting.
      with tf.control_dependencies([waited]):
        logs = self._on_replicas(self.replica_update, *batch)
      return {**logs, "input_seconds": waited}

    def accumulate(
      number: tf.Tensor, waited: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
      batch, seconds = self._next_batch(iterator)
      with tf.control_dependencies([seconds]):
        self._on_replicas(self._accumulate, *batch, number)
      return number + 1, waited + seconds

    _, waited = tf.while_loop(
      cond=lambda number, _: number < self.accumulate_steps,
      body=accumulate,
      loop_vars=(tf.constant(0), tf.constant(0.0)),
      parallel_iterations=1,
    )
    logs = self._on_replicas(self._update_accumulated)
    return {**logs, "input_seconds": waited}

  def _next_batch(self, iterator: Iterator) -> tuple[Any, tf.Tensor]:
    """Returns the next batch, and the seconds it took to come."""
    if not self.with_clock:
      return next(iterator), tf.constant(float("nan"))
    before = tf.timestamp()
    with tf.control_dependencies([before]):
      batch = next(iterator)
    arrived = [
      tensor
      for side in batch
      for tensor in self.strategy.experimental_local_results(side)
    ]
    with tf.control_dependencies(arrived):
      after = tf.timestamp()
    return batch, tf.cast(after - before, tf.float32)

  def _on_replicas(self, function: Callable, *arguments: Any) -> Logs:
    """Runs a function on all replicas; returns the first local result.

    All that an update reports is the global batch's, equal on all replicas.
    """
    values = self.strategy.run(function, args=arguments)
    return tf.nest.map_structure(
      lambda value: self.strategy.experimental_local_results(value)[0], values
    )

  def _compiled(self, function: Callable) -> Callable:
    """Has XLA compile a function, if it is to."""
    if not self.compile:
      return function
    return tf.function(function, jit_compile=True, autograph=False)

  def _update_on_replica(self, inputs: tf.Tensor, targets: tf.Tensor) -> Logs:
    return self.step.logs(self.step(inputs, targets))

  def _accumulate_on_replica(
    self, inputs: tf.Tensor, targets: tf.Tensor, number: tf.Tensor
  ) -> tf.Tensor:
    self.step.accumulate(inputs, targets, number)
    return number  # A strategy wants something returned.

  def _update_accumulated_on_replica(self) -> Logs:
    return self.step.logs(self.step.update_accumulated())


class FitModel(keras.Model):
  """A training model whose `fit` makes its updates by a `StepRunner`.

  Built as `FitModel(inputs=model.inputs, outputs=model.outputs)`; then
  `step_runner` is set.
  """

  step_runner: StepRunner

  def make_train_function(self, force: bool = False) -> None:
    """Makes `fit` call the runner with its iterator."""
    self.train_function = self.step_runner
