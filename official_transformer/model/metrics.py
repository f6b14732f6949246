"""The label-smoothed loss and the training metrics, as layers.

Shapes: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

from typing import Any, ClassVar

import keras
import tensorflow as tf

from official_transformer.model_params import PAD_ID
from official_transformer.ops.cross_entropy import smoothed_cross_entropy
from official_transformer.ops.layer import ConfiguredLayer


def padded_cross_entropy_loss(
  logits: tf.Tensor,
  labels: tf.Tensor,
  smoothing: float,
  vocab_size: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the loss of each token, 0 at padding, and each token's weight.

  Args:
    logits: [B, T, V]; if logits and labels differ in T, the shorter one is
      padded.
    labels: integers [B, T].
    smoothing: probability spread over the wrong tokens.
    vocab_size: V, an argument of the official function; None reads it from the
      logits.

  Returns:
    float32 [B, T] twice; the weight is 0 at PAD, else 1.

  Raises:
    ValueError: if `vocab_size` is not V.
  """
  if vocab_size not in (None, logits.shape[-1]):
    raise ValueError(
      f"vocab_size is {vocab_size}, but there are {logits.shape[-1]} logits"
    )
  logits, labels = _pad_to_same_length(logits, labels)
  weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
  return smoothed_cross_entropy(logits, labels, smoothing) * weights, weights


def transformer_loss(
  logits: tf.Tensor,
  labels: tf.Tensor,
  smoothing: float,
  vocab_size: int | None = None,
) -> tf.Tensor:
  """Returns the loss of a batch, a scalar float32 in nats.

  It is the sum of the losses of all tokens that are not PAD, divided by their
  number; 0 if there are none. Arguments as in `padded_cross_entropy_loss`.
  """
  losses, weights = padded_cross_entropy_loss(
    logits, labels, smoothing, vocab_size
  )
  return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights))


def _pad_to_same_length(
  logits: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Pads logits [B, T, V] or labels [B, T] with 0 to the longer of both."""
  if logits.shape[1] is not None and logits.shape[1] == labels.shape[1]:
    return logits, labels
  lengths = tf.shape(logits)[1], tf.shape(labels)[1]
  longest = tf.maximum(*lengths)
  logits = tf.pad(logits, [[0, 0], [0, longest - lengths[0]], [0, 0]])
  return logits, tf.pad(labels, [[0, 0], [0, longest - lengths[1]]])


class LossLayer(ConfiguredLayer):
  """Adds the label-smoothed loss (5.4) to the model; returns the logits.

  Attributes:
    vocab_size: V.
    label_smoothing: probability spread over the wrong tokens.
  """

  def __init__(
    self, vocab_size: int, label_smoothing: float, **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
    self.vocab_size = vocab_size
    self.label_smoothing = label_smoothing

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes logits [B, T, V] and labels [B, T]; returns the logits."""
    logits, labels = inputs
    self.add_loss(
      transformer_loss(logits, labels, self.label_smoothing, self.vocab_size)
    )
    return logits


def padded_accuracy(
  logits: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns `padded_accuracy_topk` with k = 1."""
  return padded_accuracy_topk(logits, labels, k=1)


def padded_accuracy_topk(
  logits: tf.Tensor, labels: tf.Tensor, k: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns for each token whether its label is among the k best logits.

  Args:
    logits: [B, T, V]; padded as in `padded_cross_entropy_loss`.
    labels: integers [B, T].
    k: a label is right if it is among the k best predictions; above V, all are.

  Returns:
    float32 [B, T] twice: 1 or 0, and the weight, 0 at PAD.
  """
  logits, labels = _pad_to_same_length(logits, labels)
  weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
  predictions = tf.math.top_k(logits, k=min(k, logits.shape[-1])).indices
  found = predictions == tf.cast(labels, tf.int32)[..., None]
  return tf.cast(tf.reduce_any(found, axis=-1), tf.float32), weights


def padded_accuracy_top5(
  logits: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns `padded_accuracy_topk` with k = 5."""
  return padded_accuracy_topk(logits, labels, k=5)


def padded_sequence_accuracy(
  logits: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns for each sequence whether all tokens that are not PAD are right.

  Returns:
    float32 [B], 1 or 0; the weight, 1.0.
  """
  right, weights = padded_accuracy(logits, labels)
  wrong = tf.reduce_sum((1.0 - right) * weights, axis=1)
  return tf.cast(tf.equal(wrong, 0.0), tf.float32), tf.constant(1.0)


def padded_neg_log_perplexity(
  logits: tf.Tensor, labels: tf.Tensor, vocab_size: int | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns each token's log-probability, not smoothed, and its weight.

  Both are float32 [B, T]; arguments as in `padded_cross_entropy_loss`.
  """
  losses, weights = padded_cross_entropy_loss(logits, labels, 0.0, vocab_size)
  return -losses, weights


class MetricLayer(ConfiguredLayer):
  """Accumulates the official training metrics; passes the logits through.

  The metrics are `accuracy`, `accuracy_top5`, `accuracy_per_sequence` and
  `neg_log_perplexity` (the mean log-probability of a token, unsmoothed).

  Attributes:
    vocab_size: V.
  """

  keras_defaults: ClassVar = {"dtype": "float32"}

  def __init__(self, vocab_size: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.vocab_size = vocab_size
    self.means = {
      name: keras.metrics.Mean(name=name)
      for name in (
        "accuracy",
        "accuracy_top5",
        "accuracy_per_sequence",
        "neg_log_perplexity",
      )
    }

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes logits [B, T, V] and labels [B, T]; returns the logits."""
    given, labels = inputs
    logits = tf.cast(given, tf.float32)
    means = self.means
    means["accuracy"].update_state(*padded_accuracy(logits, labels))
    means["accuracy_top5"].update_state(*padded_accuracy_top5(logits, labels))
    # Each sequence counts once, however large its batch is.
    right, _ = padded_sequence_accuracy(logits, labels)
    means["accuracy_per_sequence"].update_state(right)
    means["neg_log_perplexity"].update_state(
      *padded_neg_log_perplexity(logits, labels, self.vocab_size)
    )
    return given
