"""Another part of the model or the search, put in its place from outside.

docs/architecture.md tells which file each would be in. A search by cached steps
must still find what the model says without any cache.
"""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
from model_variants import SMALL, SOURCE

from official_transformer.model import transformer, variants
from official_transformer.model.attention_layer import Attention, SelfAttention
from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.ops.layer import ConfiguredLayer
from official_transformer.search import beam_search
from official_transformer.search.beam_search import BeamSearch
from official_transformer.search.state import (
  NEG_INF,
  DecoderState,
  SearchHooks,
)

PARAMS = dataclasses.replace(SMALL, num_hidden_layers=1, num_heads=4)


def build():
  model = build_transformer(PARAMS)
  rng = np.random.default_rng(5)
  for variable in model.weights:
    shift = 1.0 if "norm" in variable.path else 0.0
    noise = rng.normal(scale=0.3, size=variable.shape)
    variable.assign((noise + shift).astype("float32"))
  return model


def check_search(model):
  """Compares the scores of cached steps with logits of whole targets."""
  found = model.beam_search(SOURCE)
  compared = 0
  for row, (ids, scores, finished) in enumerate(
    zip(*(tensor.numpy() for tensor in found), strict=True)
  ):
    length = np.count_nonzero(SOURCE[row]) + PARAMS.extra_decode_length
    for hypothesis, score, ended in zip(ids, scores, finished, strict=True):
      if not np.isfinite(score):
        continue
      if ended:
        length = hypothesis.tolist().index(1) + 1
      target = hypothesis[None, :length]
      logits = model([SOURCE[row : row + 1], target])[0]
      logs = tf.nn.log_softmax(logits).numpy()
      total = logs[np.arange(length), target[0]].sum()
      norm = ((5 + length) / 6) ** PARAMS.alpha if ended else 1.0
      assert score == pytest.approx(total / norm, abs=1e-4)
      compared += 1
  assert compared >= 3


def logits_of(model):
  return model([SOURCE, SOURCE]).numpy()


class RmsNorm(ConfiguredLayer):
  """`x / sqrt(mean(x^2)) * gamma` (Zhang and Sennrich 2019)."""

  keras_defaults: ClassVar = {"dtype": "float32"}

  def __init__(self, hidden_size, **kwargs):
    super().__init__(**kwargs)
    self.hidden_size = hidden_size

  def build(self, input_shape=None):
    self.gamma = self.add_weight(
      name="gamma", shape=(self.hidden_size,), initializer="ones"
    )

  def call(self, x, training=False):
    del training
    wide = tf.cast(x, tf.float32)
    mean = tf.reduce_mean(tf.square(wide), axis=-1, keepdims=True)
    return tf.cast(wide * tf.math.rsqrt(mean + 1e-6) * self.gamma, x.dtype)


def test_another_norm(monkeypatch):
  official = logits_of(build())
  monkeypatch.setitem(
    variants.NORMS,
    "pre",
    lambda params, name: RmsNorm(params.hidden_size, name=name),
  )
  model = build()
  assert not [w.path for w in model.weights if w.path.endswith("beta")]
  assert np.abs(logits_of(model) - official).max() > 0.1
  check_search(model)
  trainer = create_training_model(model)
  before = model.get_weights()
  trainer.compile("sgd")
  trainer.fit([SOURCE, SOURCE], verbose=0)
  moved = [
    np.abs(old - new).max()
    for old, new in zip(before, model.get_weights(), strict=True)
  ]
  assert np.isfinite(moved).all() and min(moved) > 0
  half = build_transformer(PARAMS, "bf16", is_train=False)
  assert half([SOURCE, SOURCE]).dtype == tf.bfloat16


def test_another_position_encoding(monkeypatch):
  def ramp(length, hidden_size):
    position = tf.cast(tf.range(length), tf.float32)[:, None]
    return tf.tile(position / 10.0, [1, hidden_size])

  monkeypatch.setitem(
    variants.POSITIONS, "sinusoid", variants.computed_positions(ramp)
  )
  model = build()
  expected = model.embedding(tf.constant(SOURCE)).numpy()
  expected += np.arange(SOURCE.shape[1])[:, None] / 10.0
  np.testing.assert_allclose(model.embed_source(SOURCE), expected, atol=1e-5)
  check_search(model)


def grouped(kind):
  """Attention whose four heads share two keys and values (Ainslie 2023)."""

  class Grouped(kind):
    shared_by = 2

    def projection_size(self, name):
      full = super().projection_size(name)
      return full // self.shared_by if name in ("key", "value") else full

    def split_heads(self, products, names, positions=None):
      del positions
      sizes = [self.projection_size(name) for name in names]
      shape = tf.shape(products)
      parts = []
      for part in tf.split(products, sizes, axis=2):
        heads = part.shape[2] // self.head_size
        part = tf.reshape(part, [shape[0], shape[1], heads, self.head_size])
        part = tf.repeat(part, self.num_heads // heads, axis=2)
        parts.append(tf.transpose(part, [0, 2, 1, 3]))
      return parts

  return Grouped


def test_grouped_query_attention(monkeypatch):
  for kind in (Attention, SelfAttention):
    monkeypatch.setattr(transformer, kind.__name__, grouped(kind))
  model = build()
  layer = model.decoder_stack.layers[0].self_attention.layer
  assert layer.key_kernel.shape == (16, 8)
  # The same as plain attention whose heads repeat.
  monkeypatch.undo()
  plain = build()
  for variable in plain.weights:
    (other,) = (w for w in model.weights if w.path == variable.path)
    value = other.numpy()
    if value.shape != variable.shape:
      value = np.repeat(value.reshape(16, 2, 4), 2, axis=1).reshape(16, 16)
    variable.assign(value)
  np.testing.assert_allclose(logits_of(model), logits_of(plain), atol=1e-4)
  check_search(model)


class RotarySelfAttention(SelfAttention):
  """Queries and keys are turned by their positions (Su et al. 2021)."""

  def split_heads(self, products, names, positions=None):
    heads = super().split_heads(products, names, positions)
    if positions is None:
      positions = tf.range(tf.shape(products)[1])
    half = self.head_size // 2
    rates = 10000.0 ** -(np.arange(half, dtype=np.float32) / half)
    angles = tf.cast(positions, tf.float32)[..., None] * rates
    sine, cosine = tf.sin(angles), tf.cos(angles)

    def turn(x):
      a, b = tf.split(x, 2, axis=3)
      return tf.concat([a * cosine - b * sine, a * sine + b * cosine], axis=3)

    return [
      x if name == "value" else turn(x)
      for name, x in zip(names, heads, strict=True)
    ]


def test_rotary_positions(monkeypatch):
  monkeypatch.setattr(transformer, "SelfAttention", RotarySelfAttention)
  monkeypatch.setitem(
    variants.POSITIONS,
    "sinusoid",
    variants.computed_positions(lambda n, d: tf.zeros([n, d])),
  )
  model = build()
  swapped = SOURCE[:, [1, 0, 2, 3, 4]]
  bias = tf.zeros([1])
  encoded = model.encode(SOURCE, bias)[:, 2]
  assert np.abs(encoded - model.encode(swapped, bias)[:, 2]).max() > 1e-3
  check_search(model)


def test_another_length_penalty(monkeypatch):
  monkeypatch.setattr(
    beam_search, "length_penalty", lambda length, alpha: alpha * length
  )
  logits = tf.math.log([[0.1, 0.3, 0.6], [0.1, 0.8, 0.1]])

  def step(ids, index, state):
    return tf.repeat(logits[tf.minimum(index, 1)][None], 2, axis=0), state

  found = BeamSearch(step, 3, 2, 2.0).search(
    tf.constant([0]), tf.constant([2]), DecoderState([], [])
  )
  best = [np.log(0.6 * 0.8) / 4, np.log(0.3) / 2]
  np.testing.assert_allclose(found.scores[0], best, rtol=1e-5)


def test_another_control_of_the_search():
  """No hypothesis may hold a token of an odd number, but EOS."""
  model = build()

  def propose(logits, sentences, index):
    del index
    odd = np.array([i % 2 == 1 and i != 1 for i in range(PARAMS.vocab_size)])
    logs = tf.where(odd, NEG_INF, tf.nn.log_softmax(logits))
    shape = tf.shape(sentences.alive_log_probs)
    logs = tf.reshape(logs, [shape[0], shape[1], -1])
    logs += sentences.alive_log_probs[..., None]
    best, places = tf.math.top_k(
      tf.reshape(logs, [shape[0], -1]), 2 * PARAMS.beam_size
    )
    return best, places % PARAMS.vocab_size, places // PARAMS.vocab_size

  found = model.beam_search(SOURCE, hooks=SearchHooks(propose=propose))
  tokens = set(found.ids.numpy().ravel().tolist())
  assert all(token % 2 == 0 or token == 1 for token in tokens)
  usual = set(model.beam_search(SOURCE).ids.numpy().ravel().tolist())
  assert any(token % 2 == 1 and token != 1 for token in usual)
