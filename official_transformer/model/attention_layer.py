"""Multi-head attention (paper, section 3.2).

Shapes: B batch, F query length, T key length, N heads, H head size, D hidden
size (N * H).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model_params import TransformerParams
from official_transformer.ops.dense import dense, matmul
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer import ConfiguredLayer, UncopiedCache

PROJECTIONS = ("query", "key", "value", "output")


def attention_weights_of(
  query: tf.Tensor, keys: tf.Tensor, bias: tf.Tensor | None = None
) -> tf.Tensor:
  """Returns `softmax(q k^T / sqrt(H) + bias)` (3.2.1, equation 1).

  Args:
    query: [B, N, F, H].
    keys: [B, N, T, H].
    bias: broadcastable to [B, N, F, T]; None adds nothing.

  Returns:
    float32 [B, N, F, T]; the weights of one query add up to 1.
  """
  scale = query.shape[-1] ** -0.5
  if query.dtype == tf.float16:  # Products may exceed its largest number.
    query, scale = query * scale, 1.0
  # Softmax is computed in float32 in every policy, because it sums up many
  # small terms.
  logits = tf.cast(matmul(query, keys, transpose_b=True), tf.float32)
  if bias is not None:
    logits += tf.cast(bias, tf.float32) / scale
  # Scaling the logits, not the queries, spares the gradient a copy of these.
  # It comes after the bias, because TensorFlow fuses product, scale and bias in
  # the other order into one operation, which is many times slower on CPUs.
  return tf.nn.softmax(logits * scale)


class Attention(ConfiguredLayer):
  """`softmax(q k^T / sqrt(H) + bias) v` in N heads of H = D / N (3.2.2).

  Query, key, value and output projections have no biases in the official model.

  Attributes:
    hidden_size: D.
    num_heads: N, a divisor of D.
    attention_dropout: share of attention weights dropped while training.
    initializer_gain: scale of the kernels' uniform initialiser.
    use_bias: whether the projections have biases.
  """

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
    super().__init__(**kwargs)
    self.hidden_size = hidden_size
    self.num_heads = num_heads
    self.head_size = hidden_size // num_heads
    self.attention_dropout = attention_dropout
    self.initializer_gain = initializer_gain
    self.use_bias = use_bias
    self.dropout = Dropout(attention_dropout, name="attention_dropout")

  @classmethod
  def of(cls, params: TransformerParams, **kwargs: Any) -> Attention:
    """Returns attention of a model's parameters."""
    return cls(
      params.hidden_size,
      params.num_heads,
      params.attention_dropout,
      params.initializer_gain,
      params.attention_bias,
      **kwargs,
    )

  def build(self, input_shape: Any = None) -> None:
    """Creates four kernels, [D, D] each, and their biases, if any.

    They stay apart and two-dimensional, so that checkpoints of every kind map
    onto them and the initialiser sees the right fans.
    """
    for name in PROJECTIONS:
      kernel = self.add_weight(
        name=f"{name}_kernel",
        shape=(self.hidden_size, self.projection_size(name)),
        initializer=keras.initializers.VarianceScaling(
          scale=self.initializer_gain, mode="fan_avg", distribution="uniform"
        ),
      )
      setattr(self, f"{name}_kernel", kernel)
    for name in PROJECTIONS if self.use_bias else ():
      shape = (self.projection_size(name),)
      bias = self.add_weight(
        name=f"{name}_bias", shape=shape, initializer="zeros"
      )
      setattr(self, f"{name}_bias", bias)
    self.dropout.build(None)

  def call(
    self,
    query_input: tf.Tensor,
    source_input: tf.Tensor,
    bias: tf.Tensor | None = None,
    training: bool = False,
    cache: dict[str, tf.Tensor] | None = None,
    decode_loop_step: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Attends from each query position to all source positions.

    Args:
      query_input: [B, F, D].
      source_input: [B, T, D].
      bias: added to the logits, broadcastable to [B, N, F, T]; -1e9 hides a
        position. None hides nothing.
      training: whether dropout is on.
      cache: `k` and `v`, [B, C, N, H], keys and values of C earlier source
        positions. The keys and values of `source_input` are appended to them,
        in the dictionary too, and attention covers all C + T positions.
      decode_loop_step: int32 []. If given, the cache keeps its shape and the
        one new position is written at this index; the bias must hide the later
        positions.

    Returns:
      [B, F, D].
    """
    new = None
    if cache is not None:
      given = UncopiedCache.of(cache, decode_loop_step)
      cache, step = given.cache, given.step
      first = tf.shape(cache["k"])[1] if step is None else step
      new = first + tf.range(tf.shape(source_input)[1])
    if query_input is source_input:
      query, keys, values = self.project(
        query_input, PROJECTIONS[:3], training, new
      )
    else:
      keys, values = self.project(source_input, ("key", "value"), training, new)
      (query,) = self.project(query_input, ("query",), training, new)
    if cache is not None:
      keys, values = _append(cache, keys, values, step)
    heads = self.attend(query, keys, values, bias, training)
    return dense(
      heads, self.kernels(["output"]), self.joined_biases(["output"]), training
    )

  def project(
    self,
    x: tf.Tensor,
    names: Sequence[str],
    training: bool = False,
    positions: tf.Tensor | None = None,
  ) -> list[tf.Tensor]:
    """Projects [B, L, D] to queries, keys or values, [B, N, L, H] each.

    Several kernels make one product: a wide one is faster, in the gradient too.
    For `names` and `positions` see `split_heads`.
    """
    products = dense(
      x, self.kernels(names), self.joined_biases(names), training
    )
    return self.split_heads(products, names, positions)

  def kernels(self, names: Sequence[str]) -> list[Any]:
    """Returns the kernels of projections."""
    return [getattr(self, f"{name}_kernel") for name in names]

  def joined_biases(self, names: Sequence[str]) -> tf.Tensor | None:
    """Returns biases of projections side by side; None if there are none."""
    if not self.use_bias:
      return None
    return tf.concat([getattr(self, f"{name}_bias") for name in names], axis=0)

  def projection_size(self, name: str) -> int:
    """Returns the columns of a kernel; a subclass may have fewer for a key."""
    return self.hidden_size

  def split_heads(
    self,
    products: tf.Tensor,
    names: Sequence[str],
    positions: tf.Tensor | None = None,
  ) -> list[tf.Tensor]:
    """Splits projections that stand side by side into heads, [B, N, L, H] each.

    A subclass that changes heads, for example by rotary positions, overrides
    this method: both whole sequences and single decoding steps call it.

    Args:
      products: [B, L, P * D], P projections side by side.
      names: names of the projections, in the order of `PROJECTIONS`.
      positions: int32 [L], or [] if all rows are at one position; None means 0,
        1, ... L - 1. Not read here.
    """
    shape = tf.shape(products)
    heads = tf.reshape(
      products,
      [shape[0], shape[1], len(names), self.num_heads, self.head_size],
    )
    return tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))

  def attend(
    self,
    query: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor | None,
    training: bool = False,
  ) -> tf.Tensor:
    """Returns the heads side by side, [B, F, D], not projected yet.

    Queries are [B, N, F, H], keys and values [B, N, T, H]; the bias is as in
    `call`.
    """
    weights = attention_weights_of(query, keys, bias)
    weights = self.dropout(weights, training=training)
    heads = matmul(tf.cast(weights, query.dtype), values)
    heads = tf.transpose(heads, [0, 2, 1, 3])  # [B, F, N, H]
    shape = tf.shape(heads)
    return tf.reshape(heads, [shape[0], shape[1], self.hidden_size])


class SelfAttention(Attention):
  """Attention of a sequence to itself (3.2.3)."""

  def call(  # type: ignore[override]  # The two inputs are one here.
    self,
    query_input: tf.Tensor,
    bias: tf.Tensor | None = None,
    training: bool = False,
    cache: dict[str, tf.Tensor] | None = None,
    decode_loop_step: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Attends from each position of [B, L, D] to all; see `Attention.call`."""
    return super().call(
      query_input, query_input, bias, training, cache, decode_loop_step
    )


def _append(
  cache: dict[str, tf.Tensor],
  keys: tf.Tensor,
  values: tf.Tensor,
  decode_loop_step: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Puts keys and values into the cache, and returns all, [B, N, T, H]."""
  for name, tensor in (("k", keys), ("v", values)):
    new = tf.transpose(tensor, [0, 2, 1, 3])  # [B, L, N, H]
    old = tf.cast(cache[name], new.dtype)
    if decode_loop_step is None:
      cache[name] = tf.concat([old, new], axis=1)
    else:
      here = tf.range(old.shape[1]) == decode_loop_step
      cache[name] = tf.where(here[:, None, None], new, old)
  keys, values = (tf.transpose(cache[n], [0, 2, 1, 3]) for n in ("k", "v"))
  return keys, values
