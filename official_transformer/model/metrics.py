"""The label-smoothed loss and the training metrics, as layers.

Shapes: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model_params import PAD_ID


def smoothed_cross_entropy(
  logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> tf.Tensor:
  """Returns the divergence of the prediction from the smoothed label.

  The target puts `1 - s` on the label and `s / (V - 1)` on every other token
  (Szegedy et al. 2015, section 7); its own entropy is subtracted, so that a
  perfect prediction costs 0. Padding is not treated: the caller weights it.

  The target is never laid out as [..., V]. With z the logits and c, l its two
  values, `H(target, softmax(z)) = lse(z) - (c - l) z[label] - l sum(z)`, and
  the gradient is `softmax(z) - l - (c - l) one_hot(label)`.

  Args:
    logits: [..., V].
    labels: integers [...], each below V.
    smoothing: s, in [0, 1).

  Returns:
    float32 [...], in nats.
  """
  vocab_size = logits.shape[-1]
  shape = tf.shape(labels)
  confidence = 1.0 - smoothing
  low = smoothing / (vocab_size - 1)
  entropy = -(
    confidence * math.log(confidence)
    + (vocab_size - 1) * low * math.log(low + 1e-20)
  )

  @tf.custom_gradient
  def cross_entropy(z: tf.Tensor) -> Any:
    z = tf.cast(z, tf.float32)
    rows = tf.range(tf.shape(z)[0])
    at_label = tf.stack([rows, flat_labels], axis=1)
    peak = tf.reduce_max(z, axis=1, keepdims=True)
    exponentials = tf.exp(z - peak)
    total = tf.reduce_sum(exponentials, axis=1, keepdims=True)
    log_sum_exp = (tf.math.log(total) + peak)[:, 0]
    losses = (
      log_sum_exp
      - (confidence - low) * tf.gather_nd(z, at_label)
      - low * tf.reduce_sum(z, axis=1)
    )

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
      scaled = exponentials * (upstream[:, None] / total)
      scaled -= (low * upstream)[:, None]
      scaled = tf.tensor_scatter_nd_sub(
        scaled, at_label, (confidence - low) * upstream
      )
      return tf.cast(scaled, logits.dtype)

    return losses, gradient

  flat_labels = tf.cast(tf.reshape(labels, [-1]), tf.int32)
  losses = cross_entropy(tf.reshape(logits, [-1, vocab_size])) - entropy
  return tf.reshape(losses, shape)


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
  where there are none.
  """
  losses, weights = padded_cross_entropy_loss(logits, labels, smoothing)
  return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights))


class LossLayer(keras.layers.Layer):
  """Adds the label-smoothed loss to the model; passes the logits through.

  Attributes:
    label_smoothing: probability spread over the wrong tokens.
  """

  def __init__(self, label_smoothing: float, **kwargs: Any) -> None:
    super().__init__(dtype="float32", autocast=False, **kwargs)
    self.label_smoothing = label_smoothing

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the layer has no variables."""

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes logits [B, T, V] and labels [B, T]; returns the logits."""
    logits, labels = inputs
    self.add_loss(transformer_loss(logits, labels, self.label_smoothing))
    return logits


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
