"""The learning-rate schedule and the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model_params import TransformerParams


@keras.saving.register_keras_serializable("official_transformer")
class LearningRateSchedule(keras.optimizers.schedules.LearningRateSchedule):
  """Linear warm-up, then decay with the root of the step (paper, 5.3).

  `rate = factor * D^-0.5 * min(1, step / warmup) / sqrt(max(step, warmup))`
  with `step` the number of finished updates. The first update has rate 0, as
  in the official model.

  Attributes:
    initial_learning_rate: the factor, 2.0 in the official sets.
    hidden_size: D.
    warmup_steps: updates until the rate peaks.
  """

  def __init__(
    self, initial_learning_rate: float, hidden_size: int, warmup_steps: int
  ) -> None:
    self.initial_learning_rate = initial_learning_rate
    self.hidden_size = hidden_size
    self.warmup_steps = warmup_steps

  def __call__(self, global_step: Any) -> tf.Tensor:
    """Returns the rate after so many updates, float32 []."""
    step = tf.cast(global_step, tf.float32)
    warmup = tf.cast(self.warmup_steps, tf.float32)
    rate = self.initial_learning_rate * self.hidden_size**-0.5
    rate *= tf.minimum(1.0, step / warmup)
    return rate * tf.math.rsqrt(tf.maximum(step, warmup))

  def get_config(self) -> dict[str, Any]:
    """Returns the arguments of `from_config`."""
    return {
      "initial_learning_rate": self.initial_learning_rate,
      "hidden_size": self.hidden_size,
      "warmup_steps": self.warmup_steps,
    }


@keras.saving.register_keras_serializable("official_transformer")
class FusedAdam(keras.optimizers.Optimizer):
  """Adam (Kingma and Ba 2014), each variable updated by one operation.

  Keras' own takes about ten passes over every variable. `TrainingStep` calls
  `update_variables`; a model's `compile` and `fit`, and a loop that calls
  `apply`, come to `update_step`.

  Attributes:
    beta_1: decay of the first moment.
    beta_2: decay of the second moment.
    epsilon: added to the root of the second moment.
  """

  def __init__(
    self,
    learning_rate: Any,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    name: str = "adam",
    **kwargs: Any,
  ) -> None:
    super().__init__(learning_rate=learning_rate, name=name, **kwargs)
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    self.momentums: list[keras.Variable] = []
    self.velocities: list[keras.Variable] = []

  def build(self, variables: Sequence[keras.Variable]) -> None:
    """Creates the two moments of each variable, zeros."""
    if self.built:
      return
    super().build(variables)
    for variable in variables:
      for name, moments in (
        ("momentum", self.momentums),
        ("velocity", self.velocities),
      ):
        moments.append(self.add_variable_from_reference(variable, name=name))

  def update_variables(
    self,
    gradients: Sequence[tf.Tensor],
    variables: Sequence[keras.Variable],
    learning_rate: tf.Tensor,
  ) -> None:
    """Updates a replica's copies of the variables; counts no step.

    Each replica updates its own copies alike: nothing is exchanged, so that
    this may stand in a branch.

    Args:
      gradients: gradients of the whole global batch, the same on all replicas.
      variables: variables that the optimizer was built with.
      learning_rate: float32 [].
    """
    for index, (gradient, variable) in enumerate(
      zip(gradients, variables, strict=True)
    ):
      self._update(gradient, variable.value, index, learning_rate)

  def update_step(
    self,
    gradient: tf.Tensor,
    variable: tf.Variable,
    learning_rate: tf.Tensor,
  ) -> None:
    """Updates one variable, as Keras' `apply` asks for it.

    Args:
      gradient: gradient of the variable.
      variable: one that the optimizer was built with.
      learning_rate: float32 [].
    """
    dense = tf.convert_to_tensor(gradient)
    index = self._get_variable_index(variable)
    self._update(dense, variable, index, learning_rate)

  def get_config(self) -> dict[str, Any]:
    """Returns the arguments of `from_config`."""
    return {
      **super().get_config(),
      "beta_1": self.beta_1,
      "beta_2": self.beta_2,
      "epsilon": self.epsilon,
    }

  def _update(
    self,
    gradient: tf.Tensor,
    variable: tf.Variable,
    index: int,
    learning_rate: tf.Tensor,
  ) -> None:
    """Updates a variable, the optimizer's `index`-th, and its moments."""
    step = tf.cast(self.iterations.value + 1, tf.float32)
    tf.raw_ops.ResourceApplyAdam(
      var=variable.handle,
      m=self.momentums[index].value.handle,
      v=self.velocities[index].value.handle,
      beta1_power=tf.pow(self.beta_1, step),
      beta2_power=tf.pow(self.beta_2, step),
      lr=learning_rate,
      beta1=self.beta_1,
      beta2=self.beta_2,
      epsilon=self.epsilon,
      grad=tf.cast(gradient, variable.dtype),
    )


def create_optimizer(
  params: TransformerParams | Mapping[str, Any],
  kind: Callable[..., FusedAdam] = FusedAdam,
) -> FusedAdam:
  """Returns Adam with the schedule (paper, 5.3; official values)."""
  params = TransformerParams.of(params)
  return kind(
    LearningRateSchedule(
      params.learning_rate,
      params.hidden_size,
      params.learning_rate_warmup_steps,
    ),
    params.optimizer_adam_beta1,
    params.optimizer_adam_beta2,
    params.optimizer_adam_epsilon,
  )
