"""Multi-head attention, whole sequences at once or one cached step at a time.

Shapes: B batch, K beam, F query length, T key length, N heads, H head size, D
hidden size (N * H).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_transformer.model.beam_cache import (
  BeamCache,
  BeamHistory,
  read_history,
  write_position,
)
from official_transformer.ops.dense import (
  PreparedKernel,
  dense,
  matmul,
  prepare_kernel,
)
from official_transformer.ops.dropout import Dropout

PROJECTIONS = ("query", "key", "value", "output")
_QUERY_KEY_VALUE = ("query_kernel", "key_kernel", "value_kernel")


class KeyValueCache(NamedTuple):
  """Keys and values a layer has projected.

  Attributes:
    keys: [B, N, T, H].
    values: [B, N, T, H].
  """

  keys: tf.Tensor
  values: tf.Tensor


class AttentionProjections(NamedTuple):
  """What a cached step of attention multiplies by.

  Attributes:
    inputs: of new positions: to queries, or to queries, keys and values.
    output: of what was attended to.
  """

  inputs: PreparedKernel
  output: PreparedKernel


def attention_weights_of(
  query: tf.Tensor, keys: tf.Tensor, bias: tf.Tensor
) -> tf.Tensor:
  """Returns `softmax(q k^T / sqrt(H) + bias)` (paper, equation 1).

  Args:
    query: [B, N, F, H].
    keys: [B, N, T, H].
    bias: broadcastable to [B, N, F, T].

  Returns:
    float32 [B, N, F, T]; those of a query add up to 1.
  """
  scale = query.shape[-1] ** -0.5
  if query.dtype == tf.float16:  # Whose largest number products may exceed.
    query, scale = query * scale, 1.0
  logits = matmul(query, keys, transpose_b=True)  # [B, N, F, T]
  # In float32 whatever the dtype of the rest: sums of many small terms. The
  # logits are scaled, not the queries, which the gradient would keep twice; and
  # after the bias, which is small: in the other order, TensorFlow would fuse
  # product, scale and bias for CPUs into one operation that is many times
  # slower.
  bias = tf.cast(bias, tf.float32) / scale
  logits = (tf.cast(logits, tf.float32) + bias) * scale
  return tf.nn.softmax(logits)


class Attention(keras.layers.Layer):
  """`softmax(q k^T / sqrt(H) + bias) v` in N heads (paper, 3.2).

  Query, key, value and output projections have no biases in the official model.

  Attributes:
    hidden_size: D.
    num_heads: N, a divisor of D.
    attention_dropout: share of attention weights dropped while training.
    initializer_gain: scale of the kernels' uniform initialiser.
    use_bias: whether the projections have biases.
  """

  # The kernels that a cached step's new positions are multiplied by.
  _step_inputs: Sequence[str] = ("query_kernel",)

  def __init__(
    self,
    hidden_size: int,
    num_heads: int,
    attention_dropout: float,
    initializer_gain: float = 1.0,
    use_bias: bool = False,
    **kwargs: Any,
  ) -> None:
    if hidden_size % num_heads:
      raise ValueError(
        f"hidden_size {hidden_size} is not a multiple of num_heads {num_heads}"
      )
    super().__init__(autocast=False, **kwargs)
    self.hidden_size = hidden_size
    self.num_heads = num_heads
    self.head_size = hidden_size // num_heads
    self.attention_dropout = attention_dropout
    self.initializer_gain = initializer_gain
    self.use_bias = use_bias
    self.dropout = Dropout(attention_dropout, name="attention_dropout")

  def build(self, input_shape: Any = None) -> None:
    """Creates the four kernels, each [D, D], and their biases, if any.

    They stay apart and two-dimensional, so that checkpoints of every kind map
    onto them and the initialiser sees the right fans.
    """

    def kernel(name: str) -> Any:
      return self.add_weight(
        name=name,
        shape=(self.hidden_size, self.hidden_size),
        initializer=keras.initializers.VarianceScaling(
          scale=self.initializer_gain, mode="fan_avg", distribution="uniform"
        ),
      )

    self.query_kernel = kernel("query_kernel")
    self.key_kernel = kernel("key_kernel")
    self.value_kernel = kernel("value_kernel")
    self.output_kernel = kernel("output_kernel")
    self.biases: dict[str, Any] = {}
    for name in PROJECTIONS if self.use_bias else ():
      self.biases[f"{name}_kernel"] = self.add_weight(
        name=f"{name}_bias", shape=(self.hidden_size,), initializer="zeros"
      )
    self.dropout.build(None)

  def get_config(self) -> dict[str, Any]:
    """Returns the constructor's arguments; unusual ones if they are so."""
    config = {
      **super().get_config(),
      "hidden_size": self.hidden_size,
      "num_heads": self.num_heads,
      "attention_dropout": self.attention_dropout,
    }
    if self.initializer_gain != 1.0:
      config["initializer_gain"] = self.initializer_gain
    if self.use_bias:
      config["use_bias"] = True
    return config

  def call(
    self,
    query_input: tf.Tensor,
    source_input: tf.Tensor,
    bias: tf.Tensor,
    training: bool = False,
  ) -> tf.Tensor:
    """Attends from each query position to all source positions.

    Args:
      query_input: [B, F, D].
      source_input: [B, T, D].
      bias: added to the logits, broadcastable to [B, N, F, T].
      training: whether dropout is on.

    Returns:
      [B, F, D].
    """
    source = self.project_keys_values(source_input, training)
    return self.attend(query_input, source, bias, training)

  def project_keys_values(
    self, source_input: tf.Tensor, training: bool = False
  ) -> KeyValueCache:
    """Projects [B, T, D] to keys and values, [B, N, T, H] each."""
    return KeyValueCache(
      *self._project(source_input, ("key_kernel", "value_kernel"), training)
    )

  def attend(
    self,
    query_input: tf.Tensor,
    source: KeyValueCache,
    bias: tf.Tensor,
    training: bool = False,
  ) -> tf.Tensor:
    """Attends to keys and values that are projected already.

    Args:
      query_input: [B, F, D].
      source: keys and values, [B, N, T, H].
      bias: broadcastable to [B, N, F, T].
      training: whether dropout is on.

    Returns:
      [B, F, D].
    """
    (query,) = self._project(query_input, ("query_kernel",), training)
    return self._output(self._mix(query, source, bias, training), training)

  def step_projections(self) -> AttentionProjections:
    """Returns what all cached steps multiply by."""
    dtype = tf.as_dtype(self.compute_dtype)
    return AttentionProjections(
      *(
        prepare_kernel(self._kernels(names), dtype, self._bias(names))
        for names in (self._step_inputs, ("output_kernel",))
      )
    )

  def attend_step(
    self,
    x: tf.Tensor,
    projections: AttentionProjections,
    source: KeyValueCache,
    bias: tf.Tensor,
  ) -> tf.Tensor:
    """Does what `attend` does, for a new position of every beam.

    Args:
      x: [B, K, D]; the beams of a sentence are K queries to its one source.
      projections: what `step_projections` returned.
      source: keys and values, [B, N, T, H].
      bias: broadcastable to [B, N, K, T].

    Returns:
      [B, K, D].
    """
    products = projections.inputs(tf.reshape(x, [-1, self.hidden_size]))
    (query,) = _split_heads(products, 1, self.num_heads, tf.shape(x))
    mixed = self._mix(query, source, bias, training=False)
    return self._step_output(mixed, projections, x)

  def _step_output(
    self, mixed: tf.Tensor, projections: AttentionProjections, x: tf.Tensor
  ) -> tf.Tensor:
    """Projects what `_mix` returned to the shape of `x`."""
    flat = tf.reshape(mixed, [-1, self.hidden_size])
    return tf.reshape(projections.output(flat), tf.shape(x))

  def _mix(
    self,
    query: tf.Tensor,
    source: KeyValueCache,
    bias: tf.Tensor,
    training: bool,
  ) -> tf.Tensor:
    """Attends with projected queries [B, N, F, H].

    Returns:
      The heads side by side, [B, F, D], before the output projection.
    """
    weights = attention_weights_of(query, source.keys, bias)
    weights = self.dropout(weights, training=training)
    mixed = matmul(tf.cast(weights, query.dtype), source.values)
    mixed = tf.transpose(mixed, [0, 2, 1, 3])  # [B, F, N, H]
    shape = tf.shape(mixed)
    return tf.reshape(mixed, [shape[0], shape[1], self.hidden_size])

  def _output(self, mixed: tf.Tensor, training: bool) -> tf.Tensor:
    """Applies the output projection to [B, F, D]."""
    bias = self._bias(("output_kernel",))
    return dense(mixed, [self.output_kernel], bias, training)

  def attention_weights(
    self, query_input: tf.Tensor, source_input: tf.Tensor, bias: tf.Tensor
  ) -> tf.Tensor:
    """Returns how much each query position attends to each source position.

    Args:
      query_input: [B, F, D].
      source_input: [B, T, D].
      bias: broadcastable to [B, N, F, T].

    Returns:
      float32 [B, N, F, T]; those of a query add up to 1.
    """
    (query,) = self._project(query_input, ("query_kernel",))
    (keys,) = self._project(source_input, ("key_kernel",))
    return attention_weights_of(query, keys, bias)

  def attention_to(
    self, query_input: tf.Tensor, source: KeyValueCache, bias: tf.Tensor
  ) -> tf.Tensor:
    """Returns the same for keys that are projected already."""
    (query,) = self._project(query_input, ("query_kernel",))
    return attention_weights_of(query, source.keys, bias)

  def _project(
    self, x: tf.Tensor, names: Sequence[str], training: bool = False
  ) -> list[tf.Tensor]:
    """Projects [B, L, D] with each kernel and splits heads: [B, N, L, H] each.

    Several kernels make one product: a wide one is faster, in the gradient too.
    """
    products = dense(x, self._kernels(names), self._bias(names), training)
    return _split_heads(products, len(names), self.num_heads, tf.shape(x))

  def _kernels(self, names: Sequence[str]) -> list[Any]:
    return [getattr(self, name) for name in names]

  def _bias(self, names: Sequence[str]) -> tf.Tensor | None:
    """Returns the biases of kernels side by side; None if there are none."""
    if not self.biases:
      return None
    return tf.concat([self.biases[name] for name in names], axis=0)


def _split_heads(
  products: tf.Tensor, number: int, num_heads: int, shape: tf.Tensor
) -> list[tf.Tensor]:
  """Splits products side by side, [..., number * D], and each into heads.

  Args:
    products: of all positions.
    number: how many stand side by side.
    num_heads: N.
    shape: of what was multiplied, [B, L, D].

  Returns:
    [B, N, L, H] for each product.
  """
  head_size = products.shape[-1] // (number * num_heads)
  heads = tf.reshape(
    products, [shape[0], shape[1], number, num_heads, head_size]
  )
  return tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))


class SelfAttention(Attention):
  """Attention of a sequence to itself."""

  _step_inputs = _QUERY_KEY_VALUE

  def call(  # type: ignore[override]  # The two inputs are one here.
    self, x: tf.Tensor, bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Attends from each position of `x` [B, L, D] to all of them.

    Args:
      x: [B, L, D].
      bias: broadcastable to [B, N, L, L].
      training: whether dropout is on.

    Returns:
      [B, L, D].
    """
    query, keys, values = self._project(x, _QUERY_KEY_VALUE, training)
    mixed = self._mix(query, KeyValueCache(keys, values), bias, training)
    return self._output(mixed, training)

  def step(
    self,
    x: tf.Tensor,
    projections: AttentionProjections,
    cache: BeamCache,
    index: tf.Tensor,
    past: BeamHistory,
  ) -> tuple[tf.Tensor, BeamCache]:
    """Attends from one new position of every beam to it and those before it.

    Args:
      x: [B, K, D], the new position.
      projections: what `step_projections` returned.
      cache: with room for it.
      index: int32 [], the new position, counted from 0.
      past: what each hypothesis attends to.

    Returns:
      [B, K, D], and the cache with the new position.
    """
    products = projections.inputs(tf.reshape(x, [-1, self.hidden_size]))
    query, key, value = _split_heads(products, 3, self.num_heads, tf.shape(x))
    cache = BeamCache(
      keys=write_position(cache.keys, index, key),
      values=write_position(cache.values, index, value),
    )
    source = KeyValueCache(
      keys=read_history(cache.keys, past),
      values=read_history(cache.values, past),
    )
    if past.rows is not None:  # Each hypothesis has a past of its own.
      query = tf.transpose(query, [0, 2, 1, 3])  # [B, K, N, H]
      query = tf.reshape(query, [-1, self.num_heads, 1, self.head_size])
    mixed = self._mix(query, source, past.bias, training=False)
    return self._step_output(mixed, projections, x), cache
