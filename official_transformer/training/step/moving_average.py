"""A moving average of the weights, kept beside them while they are trained.

It changes with every update, unlike the mean of a few checkpoints that
`--mode=average` computes. Evaluations and decoding use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_transformer.training.step.optimizer import FusedAdam


class MovingAverage:
  """Averages of weights (Polyak and Juditsky 1992).

  `average += (1 - d) * (weight - average)` after each update, where d is the
  decay, but at most `(1 + n) / (10 + n)` after n updates, so that the average
  leaves the first weights behind at once.

  Attributes:
    weights: weights that are trained.
    decay: in (0, 1).
    averages: averages of the weights, in their order and with their paths.
  """

  def __init__(self, weights: Sequence[keras.Variable], decay: float) -> None:
    self.weights = weights
    self.decay = decay
    self.averages = [_beside(weight) for weight in weights]

  def update(self, updates: tf.Tensor) -> None:
    """Moves a replica's copies of the averages.

    Args:
      updates: how many were made before the one that was just made.
    """
    updates = tf.cast(updates, tf.float32)
    rate = 1.0 - tf.minimum(self.decay, (1.0 + updates) / (10.0 + updates))
    for weight, average in zip(self.weights, self.averages, strict=True):
      # As Adam does it: nothing is exchanged with other replicas.
      tf.raw_ops.AssignSubVariableOp(
        resource=average.value.handle,
        value=rate * (average.value - weight.value),
      )

  def start(self) -> None:
    """Sets the averages to the weights."""
    for weight, average in zip(self.weights, self.averages, strict=True):
      average.assign(weight.value)

  @contextlib.contextmanager
  def in_place(self) -> Iterator[None]:
    """Puts the averages into the model for the time of an evaluation."""
    kept = [tf.identity(weight.value) for weight in self.weights]
    try:
      # Within: an interrupt may come between two of them.
      for weight, average in zip(self.weights, self.averages, strict=True):
        weight.assign(average.value)
      yield
    finally:
      for weight, value in zip(self.weights, kept, strict=True):
        weight.assign(value)


class AveragingAdam(FusedAdam):
  """Adam with a moving average of the weights.

  Attributes:
    average: average of the variables, once it is built.
    decay: decay of the average.
  """

  average: MovingAverage

  def __init__(self, decay: float, *adam: Any) -> None:
    super().__init__(*adam)
    self.decay = decay

  def build(self, variables: Sequence[keras.Variable]) -> None:
    """Creates the averages, and Adam's variables."""
    if not self.built:
      # Keras would take a list of variables for the optimizer's own.
      self.average = MovingAverage(variables, self.decay)
    super().build(variables)

  def update_variables(
    self,
    gradients: Sequence[tf.Tensor],
    variables: Sequence[keras.Variable],
    learning_rate: tf.Tensor,
  ) -> None:
    """Updates a replica's copies of the variables, then of their averages."""
    super().update_variables(gradients, variables, learning_rate)
    self.average.update(self.iterations.value)


def _beside(variable: keras.Variable) -> keras.Variable:
  """Returns a variable with the value and the path of another."""
  *scopes, name = variable.path.split("/")
  with contextlib.ExitStack() as stack:
    for scope in scopes:
      stack.enter_context(keras.name_scope(scope))
    value: Any = variable.value
    return keras.Variable(
      tf.convert_to_tensor(value),
      dtype=variable.dtype,
      trainable=False,
      name=name,
    )
