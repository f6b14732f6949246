"""The position-wise feed-forward network (paper, section 3.3).

Shapes: B batch, L length, D hidden size, F filter size.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from official_transformer.model.variants import ACTIVATIONS
from official_transformer.model_params import TransformerParams
from official_transformer.ops.dense import DenseLayer
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer import ConfiguredLayer


class FeedForwardNetwork(ConfiguredLayer):
  """`dropout(f(x W1 + b1)) W2 + b2` (3.3, equation 2, where f is ReLU).

  Attributes:
    hidden_size: D.
    filter_size: F.
    relu_dropout: share of the inner units dropped while training.
    initializer_gain: scale of the kernels' uniform initialiser.
    activation: the name of f in `variants.ACTIVATIONS`.
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
    super().__init__(**kwargs)
    self.hidden_size = hidden_size
    self.filter_size = filter_size
    self.relu_dropout = relu_dropout
    self.initializer_gain = initializer_gain
    self.activation = activation
    self.activate = ACTIVATIONS[activation]
    self.dropout = Dropout(relu_dropout, name="relu_dropout")

  @classmethod
  def of(cls, params: TransformerParams, **kwargs: Any) -> FeedForwardNetwork:
    """Returns the network of a model's parameters."""
    return cls(
      params.hidden_size,
      params.filter_size,
      params.relu_dropout,
      params.initializer_gain,
      params.activation,
      **kwargs,
    )

  def build(self, input_shape: Any = None) -> None:
    """Creates two kernels and two biases."""
    self.filter_kernel, self.filter_bias = self._dense(
      "filter", self.hidden_size, self.filter_size
    )
    self.output_kernel, self.output_bias = self._dense(
      "output", self.filter_size, self.hidden_size
    )
    self.dropout.build(None)

  def _dense(self, name: str, inputs: int, outputs: int) -> tuple[Any, Any]:
    """Creates a kernel and a bias."""
    kernel = self.add_weight(
      name=f"{name}_kernel",
      shape=(inputs, outputs),
      initializer=keras.initializers.VarianceScaling(
        scale=self.initializer_gain, mode="fan_avg", distribution="uniform"
      ),
    )
    bias = self.add_weight(
      name=f"{name}_bias", shape=(outputs,), initializer="zeros"
    )
    return kernel, bias

  @property
  def filter_dense_layer(self) -> DenseLayer:
    """Maps [..., D] to [..., F]."""
    return DenseLayer(self.filter_kernel, self.filter_bias)

  @property
  def output_dense_layer(self) -> DenseLayer:
    """Maps [..., F] to [..., D]."""
    return DenseLayer(self.output_kernel, self.output_bias)

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Maps [B, L, D] to [B, L, D]."""
    # Flat, so that TensorFlow can join product, bias and ReLU.
    flat = tf.reshape(x, [-1, self.hidden_size])
    inner = self.filter_dense_layer(flat, training)
    inner = self.activate(self.dropout, inner, training)
    kernel = tf.convert_to_tensor(self.output_kernel)
    if training:
      # Dropout has left the scaling to the kernel, which is smaller.
      kernel *= self.dropout.scale
    outputs = DenseLayer(kernel, self.output_bias)(inner, training)
    return tf.reshape(outputs, tf.shape(x))
