"""The label-smoothed loss and the training metrics, as layers.

Shapes: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.model.embedding_layer import Softmax
from official_transformer.model_params import PAD_ID
from official_transformer.ops.cross_entropy import (
  linear_cross_entropy,
  smoothed_cross_entropy,
)


def padded_cross_entropy_loss(
  logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the loss of each token, 0 at padding, and each token's weight.

  Args:
    logits: [B, T, V].
    labels: integers [B, T].
    smoothing: as in `smoothed_cross_entropy`.

  Returns:
    float32 [B, T] twice; the weight is 0 at PAD, else 1.
  """
  weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
  return smoothed_cross_entropy(logits, labels, smoothing) * weights, weights


def transformer_loss(
  logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> tf.Tensor:
  """Returns the loss of a batch, a scalar float32 in nats.

  It is the sum over the tokens that are not PAD, divided by their number; 0
  if there are none.
  """
  losses, weights = padded_cross_entropy_loss(logits, labels, smoothing)
  return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights))


class LossLayer(keras.layers.Layer):
  """Adds the label-smoothed loss to the model; returns the logits.

  The loss does not need them: if nobody else reads them, a traced model
  never computes them.

  Attributes:
    label_smoothing: probability spread over the wrong tokens.
    softmax: scores the vocabulary.
  """

  def __init__(
    self,
    label_smoothing: float,
    softmax: Softmax,
    **kwargs: Any,
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.label_smoothing = label_smoothing
    self.softmax = softmax

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the layer has no variables of its own."""

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes states [B, T, D] and labels [B, T]; returns logits [B, T, V]."""
    given, labels = inputs
    is_static = labels.shape.is_fully_defined()
    states = tf.reshape(given, [-1, self.softmax.hidden_size])
    labels = tf.reshape(labels, [-1])
    # The vocabulary is scored if there is something to predict. Static
    # shapes stay static: there, padding is weighted with 0.
    if not is_static:
      positions = tf.where(tf.not_equal(labels, PAD_ID))[:, 0]
      states = tf.gather(states, positions)
      labels = tf.gather(labels, positions)
    weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights))
    self.add_loss(
      linear_cross_entropy(
        *self.softmax.operands(states),
        labels,
        weights,
        self.label_smoothing,
      )
    )
    return self.softmax.linear(given)


def padded_accuracy(
  logits: tf.Tensor, labels: tf.Tensor, k: int = 1
) -> tuple[tf.Tensor, tf.Tensor]:
  """Tells for each token whether it is among the k likeliest.

  Args:
    logits: [B, T, V].
    labels: integers [B, T].
    k: how many predictions a token may be among.

  Returns:
    float32 [B, T] twice: 1 or 0, and the weight, 0 at PAD.
  """
  weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
  k = min(k, logits.shape[-1])
  predictions = tf.math.top_k(logits, k=k).indices
  found = predictions == tf.cast(labels, tf.int32)[..., None]
  return tf.cast(tf.reduce_any(found, axis=-1), tf.float32), weights


def padded_sequence_accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns float32 [B]: 1 where every token that is not PAD is right."""
  right, weights = padded_accuracy(logits, labels)
  wrong = tf.reduce_sum((1.0 - right) * weights, axis=1)
  return tf.cast(tf.equal(wrong, 0.0), tf.float32)


class MetricLayer(keras.layers.Layer):
  """Accumulates the official training metrics; passes the logits through.

  The metrics are `accuracy`, `accuracy_top5`, `accuracy_per_sequence` and
  `neg_log_perplexity` (the mean log-probability of a token, unsmoothed).
  """

  def __init__(self, **kwargs: Any) -> None:
    super().__init__(dtype="float32", autocast=False, **kwargs)
    self.means = {
      name: keras.metrics.Mean(name=name)
      for name in (
        "accuracy",
        "accuracy_top5",
        "accuracy_per_sequence",
        "neg_log_perplexity",
      )
    }

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the metrics have their variables already."""

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes logits [B, T, V] and labels [B, T]; returns the logits."""
    given, labels = inputs
    logits = tf.cast(given, tf.float32)
    means = self.means
    means["accuracy"].update_state(*padded_accuracy(logits, labels))
    means["accuracy_top5"].update_state(*padded_accuracy(logits, labels, k=5))
    means["accuracy_per_sequence"].update_state(
      padded_sequence_accuracy(logits, labels)
    )
    losses, weights = padded_cross_entropy_loss(logits, labels, smoothing=0.0)
    means["neg_log_perplexity"].update_state(-losses, weights)
    return given
