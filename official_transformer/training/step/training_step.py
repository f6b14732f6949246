"""One update of the weights, on any number of devices.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_transformer.model_params import PAD_ID
from official_transformer.ops.dropout import dropout_seed, fold_in
from official_transformer.training.step.finite_updates import FiniteUpdates
from official_transformer.training.step.loss_scale import DynamicLossScale
from official_transformer.training.step.optimizer import FusedAdam


class StepResult(NamedTuple):
  """Measurements of one update over the global batch.

  Attributes:
    loss: float32 [], mean over the target tokens, in nats.
    learning_rate: float32 [], the rate the update used.
    source_tokens: float32 [], without padding.
    target_tokens: float32 [], without padding.
    gradient_norm: float32 [], of all gradients as one vector, not clipped.
  """

  loss: tf.Tensor
  learning_rate: tf.Tensor
  source_tokens: tf.Tensor
  target_tokens: tf.Tensor
  gradient_norm: tf.Tensor


class Totals(NamedTuple):
  """Sums over a batch, or several; float32 [] each.

  Attributes:
    loss: in nats, summed over the target tokens.
    source_tokens: source tokens without padding.
    target_tokens: target tokens without padding.
  """

  loss: tf.Tensor
  source_tokens: tf.Tensor
  target_tokens: tf.Tensor


def count_tokens(ids: tf.Tensor) -> tf.Tensor:
  """Returns the number of ids that are not PAD, float32 []."""
  return tf.reduce_sum(tf.cast(tf.not_equal(ids, PAD_ID), tf.float32))


class TrainingStep:
  """One update: forward and backward pass over a replica's share of a batch.

  The loss is the mean over the tokens of the global batch, however they are
  spread over replicas and micro-batches: local gradients are weighted by local
  tokens, summed over the micro-batches, summed once over the replicas, and
  divided by the tokens of all.

  Dropout masks are a function of the seed, the number of finished updates, the
  micro-batch and the replica, so that a resumed run draws the masks an
  uninterrupted one would have drawn.

  An update whose loss or gradients are not finite is skipped, because it would
  destroy the weights.

  Attributes:
    model: takes `[inputs, targets]` and adds its loss.
    optimizer: updates the model's trainable variables.
    seed: seed of the run.
    loss_scale: multiplies the loss while gradients are computed, a constant or
      one that adapts.
    accumulates: whether an update takes several micro-batches.
    clip_norm: the largest norm of an update's gradient; 0 for any.
    finite_updates: counts the updates that were not made.
  """

  def __init__(
    self,
    model: keras.Model,
    optimizer: FusedAdam,
    seed: int,
    loss_scale: float | DynamicLossScale | None = None,
    accumulates: bool = False,
    clip_norm: float = 0.0,
  ) -> None:
    self.model = model
    self.optimizer = optimizer
    self.seed = seed
    self.loss_scale = loss_scale
    self.accumulates = accumulates
    self.clip_norm = clip_norm
    self.finite_updates = FiniteUpdates()
    if accumulates:
      # A replica's own: they are summed over the replicas once an update.
      local = functools.partial(
        tf.Variable,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
      )
      self._gradient_sums = [
        local(tf.zeros(v.shape)) for v in model.trainable_variables
      ]
      self._totals = local(tf.zeros([len(Totals._fields)]))

  def __call__(self, inputs: tf.Tensor, targets: tf.Tensor) -> StepResult:
    """Makes one update from one batch.

    Args:
      inputs: int64 [B, S].
      targets: int64 [B, T].
    """
    gradients, local = self.gradients_of(inputs, targets)
    totals = Totals(*tf.unstack(_sum_over_replicas(tf.stack(local))))
    if _replicas() > 1:
      share = tf.math.divide_no_nan(local.target_tokens, totals.target_tokens)
      gradients = [g * share for g in gradients]
    return self._update(gradients, totals)

  def accumulate(
    self, inputs: tf.Tensor, targets: tf.Tensor, micro_batch: tf.Tensor
  ) -> None:
    """Adds a micro-batch to the next update.

    Args:
      inputs: int64 [B, S].
      targets: int64 [B, T].
      micro_batch: int32 [], its number within the update.
    """
    gradients, local = self.gradients_of(inputs, targets, micro_batch)
    for total, gradient in zip(self._gradient_sums, gradients, strict=True):
      total.assign_add(gradient * local.target_tokens)
    self._totals.assign_add(tf.stack(local))

  def update_accumulated(self) -> StepResult:
    """Makes one update from all micro-batches since the last."""
    totals = Totals(*tf.unstack(_sum_over_replicas(self._totals.read_value())))
    factor = tf.math.divide_no_nan(1.0, totals.target_tokens)
    result = self._update(
      [total.read_value() * factor for total in self._gradient_sums], totals
    )
    for variable in (*self._gradient_sums, self._totals):
      variable.assign(tf.zeros(variable.shape))
    return result

  def logs(self, result: StepResult) -> dict[str, tf.Tensor]:
    """Returns an update's result and the model's metrics by name."""
    logs = result._asdict()
    for metric in self.model.metrics:
      if metric.name != "loss":
        # A replica's own: their sums belong to the global batch.
        sums = tf.stack([metric.total.value, metric.count.value])
        total, count = tf.unstack(_sum_over_replicas(sums))
        logs[metric.name] = tf.math.divide_no_nan(total, count)
    logs["skipped_updates"] = self.finite_updates.skipped.value
    logs["streak"] = self.finite_updates.streak.value
    return logs

  def gradients_of(
    self,
    inputs: tf.Tensor,
    targets: tf.Tensor,
    micro_batch: tf.Tensor | None = None,
  ) -> tuple[list[tf.Tensor], Totals]:
    """Returns the gradients of the mean loss of a replica's batch, and sums.

    Args:
      inputs: int64 [B, S].
      targets: int64 [B, T].
      micro_batch: int32 [], its number within the update, if there are several.
    """
    scale: Any = self.loss_scale or 1.0
    if isinstance(scale, DynamicLossScale):
      scale = scale.scale.value
    with tf.GradientTape() as tape, dropout_seed(self._seed(micro_batch)):
      self.model([inputs, targets], training=True)
      loss = tf.add_n(self.model.losses)
      scaled = loss * scale
    variables = self.model.trainable_variables
    # The table's gradient comes from look-ups and products together. Dense,
    # it is updated as the official model's is: Adam moves every row.
    gradients = [
      tf.convert_to_tensor(g) / scale
      for g in tape.gradient(scaled, [v.value for v in variables])
    ]
    tokens = count_tokens(targets)
    return gradients, Totals(loss * tokens, count_tokens(inputs), tokens)

  def _update(self, gradients: list[tf.Tensor], totals: Totals) -> StepResult:
    """Sums gradients over the replicas and updates the variables.

    Args:
      gradients: this replica's part of the gradient of the mean loss.
      totals: totals of all replicas.
    """
    gradients = _sum_over_replicas(gradients)
    learning_rate = tf.cast(self.optimizer.learning_rate, tf.float32)
    norm = tf.linalg.global_norm(gradients)
    # One element that is not finite leaves the norm so.
    finite = tf.math.is_finite(norm) & tf.math.is_finite(totals.loss)
    if self.clip_norm:
      factor = tf.minimum(1.0, tf.math.divide_no_nan(self.clip_norm, norm))
      gradients = [g * factor for g in gradients]

    def update() -> None:
      self.optimizer.update_variables(
        gradients, self.model.trainable_variables, learning_rate
      )

    self.finite_updates.make(finite, update)
    if isinstance(self.loss_scale, DynamicLossScale):
      self.loss_scale.adapt(finite)
    iterations = self.optimizer.iterations
    iterations.assign_add(tf.cast(finite, iterations.dtype))
    return StepResult(
      tf.math.divide_no_nan(totals.loss, totals.target_tokens),
      learning_rate,
      totals.source_tokens,
      totals.target_tokens,
      norm,
    )

  def _seed(self, micro_batch: tf.Tensor | None) -> tf.Tensor:
    """Returns int32 [2], of this update's micro-batch on this replica."""
    seed = tf.constant([self.seed, 0], tf.int32)
    step = tf.cast(self.optimizer.iterations.value, tf.int32)
    seed = fold_in(seed, step)
    if micro_batch is not None:
      seed = fold_in(seed, micro_batch)
    if _replicas() > 1:
      replica = tf.distribute.get_replica_context()
      number = replica.replica_id_in_sync_group
      seed = fold_in(seed, number)
    return seed


def _replicas() -> int:
  return tf.distribute.get_replica_context().num_replicas_in_sync


def _sum_over_replicas(value: Any) -> Any:
  """Sums tensors, or a list of them, over all replicas."""
  if _replicas() == 1:
    return value
  replica = tf.distribute.get_replica_context()
  return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)
