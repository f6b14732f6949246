"""One update of the weights, whoever runs it, on however many devices.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_transformer.model.dropout import dropout_seed
from official_transformer.model_params import PAD_ID
from official_transformer.training.loss_scale import DynamicLossScale


class StepResult(NamedTuple):
  """What one update reports.

  Attributes:
    loss: float32 [], mean over the target tokens of the global batch, in nats.
    learning_rate: float32 [], the rate the update used.
    source_tokens: float32 [], of the global batch, without padding.
    target_tokens: float32 [], likewise.
  """

  loss: tf.Tensor
  learning_rate: tf.Tensor
  source_tokens: tf.Tensor
  target_tokens: tf.Tensor


def count_tokens(ids: tf.Tensor) -> tf.Tensor:
  """Returns the number of ids that are not PAD, float32 []."""
  return tf.reduce_sum(tf.cast(tf.not_equal(ids, PAD_ID), tf.float32))


class TrainingStep:
  """Forward, backward, update: of one replica's share of a global batch.

  The loss is the mean over the tokens of the global batch, however they are
  spread: each replica weights its gradients by its own share, and the
  optimizer sums them over the replicas.

  Dropout masks are a function of the seed, the number of finished updates and
  the replica, so that a resumed run draws the masks an uninterrupted one would
  have drawn.

  Attributes:
    model: takes `[inputs, targets]` and adds its loss.
    optimizer: applied to the model's trainable variables.
    seed: of the run.
    loss_scale: multiplies the loss while gradients are computed: a constant,
      or one that adapts and skips updates that are not finite.
  """

  def __init__(
    self,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    seed: int,
    loss_scale: float | DynamicLossScale = 1.0,
  ) -> None:
    self.model = model
    self.optimizer = optimizer
    self.seed = seed
    self.loss_scale = loss_scale

  def __call__(self, inputs: tf.Tensor, targets: tf.Tensor) -> StepResult:
    """Makes one update.

    Args:
      inputs: int64 [B, S].
      targets: int64 [B, T].
    """
    replica = tf.distribute.get_replica_context()
    learning_rate = tf.cast(self.optimizer.learning_rate, tf.float32)
    scale = self.loss_scale
    if isinstance(scale, DynamicLossScale):
      scale = scale.scale.value
    local_tokens = count_tokens(targets)
    source_tokens, tokens = replica.all_reduce(
      tf.distribute.ReduceOp.SUM, [count_tokens(inputs), local_tokens]
    )
    share = tf.math.divide_no_nan(local_tokens, tokens)
    with tf.GradientTape() as tape, dropout_seed(self._dropout_seed(replica)):
      self.model([inputs, targets], training=True)
      loss = tf.add_n(self.model.losses) * share
      scaled = loss * scale
    variables = self.model.trainable_variables
    gradients = tape.gradient(scaled, [v.value for v in variables])
    # The table's gradient comes from look-ups and products together. Dense,
    # it is updated as the official model's is: Adam moves every row.
    gradients = [tf.convert_to_tensor(g) / scale for g in gradients]
    if isinstance(self.loss_scale, DynamicLossScale):
      self.loss_scale.apply_if_finite(gradients, self._apply)
    else:
      self._apply(gradients)
    loss = replica.all_reduce(tf.distribute.ReduceOp.SUM, loss)
    return StepResult(loss, learning_rate, source_tokens, tokens)

  def _apply(self, gradients: list[tf.Tensor]) -> None:
    """Updates the variables; the optimizer sums over the replicas."""
    self.optimizer.apply(gradients, self.model.trainable_variables)

  def logs(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, Any]:
    """Makes one update; returns its result and the model's metrics by name."""
    result = self(inputs, targets)
    metrics = {
      m.name: m.result() for m in self.model.metrics if m.name != "loss"
    }
    return {**result._asdict(), **metrics}

  def _dropout_seed(self, replica: Any) -> tf.Tensor:
    """Returns int32 [2], of this update on this replica."""
    seed = tf.constant([self.seed, 0], tf.int32)
    step = tf.cast(self.optimizer.iterations.value, tf.int32)
    seed = tf.random.fold_in(seed, step)
    if replica.num_replicas_in_sync > 1:
      seed = tf.random.fold_in(seed, replica.replica_id_in_sync_group)
    return seed


class FitModel(keras.Model):
  """A training model whose `fit` runs a `TrainingStep`.

  Built as `FitModel(inputs=model.inputs, outputs=model.outputs)`, compiled
  with the optimizer; then `training_step` is set.
  """

  training_step: TrainingStep

  @tf.autograph.experimental.do_not_convert
  def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict:
    """Makes one update from a batch of the pipeline."""
    return self.training_step.logs(*data)
