import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import transformer as transformer_lib
from official_transformer.model.beam_search import SearchState
from official_transformer.model.dropout import dropout_seed
from official_transformer.model.transformer import (
  build_transformer,
  create_model,
)

SOURCE = tf.constant([[5, 6, 7, 1], [8, 1, 0, 0], [9, 4, 1, 0]])
TARGET = tf.constant([[3, 4, 5, 1, 0], [6, 1, 0, 0, 0], [2, 3, 4, 5, 1]])


@pytest.fixture(params=["zero", "pad_row"])
def model(request, undropped):
  tf.random.set_seed(1)
  return build_transformer(
    dataclasses.replace(undropped, start_symbol=request.param)
  )


def test_cached_decoding_equals_uncached(model):
  whole = model([SOURCE, TARGET]).numpy()
  source = model.encode(SOURCE)
  stack = model.decoder_stack
  state = SearchState(stack.empty_caches(3), stack.project_source(source))
  ids = tf.zeros([3], tf.int32)
  positions = transformer_lib.get_position_encoding(5, 16)
  for t in range(5):
    x = model.embedding(ids[:, None]) + positions[t]
    x, caches = stack.step(x, state.per_beam, state.per_source)
    state = state._replace(per_beam=caches)
    np.testing.assert_allclose(
      model.embedding.linear(x[:, 0]), whole[:, t], atol=1e-5
    )
    ids = TARGET[:, t]


def test_beams_share_their_source(model):
  """Two beams a sentence give what two copies of the sentence give."""
  stack = model.decoder_stack
  source = stack.project_source(model.encode(SOURCE))
  twice = stack.project_source(model.encode(tf.repeat(SOURCE, 2, axis=0)))
  x = tf.random.stateless_normal([6, 1, 16], [1, 2])
  shared, _ = stack.step(x, stack.empty_caches(6), source)
  copied, _ = stack.step(x, stack.empty_caches(6), twice)
  np.testing.assert_allclose(shared, copied, atol=1e-5)


def test_later_targets_change_nothing_before_them(model):
  changed = tf.concat([TARGET[:, :3], TARGET[:, 3:] * 0 + 9], axis=1)
  before = model([SOURCE, TARGET]).numpy()
  after = model([SOURCE, changed]).numpy()
  np.testing.assert_array_equal(before[:, :4], after[:, :4])
  assert np.abs(before[:, 4] - after[:, 4]).max() > 1e-4


def test_padding_of_the_source_changes_nothing(model):
  padded = tf.pad(SOURCE, [[0, 0], [0, 7]])
  np.testing.assert_allclose(
    model([SOURCE, TARGET]), model([padded, TARGET]), atol=1e-5
  )


def test_start_symbols_differ(undropped):
  zero = build_transformer(undropped)
  pad_row = build_transformer(
    dataclasses.replace(undropped, start_symbol="pad_row")
  )
  for a, b in zip(zero.weights, pad_row.weights, strict=True):
    b.assign(a)
  one_source = SOURCE[:1]  # Without padding, which the two also embed apart.
  difference = zero([one_source, TARGET[:1]]) - pad_row(
    [one_source, TARGET[:1]]
  )
  assert np.abs(difference).max() > 1e-4


def test_a_batch_equals_its_sentences_one_by_one(model):
  together = model.beam_search(SOURCE)
  for row, ids in enumerate(SOURCE.numpy()):
    single = model.beam_search(tf.constant([ids[ids != 0]]))
    length = single.ids.shape[2]
    np.testing.assert_array_equal(single.ids[0], together.ids[row, :, :length])
    np.testing.assert_allclose(
      single.scores[0], together.scores[row], atol=1e-5
    )


def test_results_respect_the_limit_of_each_sentence(model):
  result = model.beam_search(SOURCE)
  lengths = np.count_nonzero(SOURCE, axis=1)
  assert result.ids.shape == (3, 4, lengths.max() + 5)
  for row, length in enumerate(lengths):
    assert not result.ids.numpy()[row, :, length + 5 :].any()


def test_paths_do_not_depend_on_what_was_built_before(params):
  training = create_model(params, is_train=True)
  decoding = create_model(params, is_train=False)
  paths = [w.path for w in training.weights]
  assert paths == [w.path for w in decoding.weights]
  assert len(set(paths)) == len(paths)
  assert "transformer/embedding/weights" in paths
  assert (
    "transformer/decoder_stack/layer_1/cross_attention/attention/key_kernel"
    in paths
  )


def test_number_of_parameters_by_hand(params):
  d, f, v = 16, 32, 20
  attention, ffn, norm = 4 * d * d, 2 * d * f + f + d, 2 * d
  encoder = 2 * (attention + ffn + 2 * norm) + norm
  decoder = 2 * (2 * attention + ffn + 3 * norm) + norm
  model = create_model(params, is_train=True)
  assert model.count_params() == v * d + encoder + decoder


def test_training_model_gives_logits_and_a_loss(params):
  model = create_model(params, is_train=True, with_metrics=True)
  logits = model([SOURCE, TARGET], training=True)
  assert logits.shape == (3, 5, 20)
  (loss,) = model.losses
  assert 1.0 < float(loss) < 6.0  # About ln 20.
  assert {m.name for m in model.metrics} >= {"accuracy", "accuracy_top5"}


def test_decoding_model_gives_the_best_hypothesis(undropped):
  model = create_model(undropped, is_train=False)
  ids, scores = model.predict(SOURCE.numpy(), verbose=0)
  expected = model.get_layer("beam_search").transformer.beam_search(SOURCE)
  np.testing.assert_array_equal(ids, expected.ids[:, 0])
  np.testing.assert_allclose(scores, expected.scores[:, 0], atol=1e-5)


def test_dropout_follows_the_seed_through_the_whole_model(params):
  model = create_model(params, is_train=True)

  def logits(seed):
    with dropout_seed(tf.constant([seed, 0])):
      return model([SOURCE, TARGET], training=True).numpy()

  np.testing.assert_array_equal(logits(1), logits(1))
  assert np.abs(logits(1) - logits(2)).max() > 1e-3


def test_layer_norm_has_the_official_epsilon(undropped):
  # Inputs of spread 1e-3: an epsilon of 1e-3 would flatten them.
  norm = build_transformer(undropped).encoder_stack.output_normalization
  x = np.random.default_rng(0).normal(size=(2, 3, 16)).astype("float32") * 1e-3
  expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(
    x.var(-1, keepdims=True) + 1e-6
  )
  np.testing.assert_allclose(norm(x), expected, atol=1e-4)


def test_the_source_is_projected_once(model, monkeypatch):
  """However many steps the search makes, traced or not."""
  attention = model.decoder_stack.layers[0].cross_attention.layer
  calls = []
  project = attention.project_keys_values
  monkeypatch.setattr(
    attention,
    "project_keys_values",
    lambda source: calls.append(tuple(source.shape)) or project(source),
  )
  model.beam_search(SOURCE)
  assert calls == [(3, 4, 16)]  # Three sentences, not a tile for each beam.
