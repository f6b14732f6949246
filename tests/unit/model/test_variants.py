"""Every variant of the model against the same computation in plain NumPy."""

import dataclasses
import math

import model_variants
import numpy as np
import pytest
import tensorflow as tf
from model_variants import (
  CHOICES,
  COMBINED,
  SMALL,
  SOURCE,
  TARGET,
  VARIANTS,
  make,
  pairs_covered,
)

from official_transformer.errors import InputError
from official_transformer.hardware import processor
from official_transformer.model import beam_cache, variants
from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.model.incremental_decoder import IncrementalDecoder
from official_transformer.ops import dense


class NumpyTransformer:
  """The forward pass in float64, written from the formulas alone."""

  def __init__(self, model):
    self.params = model.params
    self.weights = {
      v.path.removeprefix("transformer/"): v.numpy().astype(np.float64)
      for v in model.weights
    }

  def norm(self, x, path):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    n = (x - mean) / np.sqrt(variance + self.params.layer_norm_epsilon)
    return n * self.weights[f"{path}/gamma"] + self.weights[f"{path}/beta"]

  def sub_layer(self, x, path, function):
    if self.params.norm == "pre":
      return x + function(self.norm(x, f"{path}/layer_norm"))
    return self.norm(x + function(x), f"{path}/layer_norm")

  def project(self, x, path, name):
    bias = self.weights.get(f"{path}/{name}_bias", 0.0)
    return x @ self.weights[f"{path}/{name}_kernel"] + bias

  def attend(self, x, memory, path, visible):
    path += "/attention"
    q = self.project(x, path, "query")
    k = self.project(memory, path, "key")
    v = self.project(memory, path, "value")
    size = self.params.hidden_size // self.params.num_heads
    mixed = []
    for head in range(self.params.num_heads):
      part = slice(head * size, (head + 1) * size)
      logits = q[..., part] @ k[..., part].swapaxes(1, 2) / math.sqrt(size)
      logits = np.where(visible, logits, -1e30)
      weights = np.exp(logits - logits.max(-1, keepdims=True))
      weights /= weights.sum(-1, keepdims=True)
      mixed.append(weights @ v[..., part])
    return self.project(np.concatenate(mixed, -1), path, "output")

  def feed_forward(self, x, path):
    inner = self.project(x, f"{path}/network", "filter")
    erf = np.vectorize(math.erf)
    inner = {
      "relu": lambda z: np.maximum(z, 0),
      "gelu": lambda z: z * 0.5 * (1 + erf(z / math.sqrt(2))),
      "swish": lambda z: z / (1 + np.exp(-z)),
    }[self.params.activation](inner)
    return self.project(inner, f"{path}/network", "output")

  def embed(self, ids, side):
    name = "embedding/weights"
    if side == "source" and "source_embedding/weights" in self.weights:
      name = "source_embedding/weights"
    x = self.weights[name][ids]
    if self.params.scale_embeddings:
      x = x * math.sqrt(self.params.hidden_size)
    if self.params.start_symbol == "zero":
      x = x * (ids != 0)[..., None]
    return x + self.positions(ids.shape[1], side)

  def positions(self, length, side):
    d = self.params.hidden_size
    if self.params.positions == "learned":
      return self.weights[f"{side}_positions/table"][:length]
    signal = np.zeros([length, d])
    for pos in range(length):
      for i in range(d // 2):
        exponent = 2 * i / d
        if self.params.positions == "sinusoid":
          exponent = i / (d // 2 - 1)
        angle = pos / 10000**exponent
        sine, cosine = i, d // 2 + i
        if self.params.positions == "interleaved":
          sine, cosine = 2 * i, 2 * i + 1
        signal[pos, sine], signal[pos, cosine] = np.sin(angle), np.cos(angle)
    return signal

  def end(self, x, stack):
    if self.params.norm == "post":
      return x
    return self.norm(x, f"{stack}/output_norm")

  def logits(self, source, target):
    seen = (source != 0)[:, None, :]
    memory = self.embed(source, "source")
    for n in range(self.params.encoder_layers):
      path = f"encoder_stack/layer_{n}"
      memory = self.sub_layer(
        memory,
        f"{path}/self_attention",
        lambda y, p=path: self.attend(y, y, f"{p}/self_attention", seen),
      )
      memory = self.sub_layer(
        memory,
        f"{path}/ffn",
        lambda y, p=path: self.feed_forward(y, f"{p}/ffn"),
      )
    memory = self.end(memory, "encoder_stack")
    shifted = np.pad(target, [[0, 0], [1, 0]])[:, :-1]
    past = np.tril(np.ones([target.shape[1]] * 2, bool))[None]
    x = self.embed(shifted, "target")
    for n in range(self.params.decoder_layers):
      path = f"decoder_stack/layer_{n}"
      x = self.sub_layer(
        x,
        f"{path}/self_attention",
        lambda y, p=path: self.attend(y, y, f"{p}/self_attention", past),
      )
      x = self.sub_layer(
        x,
        f"{path}/cross_attention",
        lambda y, p=path: self.attend(y, memory, f"{p}/cross_attention", seen),
      )
      x = self.sub_layer(
        x, f"{path}/ffn", lambda y, p=path: self.feed_forward(y, f"{p}/ffn")
      )
    x = self.end(x, "decoder_stack")
    table = self.weights.get(
      "softmax/weights", self.weights["embedding/weights"]
    )
    return x @ table.T + self.weights.get("output/bias", 0.0)


def log_softmax(logits):
  logits = logits - logits.max(-1, keepdims=True)
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def test_the_combined_models_cover_what_they_say():
  assert pairs_covered() >= 7 / 8
  for number, values in enumerate(CHOICES.values()):
    rows = [list(model_variants._ROWS[n])[number] for n in range(len(COMBINED))]
    assert set(rows) == set(values)


@pytest.mark.parametrize("name", [*VARIANTS, *COMBINED])
def test_logits_are_those_of_a_plain_forward_pass(name):
  model = make(name)
  found = model([SOURCE, TARGET]).numpy()
  expected = NumpyTransformer(model).logits(SOURCE, TARGET)
  real = TARGET != 0
  np.testing.assert_allclose(found[real], expected[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [*VARIANTS, *COMBINED])
def test_the_cached_search_finds_what_no_cache_confirms(name, monkeypatch):
  monkeypatch.setattr(beam_cache, "CAPACITY_STEP", 3)
  model = make(name)
  plain = NumpyTransformer(model)
  found = model.beam_search(SOURCE)
  for row in range(len(SOURCE)):
    for ids, score, finished in zip(
      *(tensor[row].numpy() for tensor in found), strict=True
    ):
      if not np.isfinite(score):
        continue
      length = np.count_nonzero(SOURCE[row]) + model.params.extra_decode_length
      if finished:
        length = ids.tolist().index(1) + 1
      target = ids[None, :length]
      logits = plain.logits(SOURCE[row : row + 1], target)[0]
      if model.params.suppress_pad:
        logits[:, 0] = -np.inf
        assert 0 not in target
      total = log_softmax(logits)[np.arange(length), target[0]].sum()
      norm = ((5 + length) / 6) ** model.params.alpha if finished else 1.0
      assert score == pytest.approx(total / norm, abs=1e-4)


@pytest.mark.parametrize(
  "name", ["official", "two_vocabularies", "marian_model"]
)
@pytest.mark.parametrize("suppress_pad", [False, True])
def test_other_layouts_find_the_same(name, suppress_pad, monkeypatch):
  model = make(name, suppress_pad=suppress_pad)
  found = []
  for spare, transposed in ((0, False), (3, False), (0, True)):
    monkeypatch.setattr(dense, "padding_columns_for", lambda _, n=spare: n)
    monkeypatch.setattr(
      dense, "transposed_is_faster", lambda _, t=transposed: t
    )
    found.append(model.beam_search(SOURCE))
  for other in found[1:]:
    np.testing.assert_array_equal(found[0].ids, other.ids)
    np.testing.assert_allclose(found[0].scores, other.scores, rtol=1e-5)


@pytest.mark.parametrize("static", [False, True])
def test_kernels_of_static_searches_are_laid_out_for_xla(static, monkeypatch):
  targets = []
  monkeypatch.setattr(
    dense,
    "transposed_is_faster",
    lambda _: bool(targets.append(processor._target.get())),
  )
  make("official").beam_search(SOURCE, static=static)
  assert set(targets) == {processor.Target.XLA if static else None}


# The official one: `test_the_search_equals_the_plain_one`.
@pytest.mark.parametrize("name", COMBINED)
def test_static_and_dynamic_search_are_one(name):
  model = make(name)
  dynamic = model.beam_search(SOURCE)
  static = tf.function(
    lambda ids: model.beam_search(ids, static=True), jit_compile=True
  )(tf.constant(SOURCE))
  length = dynamic.ids.shape[2]
  np.testing.assert_array_equal(dynamic.ids, static.ids[:, :, :length])


# Every value of every choice.
@pytest.mark.parametrize(
  "name", ["official", "marian_model", "notebook", *COMBINED]
)
def test_every_variable_has_a_gradient(name):
  model = make(name)
  trainer = create_training_model(model)
  with tf.GradientTape() as tape:
    trainer([SOURCE, TARGET], training=True)
    loss = tf.add_n(trainer.losses)
  variables = trainer.trainable_variables
  assert len(variables) == len(model.weights)
  for variable, gradient in zip(
    variables,
    tape.gradient(loss, [v.value for v in variables]),
    strict=True,
  ):
    gradient = tf.convert_to_tensor(gradient).numpy()
    # A bias that all keys share changes no attention: its gradient is zero.
    if not variable.path.endswith("/key_bias"):
      assert np.abs(gradient).max() > 0, variable.path


@pytest.mark.parametrize("name", ["output_bias", "no_shared_tables"])
def test_the_loss_is_that_of_the_logits(name):
  model = make(name, label_smoothing=0.1)
  trainer = create_training_model(model)
  logits = trainer([SOURCE, TARGET], training=False).numpy()
  logs = log_softmax(logits.astype(np.float64))
  wrong = 0.1 / 22
  expected = []
  for row, label in zip(logs[TARGET != 0], TARGET[TARGET != 0], strict=True):
    q = np.full(23, wrong)
    q[label] = 0.9
    expected.append((q * (np.log(q) - row)).sum())
  assert float(trainer.losses[0]) == pytest.approx(np.mean(expected), rel=1e-5)


def test_positions_of_one_signal_are_a_permutation_of_another():
  marian = variants.huggingface_sinusoid(50, 16).numpy()
  interleaved = variants.interleaved_sinusoid(50, 16).numpy()
  np.testing.assert_array_equal(interleaved[:, 0::2], marian[:, :8])
  np.testing.assert_array_equal(interleaved[:, 1::2], marian[:, 8:])


def test_a_translation_ends_where_positions_do():
  model = make("learned", extra_decode_length=100)
  found = model.beam_search(SOURCE)
  # With EOS behind it, it can still be read.
  assert found.ids.shape[2] == 39


def test_steps_equal_the_whole_in_half_precision():
  model = build_transformer(
    dataclasses.replace(SMALL, **VARIANTS["notebook"]), "bf16", is_train=False
  )
  whole = model([SOURCE, TARGET]).numpy().astype("float32")
  step = IncrementalDecoder(model, 1, 5, None)
  state = step.encode_and_start(SOURCE)
  ids = tf.zeros([3], tf.int32)
  for t in range(5):
    logits, state = step(ids, tf.constant(t), state)
    np.testing.assert_allclose(
      tf.cast(logits, tf.float32), whole[:, t], atol=0.1
    )
    ids = tf.constant(TARGET[:, t])


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("norm", "Post"),
    ("positions", "rotary"),
    ("activation", "tanh"),
    ("share_embeddings", "encoder"),
    ("max_positions", 0),
    ("layer_norm_epsilon", 0.0),
    ("num_encoder_layers", -1),
  ],
)
def test_impossible_variants_are_refused(field, value):
  with pytest.raises(InputError, match=field):
    dataclasses.replace(SMALL, **{field: value})
