"""One update of the weights, whoever runs it.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

from typing import NamedTuple

import keras
import tensorflow as tf

from official_transformer.model.dropout import dropout_seed
from official_transformer.model_params import PAD_ID


class StepResult(NamedTuple):
  """What one update reports.

  Attributes:
    loss: float32 [], mean over the target tokens, in nats.
    learning_rate: float32 [], the rate the update used.
    source_tokens: int64 [], without padding.
    target_tokens: int64 [], without padding.
  """

  loss: tf.Tensor
  learning_rate: tf.Tensor
  source_tokens: tf.Tensor
  target_tokens: tf.Tensor


def count_tokens(ids: tf.Tensor) -> tf.Tensor:
  """Returns the number of ids that are not PAD, int64 []."""
  return tf.math.count_nonzero(tf.not_equal(ids, PAD_ID))


class TrainingStep:
  """Forward, backward, update.

  Dropout masks are a function of the seed and the number of finished updates,
  so that a resumed run draws the masks an uninterrupted one would have drawn.

  Attributes:
    model: takes `[inputs, targets]` and adds its loss.
    optimizer: applied to the model's trainable variables.
    seed: of the run.
  """

  def __init__(
    self,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    seed: int,
  ) -> None:
    self.model = model
    self.optimizer = optimizer
    self.seed = seed

  def __call__(self, inputs: tf.Tensor, targets: tf.Tensor) -> StepResult:
    """Makes one update.

    Args:
      inputs: int64 [B, S].
      targets: int64 [B, T].
    """
    step = tf.cast(self.optimizer.iterations.value, tf.int32)
    seed = tf.random.fold_in(tf.constant([self.seed, 0], tf.int32), step)
    learning_rate = tf.cast(self.optimizer.learning_rate, tf.float32)
    with tf.GradientTape() as tape, dropout_seed(seed):
      self.model([inputs, targets], training=True)
      loss = tf.add_n(self.model.losses)
    variables = self.model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    # The table's gradient comes from look-ups and products together. Dense,
    # it is updated as the official model's is: Adam moves every row.
    gradients = [tf.convert_to_tensor(g) for g in gradients]
    self.optimizer.apply(gradients, variables)
    return StepResult(
      loss, learning_rate, count_tokens(inputs), count_tokens(targets)
    )


class FitModel(keras.Model):
  """A training model whose `fit` runs a `TrainingStep`.

  Built as `FitModel(inputs=model.inputs, outputs=model.outputs)`, compiled
  with the optimizer; then `training_step` is set.
  """

  training_step: TrainingStep

  @tf.autograph.experimental.do_not_convert
  def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict:
    """Makes one update from a batch of the pipeline."""
    result = self.training_step(*data)
    metrics = {m.name: m.result() for m in self.metrics if m.name != "loss"}
    return {**result._asdict(), **metrics}
