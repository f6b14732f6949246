"""Attention, feed-forward network and embedding against plain NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import beam_cache
from official_transformer.model.attention_layer import Attention, SelfAttention
from official_transformer.model.embedding_layer import EmbeddingSharedWeights
from official_transformer.model.ffn_layer import FeedForwardNetwork
from official_transformer.model.incremental_decoder import AttentionStep
from official_transformer.ops.layer_norm import LayerNormalization

RNG = np.random.default_rng(0)


def normal(*shape):
  return RNG.normal(size=shape).astype("float32")


def numpy_attention(layer, query, source, bias):
  """Attends head by head, as the paper's equations are written."""
  size = layer.head_size
  heads = []
  q, k, v = (
    x @ kernel.numpy()
    for x, kernel in (
      (query, layer.query_kernel),
      (source, layer.key_kernel),
      (source, layer.value_kernel),
    )
  )
  for n in range(layer.num_heads):
    part = slice(n * size, (n + 1) * size)
    logits = q[..., part] @ k[..., part].swapaxes(1, 2) / np.sqrt(size) + bias
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    heads.append(weights @ v[..., part])
  return np.concatenate(heads, -1) @ layer.output_kernel.numpy()


def test_attention_matches_the_equations():
  layer = Attention(8, 2, 0.5)
  query, source = normal(3, 4, 8), normal(3, 5, 8)
  bias = np.zeros([3, 1, 5], "float32")
  bias[1, :, 3:] = -1e9
  actual = layer(query, source, bias[:, None], training=False)
  np.testing.assert_allclose(
    actual, numpy_attention(layer, query, source, bias), atol=1e-5
  )


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_a_bias_of_any_size_is_added_to_the_scaled_logits(dtype):
  """As those of relative positions are (Shaw et al. 2018), not masks alone."""
  layer = Attention(8, 2, 0.0, dtype=dtype)
  query, source = normal(3, 4, 8), normal(3, 5, 8)
  bias = normal(3, 4, 5)
  given = (x.astype(layer.compute_dtype) for x in (query, source))
  np.testing.assert_allclose(
    layer(*given, bias[:, None]),
    numpy_attention(layer, query, source, bias),
    atol=1e-5 if dtype == "float32" else 1e-2,
  )


def test_self_attention_step_by_step_equals_all_at_once():
  layer = SelfAttention(8, 2, 0.0)
  layer.build(None)
  step = AttentionStep(layer, ("query", "key", "value"))
  x = normal(2, 6, 8)
  visible = np.tril(np.ones([6, 6], "float32"))
  whole = layer(x, (1 - visible)[None, None] * -1e9)
  room = beam_cache.empty_cache(2, 2, 6, 1, 4, tf.float32)
  cache = beam_cache.BeamCache(room, room)
  origin_beams = tf.fill([2, 6], beam_cache.NO_BEAM)
  for t in range(6):
    index = tf.constant(t)
    origin_beams = beam_cache.record_origins(origin_beams, index, 1)
    query, key, value = step.project(tf.constant(x[:, t : t + 1]), index)
    cache = beam_cache.BeamCache(
      beam_cache.write_position(cache.keys, index, key),
      beam_cache.write_position(cache.values, index, value),
    )
    history = beam_cache.history_of(origin_beams, 1, 2)
    read = [beam_cache.read_history(tensor, history) for tensor in cache]
    y = step.attend(query, *read, history.bias, tf.constant([2, 1, 8]))
    np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-5)


def test_attention_kernels_use_two_dimensional_fans():
  layer = Attention(64, 8, 0.0)
  layer.build(None)
  limit = np.sqrt(6 / (64 + 64))
  for kernel in layer.weights:
    assert kernel.shape == (64, 64)
    assert 0.95 * limit < np.abs(kernel.numpy()).max() <= limit


def test_heads_must_divide_the_hidden_size():
  with pytest.raises(ValueError, match="not a multiple"):
    Attention(10, 3, 0.0)


def test_feed_forward_matches_the_equation():
  layer = FeedForwardNetwork(4, 6, 0.1)
  layer.build(None)
  inner, outer = layer.filter_dense_layer, layer.output_dense_layer
  inner.bias.assign(normal(6))
  outer.bias.assign(normal(4))
  x = normal(2, 3, 4)
  w1, b1, w2, b2 = (
    w.numpy() for w in (inner.kernel, inner.bias, outer.kernel, outer.bias)
  )
  expected = np.maximum(x @ w1 + b1, 0) @ w2 + b2
  np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_embedding_is_scaled_and_padding_is_zero():
  layer = EmbeddingSharedWeights(7, 4)
  embedded = layer(tf.constant([[3, 0]])).numpy()
  table = layer.shared_weights.numpy()
  np.testing.assert_allclose(embedded[0, 0], table[3] * 2, rtol=1e-6)
  np.testing.assert_array_equal(embedded[0, 1], np.zeros(4))


def test_embedding_can_show_the_row_of_pad():
  layer = EmbeddingSharedWeights(7, 4, mask_pad=False)
  embedded = layer(tf.constant([[0]])).numpy()
  np.testing.assert_allclose(
    embedded[0, 0], layer.shared_weights.numpy()[0] * 2
  )


def test_linear_shares_the_table():
  layer = EmbeddingSharedWeights(7, 4)
  layer.build(None)
  x = normal(2, 3, 4)
  np.testing.assert_allclose(
    layer.logits(x), x @ layer.shared_weights.numpy().T, atol=1e-5
  )


def test_embedding_initial_spread():
  layer = EmbeddingSharedWeights(2000, 64)
  layer.build(None)
  assert abs(layer.shared_weights.numpy().std() - 64**-0.5) < 0.002


def test_the_official_modes_of_the_embedding():
  layer = EmbeddingSharedWeights(7, 4)
  ids, x = tf.constant([[3, 0]]), normal(2, 3, 4)
  np.testing.assert_array_equal(layer(ids), layer.embed(ids))
  np.testing.assert_array_equal(layer(x, mode="linear"), layer.logits(x))
  with pytest.raises(ValueError, match="'softmax': there are embedding and"):
    layer(ids, mode="softmax")


@pytest.mark.parametrize(
  ("layer", "config"),
  [
    (
      Attention(8, 2, 0.5),
      {"hidden_size": 8, "num_heads": 2, "attention_dropout": 0.5},
    ),
    (
      SelfAttention(8, 4, 0.1, initializer_gain=2.0, use_bias=True),
      {
        **{"hidden_size": 8, "num_heads": 4, "attention_dropout": 0.1},
        **{"initializer_gain": 2.0, "use_bias": True},
      },
    ),
    (
      EmbeddingSharedWeights(7, 4),
      {"vocab_size": 7, "hidden_size": 4},
    ),
    (
      EmbeddingSharedWeights(7, 4, mask_pad=False, scaled=False),
      {"vocab_size": 7, "hidden_size": 4, "mask_pad": False, "scaled": False},
    ),
    (
      FeedForwardNetwork(8, 16, 0.2),
      {"hidden_size": 8, "filter_size": 16, "relu_dropout": 0.2},
    ),
    (
      FeedForwardNetwork(8, 16, 0.2, 2.0, "gelu"),
      {
        **{"hidden_size": 8, "filter_size": 16, "relu_dropout": 0.2},
        **{"initializer_gain": 2.0, "activation": "gelu"},
      },
    ),
    (LayerNormalization(8), {"hidden_size": 8}),
  ],
)
def test_a_config_is_the_constructors_arguments(layer, config):
  found = layer.get_config()
  assert found == config
  again = type(layer).from_config(found)
  assert again.get_config() == found
