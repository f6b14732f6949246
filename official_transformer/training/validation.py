"""The loss on development data."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from official_transformer.model.transformer import Transformer
from official_transformer.model_params import PAD_ID
from official_transformer.ops.cross_entropy import summed_cross_entropies


class Validation:
  """Takes a model's loss over batches, without dropout.

  Attributes:
    transformer: the model.
  """

  def __init__(self, transformer: Transformer) -> None:
    self.transformer = transformer
    self._sums = tf.function(
      self._summed_losses,
      input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2,
      autograph=False,
    )

  def __call__(
    self, batches: Iterable[tuple[tf.Tensor, tf.Tensor]]
  ) -> dict[str, float]:
    """Returns the loss in nats a target token; empty if there is none.

    `loss` is smoothed as in training, `perplexity` is not.

    Args:
      batches: batches of inputs and targets, int64 [B, S] and [B, T].
    """
    sums = [self._sums(inputs, targets) for inputs, targets in batches]
    if not sums:
      return {}
    smoothed, plain, tokens = (float(n) for n in tf.add_n(sums))
    return {
      "loss": smoothed / tokens,
      "perplexity": float(tf.exp(plain / tokens)),
    }

  def _summed_losses(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns a batch's summed loss, smoothed and not, and its tokens."""
    params = self.transformer.params
    states = self.transformer.decoder_states([inputs, targets])
    labels = tf.reshape(targets, [-1])
    weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
    sums = summed_cross_entropies(
      *self.transformer.softmax.loss_inputs(
        tf.reshape(states, [-1, params.hidden_size])
      ),
      labels,
      weights,
      (params.label_smoothing, 0.0),
    )
    return tf.concat([sums, [tf.reduce_sum(weights)]], axis=0)
