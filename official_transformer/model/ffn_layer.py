"""The position-wise feed-forward network.

Shapes: B batch, L length, D hidden size, F filter size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_transformer.ops.dense import PreparedKernel, dense, prepare_kernel
from official_transformer.ops.dropout import Dropout

# By `TransformerParams.activation`: a dropout layer, what to activate and
# whether to drop, to what is left, not scaled up.
ACTIVATIONS: dict[str, Callable[[Dropout, tf.Tensor, bool], tf.Tensor]] = {
  "relu": lambda dropout, x, training: dropout.after_relu(x, training),
  # Hendrycks and Gimpel 2016, exactly: x times the normal distribution of x.
  "gelu": lambda dropout, x, training: dropout.unscaled(
    tf.nn.gelu(x, approximate=False), training
  ),
  # Ramachandran et al. 2017, with factor 1, as Marian has it.
  "swish": lambda dropout, x, training: dropout.unscaled(
    tf.nn.silu(x), training
  ),
}


class FeedForwardProjections(NamedTuple):
  """What a cached step multiplies by: to the inner units, and back."""

  filter: PreparedKernel
  output: PreparedKernel


class FeedForwardNetwork(keras.layers.Layer):
  """`dropout(f(x @ W1 + b1)) @ W2 + b2` (paper, equation 2, where f is ReLU).

  Attributes:
    hidden_size: D.
    filter_size: F.
    relu_dropout: share of the inner units dropped while training.
    initializer_gain: scale of the kernels' uniform initialiser.
    activation: the name of f in `ACTIVATIONS`.
    activate: f and the dropout after it.
  """

  def __init__(
    self,
    hidden_size: int,
    filter_size: int,
    relu_dropout: float,
    initializer_gain: float = 1.0,
    activation: str = "relu",
    **kwargs: Any,
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.hidden_size = hidden_size
    self.filter_size = filter_size
    self.relu_dropout = relu_dropout
    self.initializer_gain = initializer_gain
    self.activation = activation
    self.activate = ACTIVATIONS[activation]
    self.dropout = Dropout(relu_dropout, name="relu_dropout")

  def build(self, input_shape: Any = None) -> None:
    """Creates two kernels and two biases."""

    def uniform() -> keras.initializers.Initializer:
      return keras.initializers.VarianceScaling(
        scale=self.initializer_gain, mode="fan_avg", distribution="uniform"
      )

    self.filter_kernel = self.add_weight(
      name="filter_kernel",
      shape=(self.hidden_size, self.filter_size),
      initializer=uniform(),
    )
    self.filter_bias = self.add_weight(
      name="filter_bias", shape=(self.filter_size,), initializer="zeros"
    )
    self.output_kernel = self.add_weight(
      name="output_kernel",
      shape=(self.filter_size, self.hidden_size),
      initializer=uniform(),
    )
    self.output_bias = self.add_weight(
      name="output_bias", shape=(self.hidden_size,), initializer="zeros"
    )
    self.dropout.build(None)

  def get_config(self) -> dict[str, Any]:
    """Returns the constructor's arguments; unusual ones if they are so."""
    config = {
      **super().get_config(),
      "hidden_size": self.hidden_size,
      "filter_size": self.filter_size,
      "relu_dropout": self.relu_dropout,
    }
    if self.initializer_gain != 1.0:
      config["initializer_gain"] = self.initializer_gain
    if self.activation != "relu":
      config["activation"] = self.activation
    return config

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Maps [B, L, D] to [B, L, D]."""
    # Flat, so that TensorFlow can join product, bias and ReLU.
    flat = tf.reshape(x, [-1, self.hidden_size])
    inner = dense(flat, [self.filter_kernel], self.filter_bias, training)
    inner = self.activate(self.dropout, inner, training)
    kernel = tf.convert_to_tensor(self.output_kernel)
    if training:
      # In place of the inner units, of which there are more.
      kernel *= self.dropout.scale
    outputs = dense(inner, [kernel], self.output_bias, training)
    return tf.reshape(outputs, tf.shape(x))

  def step_projections(self) -> FeedForwardProjections:
    """Returns what all cached steps multiply by."""
    dtype = tf.as_dtype(self.compute_dtype)
    return FeedForwardProjections(
      prepare_kernel([self.filter_kernel], dtype, self.filter_bias),
      prepare_kernel([self.output_kernel], dtype, self.output_bias),
    )

  def step(
    self, x: tf.Tensor, projections: FeedForwardProjections
  ) -> tf.Tensor:
    """Maps new positions, [B, K, D] to [B, K, D]."""
    inner = projections.filter(
      tf.reshape(x, [-1, self.hidden_size]),
      lambda y: self.activate(self.dropout, y, False),
    )
    return tf.reshape(projections.output(inner), tf.shape(x))
