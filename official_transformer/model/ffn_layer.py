"""The position-wise feed-forward network (paper, section 3.3).

Shapes: B batch, L length, D hidden size, F filter size.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model.variants import ACTIVATIONS
from official_transformer.model_params import TransformerParams
from official_transformer.ops.dense import dense
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer import ConfiguredLayer


@dataclasses.dataclass(frozen=True)
class DenseLayer:
  """`x @ kernel + bias`.

  Attributes:
    kernel: [I, O].
    bias: [O].
  """

  kernel: Any
  bias: Any

  def __call__(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Maps [..., I] to [..., O]."""
    return dense(x, [self.kernel], self.bias, training)


class FeedForwardNetwork(ConfiguredLayer):
  """`dropout(f(x W1 + b1)) W2 + b2` (3.3, equation 2, where f is ReLU).

  Attributes:
    hidden_size: D.
    filter_size: F.
    relu_dropout: share of the inner units dropped while training.
    initializer_gain: scale of the kernels' uniform initialiser.
    activation: the name of f in `variants.ACTIVATIONS`.
    filter_dense_layer: [..., D] to [..., F].
    output_dense_layer: [..., F] to [..., D].
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
    """Returns the network of a model; it is made nowhere else."""
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
    self.filter_dense_layer = self._dense(
      "filter", self.hidden_size, self.filter_size
    )
    self.output_dense_layer = self._dense(
      "output", self.filter_size, self.hidden_size
    )
    self.dropout.build(None)

  def _dense(self, name: str, inputs: int, outputs: int) -> DenseLayer:
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
    return DenseLayer(kernel, bias)

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Maps [B, L, D] to [B, L, D]."""
    # Flat, so that TensorFlow can join product, bias and ReLU.
    flat = tf.reshape(x, [-1, self.hidden_size])
    inner = self.filter_dense_layer(flat, training)
    inner = self.activate(self.dropout, inner, training)
    outer = self.output_dense_layer
    kernel = outer.kernel
    if training:
      # Dropout has left the scaling to the kernel, which is smaller.
      kernel = tf.convert_to_tensor(kernel) * self.dropout.scale
    outputs = DenseLayer(kernel, outer.bias)(inner, training)
    return tf.reshape(outputs, tf.shape(x))
