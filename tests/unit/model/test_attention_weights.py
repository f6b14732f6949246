import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import attention_layer
from official_transformer.model.attention_weights import attention_weights
from official_transformer.model.building import build_transformer

SOURCES = np.array([[5, 9, 3, 1, 0], [7, 2, 1, 0, 0], [4, 8, 6, 2, 1]])
TARGETS = np.array([[4, 4, 6, 1], [3, 1, 0, 0], [9, 8, 7, 1]])


class PlainModel:
  """The paper's formulas in NumPy, which keep every softmax."""

  def __init__(self, transformer):
    self.params = transformer.params
    self.values = {
      w.path.removeprefix("transformer/"): w.numpy().astype(np.float64)
      for w in transformer.weights
    }

  def norm(self, x, path):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return x * self.values[f"{path}/gamma"] + self.values[f"{path}/beta"]

  def embed(self, ids):
    size = self.params.hidden_size
    x = self.values["embedding/weights"][ids] * size**0.5
    if self.params.start_symbol == "zero":
      x[ids == 0] = 0
    half = size // 2
    rates = np.exp(-np.log(10000) / (half - 1) * np.arange(half))
    angles = np.arange(ids.shape[1])[:, None] * rates
    return x + np.concatenate([np.sin(angles), np.cos(angles)], 1)

  def attend(self, x, source, hidden, path):
    """Returns the output, and the weights, [B, N, F, T]."""
    heads = self.params.num_heads

    def split(y, name):
      y = y @ self.values[f"{path}/{name}_kernel"]
      return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    query, keys, values = (
      split(x, "query"),
      split(source, "key"),
      split(source, "value"),
    )
    logits = query @ keys.transpose(0, 1, 3, 2) / query.shape[-1] ** 0.5
    logits = np.where(hidden, -np.inf, logits)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = (weights @ values).transpose(0, 2, 1, 3).reshape(x.shape)
    return mixed @ self.values[f"{path}/output_kernel"], weights

  def feed_forward(self, x, path):
    def dense(y, name):
      kernel, bias = f"{name}_kernel", f"{name}_bias"
      network = f"{path}/network"
      return (
        y @ self.values[f"{network}/{kernel}"]
        + (self.values[f"{network}/{bias}"])
      )

    y = dense(self.norm(x, f"{path}/layer_norm"), "filter")
    return x + dense(np.maximum(y, 0), "output")

  def weights(self, sources, targets):
    x = self.embed(sources)
    padding = (sources == 0)[:, None, None, :]
    found = ([], [], [])
    for n in range(self.params.num_hidden_layers):
      path = f"encoder_stack/layer_{n}"
      y = self.norm(x, f"{path}/self_attention/layer_norm")
      y, w = self.attend(y, y, padding, f"{path}/self_attention/attention")
      found[0].append(w)
      x = self.feed_forward(x + y, f"{path}/ffn")
    encoded = self.norm(x, "encoder_stack/output_norm")
    shifted = np.pad(targets, [[0, 0], [1, 0]])[:, :-1]
    x = self.embed(shifted)
    later = np.triu(np.ones([targets.shape[1]] * 2, bool), 1)
    for n in range(self.params.num_hidden_layers):
      path = f"decoder_stack/layer_{n}"
      y = self.norm(x, f"{path}/self_attention/layer_norm")
      y, w = self.attend(y, y, later, f"{path}/self_attention/attention")
      found[1].append(w)
      x = x + y
      y = self.norm(x, f"{path}/cross_attention/layer_norm")
      y, w = self.attend(
        y, encoded, padding, f"{path}/cross_attention/attention"
      )
      found[2].append(w)
      x = self.feed_forward(x + y, f"{path}/ffn")
    return [np.stack(weights, 1) for weights in found]


@pytest.fixture(scope="module", params=["zero", "pad_row"])
def transformer(request):
  from official_transformer.model_params import TransformerParams

  tf.keras.utils.set_random_seed(3)
  params = TransformerParams(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=3,
    num_heads=2,
    filter_size=32,
    beam_size=1,
    extra_decode_length=4,
    start_symbol=request.param,
  )
  return build_transformer(params, is_train=False)


def test_weights_equal_a_plain_computation(transformer):
  found = attention_weights(
    transformer, tf.constant(SOURCES), tf.constant(TARGETS)
  )
  expected = PlainModel(transformer).weights(SOURCES, TARGETS)
  assert found.encoder.shape == (3, 3, 2, 5, 5)
  assert found.decoder.shape == (3, 3, 2, 4, 4)
  assert found.cross.shape == (3, 3, 2, 4, 5)
  for ours, plain in zip(found, expected, strict=True):
    np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-6)


def test_rows_add_up_to_one_and_hide_what_is_hidden(transformer):
  found = attention_weights(
    transformer, tf.constant(SOURCES), tf.constant(TARGETS)
  )
  for weights in found:
    sums = tf.reduce_sum(weights, -1)
    np.testing.assert_allclose(sums, np.ones(sums.shape), rtol=0, atol=1e-6)
  assert np.all(found.encoder.numpy()[1, ..., 3:] == 0)
  assert np.all(found.cross.numpy()[0, ..., 4:] == 0)
  assert np.all(np.triu(found.decoder.numpy(), 1) == 0)


def test_they_are_what_the_search_attends_to_at_each_step(
  transformer, monkeypatch
):
  """Step by step, with a cache, as by teacher forcing of what it found."""
  sources = tf.constant(SOURCES[:1, :4])
  steps = []
  compute = attention_layer.attention_weights_of

  def recorded(query, keys, bias):
    weights = compute(query, keys, bias)
    steps.append(weights.numpy())
    return weights

  monkeypatch.setattr(attention_layer, "attention_weights_of", recorded)
  result = transformer.beam_search(sources)
  monkeypatch.undo()
  layers = transformer.params.num_hidden_layers
  encoder, decoder = steps[:layers], steps[layers:]
  targets = result.ids.numpy()[0, 0]
  made = len(decoder) // (2 * layers)
  assert made >= 3
  # Of a search that has gone on after its best ending, the path is another.
  targets = targets[:made]
  length = int(np.argmax(targets == 1)) + 1 if 1 in targets else made
  found = attention_weights(
    transformer, sources, tf.constant(targets[None, :length])
  )
  for layer in range(layers):
    np.testing.assert_allclose(
      encoder[layer], found.encoder[:, layer], rtol=0, atol=1e-6
    )
    for step in range(length):
      own, cross = decoder[2 * (step * layers + layer) :][:2]
      np.testing.assert_allclose(
        own[0, :, 0, : step + 1],
        found.decoder[0, layer, :, step, : step + 1],
        rtol=0,
        atol=1e-6,
      )
      assert np.all(own[..., step + 1 :] == 0)
      np.testing.assert_allclose(
        cross[0, :, 0], found.cross[0, layer, :, step], rtol=0, atol=1e-6
      )


def test_half_precision_keeps_them_float32(transformer):
  params = dataclasses.replace(transformer.params)
  half = build_transformer(params, "bf16", is_train=False)
  found = attention_weights(half, tf.constant(SOURCES), tf.constant(TARGETS))
  assert {w.dtype for w in found} == {tf.float32}
  sums = tf.reduce_sum(found.cross, -1)
  np.testing.assert_allclose(sums, np.ones(sums.shape), rtol=0, atol=1e-6)
