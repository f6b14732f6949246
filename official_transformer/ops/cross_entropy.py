"""Softmax cross-entropy against smoothed labels, of logits or before them.

Shapes: N positions, C positions of a chunk, D hidden size, V vocabulary.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_transformer.ops.dense import matmul, product_dtype

# Logits that exist at a time while training: 32 MiB of float32.
CHUNK_ELEMENTS = 2**23


@dataclasses.dataclass(frozen=True)
class SmoothedTarget:
  """Smoothed target probabilities (Szegedy et al. 2015, section 7).

  Attributes:
    confidence: probability of the label, `1 - s`.
    low: probability of every other token, `s / (V - 1)`.
    entropy: the target's own, in nats. It is subtracted from the loss, so that
      a perfect prediction costs 0.
  """

  confidence: float
  low: float
  entropy: float

  @classmethod
  def of(cls, smoothing: float, vocab_size: int) -> SmoothedTarget:
    """Returns the target of a smoothing s in [0, 1)."""
    confidence = 1.0 - smoothing
    low = smoothing / (vocab_size - 1)
    entropy = -(
      confidence * math.log(confidence)
      + (vocab_size - 1) * low * math.log(low + 1e-20)
    )
    return cls(confidence, low, entropy)


def smoothed_cross_entropy(
  logits: tf.Tensor, labels: tf.Tensor, smoothing: float
) -> tf.Tensor:
  """Returns the divergence of the prediction from the smoothed label.

  The target is never laid out as [..., V]. With z the logits and c, l its two
  values, `H(target, softmax(z)) = lse(z) - (c - l) z[label] - l sum(z)`.
  Padding is not treated: the caller weights it.

  Args:
    logits: [..., V].
    labels: integers [...], each below V.
    smoothing: s, in [0, 1).

  Returns:
    float32 [...], in nats.
  """
  target = SmoothedTarget.of(smoothing, logits.shape[-1])
  logits = tf.cast(logits, tf.float32)
  at_label = tf.gather(logits, labels, axis=-1, batch_dims=len(labels.shape))
  return (
    tf.reduce_logsumexp(logits, axis=-1)
    - (target.confidence - target.low) * at_label
    - target.low * tf.reduce_sum(logits, axis=-1)
    - target.entropy
  )


def summed_cross_entropies(
  states: tf.Tensor,
  table: tf.Tensor,
  labels: tf.Tensor,
  weights: tf.Tensor,
  smoothings: Sequence[float],
) -> tf.Tensor:
  """Returns the summed loss for each of several smoothings, without gradient.

  The logits exist for one chunk of positions at a time, as in training.

  Args:
    states: [N, D], the inputs of the output layer.
    table: float32 [V, D].
    labels: integers [N], each below V.
    weights: float32 [N].
    smoothings: each in [0, 1).

  Returns:
    float32 [number of smoothings], in nats.
  """
  chunks, split, _ = _chunking(states, table.shape[0])
  inputs = [split(x) for x in (states, labels, weights)]

  def losses(chunk: list[tf.Tensor]) -> tf.Tensor:
    x, label, weight = chunk
    logits = matmul(x, table, transpose_b=True)
    return tf.stack(
      [
        tf.reduce_sum(weight * smoothed_cross_entropy(logits, label, s))
        for s in smoothings
      ]
    )

  _, sums = tf.while_loop(
    cond=lambda i, _: i < chunks,
    body=lambda i, sums: (i + 1, sums + losses([x[i] for x in inputs])),
    loop_vars=(0, tf.zeros([len(smoothings)])),
    parallel_iterations=1,
  )
  return sums


def label_log_probabilities(
  states: tf.Tensor, table: tf.Tensor, labels: tf.Tensor
) -> tf.Tensor:
  """Returns the log-probability of each label, without gradient.

  The logits exist for one chunk of positions at a time.

  Args:
    states: [N, D], the inputs of the output layer.
    table: float32 [V, D].
    labels: integers [N], each below V.

  Returns:
    float32 [N], in nats.
  """
  chunks, split, join = _chunking(states, table.shape[0])
  states, labels = split(states), split(labels)

  def body(i: tf.Tensor, found: tf.TensorArray) -> tuple[Any, Any]:
    logits = tf.cast(matmul(states[i], table, transpose_b=True), tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels[i], logits=logits
    )
    return i + 1, found.write(i, -losses[:, None])

  _, found = tf.while_loop(
    cond=lambda i, _: i < chunks,
    body=body,
    loop_vars=(
      0,
      tf.TensorArray(tf.float32, chunks, element_shape=[None, 1]),
    ),
    parallel_iterations=1,
  )
  return join(found.stack())[:, 0]


class _Chunking(NamedTuple):
  """Functions that split positions into chunks of one size.

  Attributes:
    chunks: how many.
    split: reshapes [N, ...] to [chunks, C, ...], padded with zeros.
    join: the inverse for [chunks, C, D], without the padding.
  """

  chunks: int | tf.Tensor
  split: Callable[[tf.Tensor], tf.Tensor]
  join: Callable[[tf.Tensor], tf.Tensor]


def _chunking(states: tf.Tensor, vocab_size: int) -> _Chunking:
  """Splits positions into as many chunks as their logits need.

  At most as many rows as there are chunks are added, of zeros.

  Args:
    states: [N, D].
    vocab_size: V.
  """
  # A number, if it is known, keeps all shapes static.
  count, at_least = states.shape[0], max
  if count is None:
    count, at_least = tf.shape(states)[0], tf.maximum
  rows = max(CHUNK_ELEMENTS // vocab_size, 1)
  chunks = at_least((count + rows - 1) // rows, 1)
  added = -count % chunks
  size = (count + added) // chunks

  def split(x: tf.Tensor) -> tf.Tensor:
    rest = x.shape[1:]
    x = tf.pad(x, [[0, added]] + [[0, 0]] * len(rest))
    return tf.reshape(x, [chunks, size, *rest])

  def join(x: tf.Tensor) -> tf.Tensor:
    return tf.reshape(x, [chunks * size, x.shape[-1]])[:count]

  return _Chunking(chunks, split, join)


def linear_cross_entropy(
  states: tf.Tensor,
  table: tf.Tensor,
  labels: tf.Tensor,
  weights: tf.Tensor,
  smoothing: float,
) -> tf.Tensor:
  """Returns `sum(weights * smoothed_cross_entropy(states @ table^T, labels))`.

  The logits of a whole batch, their probabilities and their gradient would be
  by far the largest tensors of a training step. Here they exist for one chunk
  of positions at a time, and the gradient is computed beside the loss.

  With p the softmax of the logits z, and c and l the two values of the smoothed
  target, a position's loss is `lse(z) - (c - l) z[label] - l sum(z)`, less the
  target's entropy, and the gradient of its logits `p - (c - l) one_hot(label) -
  l`. The last two terms and `sum(z)` need no pass over [C, V]: they are a
  row of the table and the sum of all its rows.

  Args:
    states: [N, D], the inputs of the output layer.
    table: float32 [V, D].
    labels: integers [N], each below V.
    weights: float32 [N], constants to the gradient.
    smoothing: s, in [0, 1).

  Returns:
    float32 [], in nats.
  """

  @tf.custom_gradient
  def total(states: tf.Tensor, table: tf.Tensor) -> Any:
    loss, dstates, dtable = _loss_and_gradients(
      states, table, tf.cast(labels, tf.int32), weights, smoothing
    )

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      return tf.cast(dstates * upstream, states.dtype), dtable * upstream

    return loss, gradient

  return total(states, table)


def _loss_and_gradients(
  states: tf.Tensor,
  table: tf.Tensor,
  labels: tf.Tensor,
  weights: tf.Tensor,
  smoothing: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the loss [], and float32 gradients [N, D] and [V, D]."""
  target = SmoothedTarget.of(smoothing, table.shape[0])
  peak = target.confidence - target.low
  wide = tf.cast(states, tf.float32)
  weighted = wide * weights[:, None]
  row_sum = tf.reduce_sum(table, axis=0)  # [D]
  loss, dx, dtable = _of_probabilities(states, table, labels, weights, peak)
  constant = target.low * tf.reduce_sum(wide * row_sum, axis=1) + target.entropy
  loss -= tf.reduce_sum(constant * weights)
  dx = dx - peak * tf.gather(table, labels) - target.low * row_sum
  dtable = tf.tensor_scatter_nd_sub(dtable, labels[:, None], peak * weighted)
  dtable -= target.low * tf.reduce_sum(weighted, axis=0)
  return loss, dx * weights[:, None], dtable


def _of_probabilities(
  states: tf.Tensor,
  table: tf.Tensor,
  labels: tf.Tensor,
  weights: tf.Tensor,
  peak: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns losses and gradients from probabilities, by chunks.

  Args:
    states: [N, D].
    table: float32 [V, D].
    labels: int32 [N].
    weights: float32 [N].
    peak: `c - l`.

  Returns:
    `sum(weights * (lse(z) - peak * z[label]))`, float32 []; `p @ table`,
    float32 [N, D], not weighted; `(weights * p)^T @ states`, float32 [V, D].
  """
  vocab_size, hidden_size = table.shape
  dtype = product_dtype(states.dtype)
  scale = _float16_scale(weights) if dtype == tf.float16 else 1.0
  chunks, split, join = _chunking(states, vocab_size)
  narrow_table = tf.cast(table, dtype)
  weighted = tf.cast(states, tf.float32) * weights[:, None] * scale
  x_chunks, weighted_chunks, label_chunks, weight_chunks = (
    split(x)
    for x in (
      *(tf.cast(states, dtype), tf.cast(weighted, dtype)),
      *(labels, weights),
    )
  )

  def body(
    i: tf.Tensor, loss: tf.Tensor, dx: tf.TensorArray, dtable: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray, tf.Tensor]:
    x, label = x_chunks[i], label_chunks[i]
    logits = tf.matmul(x, narrow_table, transpose_b=True)  # [C, V]
    logits = tf.cast(logits, tf.float32)
    probabilities = tf.nn.softmax(logits)
    at_label = tf.gather(logits, label, axis=1, batch_dims=1)
    losses = (1.0 - peak) * at_label - _log_probabilities(
      logits, probabilities, at_label, label
    )
    slope = tf.cast(probabilities, dtype)  # Of the loss, by the logits.
    step = tf.matmul(slope, narrow_table)  # [C, D]
    with tf.control_dependencies([step]):  # One product at a time.
      update = tf.matmul(slope, weighted_chunks[i], transpose_a=True)
    return (
      i + 1,
      loss + tf.reduce_sum(losses * weight_chunks[i]),
      dx.write(i, step),
      dtable + tf.cast(update, tf.float32) * (1.0 / scale),
    )

  _, loss, dx, dtable = tf.while_loop(
    cond=lambda i, *_: i < chunks,
    body=body,
    loop_vars=(
      0,
      0.0,
      tf.TensorArray(dtype, chunks, element_shape=[None, hidden_size]),
      tf.zeros([vocab_size, hidden_size]),
    ),
    parallel_iterations=1,
  )
  return loss, tf.cast(join(dx.stack()), tf.float32), dtable


def _log_probabilities(
  logits: tf.Tensor,
  probabilities: tf.Tensor,
  at_label: tf.Tensor,
  labels: tf.Tensor,
) -> tf.Tensor:
  """Returns the logarithm of each label's probability, float32 [C].

  Args:
    logits: float32 [C, V].
    probabilities: softmax of the logits.
    at_label: [C], the logits of the labels.
    labels: int32 [C].
  """
  of_labels = tf.gather(probabilities, labels, axis=1, batch_dims=1)

  def of_likeliest() -> tf.Tensor:
    # A probability may become 0 in float32, but not that of the likeliest
    # token, from which the others are computed.
    likeliest = tf.reduce_max(probabilities, axis=1)
    gap = at_label - tf.reduce_max(logits, axis=1)
    return gap + tf.math.log(likeliest)

  # Two more passes over [C, V], if training has diverged.
  return tf.cond(
    tf.reduce_min(of_labels) > 1e-30,
    lambda: tf.math.log(of_labels),
    of_likeliest,
  )


def _float16_scale(weights: tf.Tensor) -> tf.Tensor:
  """Returns the factor that lifts states into float16's range, float32 [].

  Weights are about 1 / tokens, which leaves little of small numbers; times
  this they are 512 at most, and states are some tens.
  """
  largest = tf.maximum(tf.reduce_max(weights), 1e-30)
  return tf.minimum(2.0**12, 2.0**9 / largest)
