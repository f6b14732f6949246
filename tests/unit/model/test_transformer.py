import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from reference_search import reference_beam_search

from official_transformer.model import beam_cache
from official_transformer.model.building import build_transformer
from official_transformer.model.incremental_decoder import IncrementalDecoder
from official_transformer.model.transformer import (
  Transformer,
  create_model,
)
from official_transformer.ops.dropout import dropout_seed

SOURCE = tf.constant([[5, 6, 7, 1], [8, 1, 0, 0], [9, 4, 1, 0]])
TARGET = tf.constant([[3, 4, 5, 1, 0], [6, 1, 0, 0, 0], [2, 3, 4, 5, 1]])


@pytest.fixture(params=["zero", "pad_row"])
def start_symbol(request):
  return request.param


@pytest.fixture
def model(start_symbol, undropped):
  keras.utils.set_random_seed(1)  # Equal ids need equal weights in every run.
  return build_transformer(
    dataclasses.replace(undropped, start_symbol=start_symbol)
  )


def steps(model, targets, beam_size, parents):
  """Yields logits [B, K, V] of cached steps, beams reordered between them.

  Args:
    model: the transformer.
    targets: ids [B, K, T] that the beams are fed.
    beam_size: K.
    parents: int32 [T, K]: whose past each beam takes over after a step.
  """
  step = IncrementalDecoder(model, beam_size, targets.shape[2], None)
  state = step.encode_and_start(SOURCE)
  ids = tf.zeros([3 * beam_size], tf.int32)
  for t in range(targets.shape[2]):
    logits, state = step(ids, tf.constant(t), state)
    yield logits.numpy().reshape(3, beam_size, -1)
    ids = tf.reshape(targets[:, :, t], [-1])
    rows = (np.arange(3)[:, None] * beam_size + parents[t]).reshape(-1)
    state = state._replace(per_beam=tf.gather(state.per_beam, rows))


def test_cached_decoding_equals_uncached(model):
  whole = model([SOURCE, TARGET]).numpy()
  cached = steps(model, TARGET[:, None], 1, np.zeros([5, 1], int))
  for t, logits in enumerate(cached):
    np.testing.assert_allclose(logits[:, 0], whole[:, t], atol=1e-5)


def test_cached_decoding_follows_beams_that_change_places(model, monkeypatch):
  monkeypatch.setattr(beam_cache, "CAPACITY_STEP", 2)
  parents = np.array([[1, 0, 2], [2, 2, 0], [0, 1, 2], [1, 1, 0], [0, 2, 1]])
  rng = np.random.default_rng(3)
  targets = tf.constant(rng.integers(2, 20, [3, 3, 5]), tf.int32)
  # What each beam has read, told by moving all of it along.
  read = np.zeros([3, 3, 0], int)
  for t, logits in enumerate(steps(model, targets, 3, parents)):
    for beam in range(3):
      prefix = np.pad(read[:, beam], [[0, 0], [0, 1]], constant_values=9)
      whole = model([SOURCE, prefix]).numpy()
      np.testing.assert_allclose(logits[:, beam], whole[:, -1], atol=1e-5)
    read = read[:, parents[t]]
    read = np.concatenate([read, targets[:, :, t, None]], axis=2)


@pytest.mark.parametrize(
  ("start_symbol", "beam_size"),
  [
    ("zero", 1),
    ("zero", 4),
    ("pad_row", 4),
    pytest.param("zero", 8, marks=pytest.mark.long),
    ("zero", 17),
  ],
  indirect=["start_symbol"],
)
def test_the_search_equals_the_plain_one(model, beam_size, monkeypatch):
  """With many beams too, which each copy their past together."""
  assert beam_cache.MAX_SHARED_BEAMS in range(8, 17)
  monkeypatch.setattr(beam_cache, "CAPACITY_STEP", 3)
  model.params = dataclasses.replace(model.params, beam_size=beam_size)
  fast = tf.function(
    model.beam_search,
    input_signature=[tf.TensorSpec([None, None], tf.int32)],
    autograph=False,
  )
  compiled = tf.function(
    lambda ids: model.beam_search(ids, static=True),
    autograph=False,
    jit_compile=True,
  )
  rng = np.random.default_rng(4)
  for _ in range(3 if beam_size < 17 else 1):
    source = rng.integers(2, 20, [20, 9])
    source[np.arange(9) > rng.integers(0, 9, [20, 1])] = 0
    expected = reference_beam_search(model, source)
    for result in (
      fast(source.astype(np.int32)),
      model.beam_search(source),
      compiled(tf.constant(source, tf.int32)),
    ):
      # The static form has room for the longest line there might be.
      longest = expected.ids.shape[2]
      np.testing.assert_array_equal(result.ids[..., :longest], expected.ids)
      assert not result.ids.numpy()[..., longest:].any()
      np.testing.assert_array_equal(result.finished, expected.finished)
      np.testing.assert_allclose(result.scores, expected.scores, atol=1e-4)


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
  expected = model.get_layer("transformer").beam_search(SOURCE)
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
  project = attention.project
  monkeypatch.setattr(
    attention,
    "project",
    lambda source, names: (
      calls.append((tuple(source.shape), names)) or project(source, names)
    ),
  )
  model.beam_search(SOURCE)
  # Three sentences, not a tile for each beam.
  assert calls == [((3, 4, 16), ("key", "value"))]


def test_two_equal_tables_are_as_one(params):
  """A table of the source's own takes part as the shared one does."""
  shared = build_transformer(params)
  separate = build_transformer(
    dataclasses.replace(params, source_vocab_size=params.vocab_size)
  )
  values = {weight.path: weight.numpy() for weight in shared.weights}
  table = "transformer/embedding/weights"
  own = "transformer/source_embedding/weights"
  assert {w.path for w in separate.weights} == values.keys() | {own}
  for weight in separate.weights:
    weight.assign(values[table if weight.path == own else weight.path])
  batch = [tf.constant([[5, 7, 1]]), tf.constant([[6, 3, 2, 1]])]
  tf.debugging.assert_equal(shared(batch), separate(batch))
  found = [made.beam_search(batch[0]) for made in (shared, separate)]
  tf.debugging.assert_equal(*(f.ids for f in found))
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(separate(batch) ** 2)
  gradients = dict(
    zip(
      (w.path for w in separate.weights),
      tape.gradient(loss, [w.value for w in separate.weights]),
      strict=True,
    )
  )
  rows = tf.convert_to_tensor(gradients[own])
  # What is not read is not moved.
  moved = tf.where(tf.reduce_any(rows != 0, axis=1))[:, 0].numpy().tolist()
  assert moved == [1, 5, 7]


def test_the_official_calls_of_the_model():
  """A dictionary of parameters; logits of targets, or else translations."""
  model = Transformer(
    {
      **{"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1},
      **{"num_heads": 2, "filter_size": 32, "use_tpu": False},
    },
    name="transformer",
  )
  logits = model([SOURCE, TARGET], training=False)
  assert logits.shape == (*TARGET.shape, 20)
  found = model([SOURCE], training=False)
  expected = model.beam_search(SOURCE)
  np.testing.assert_array_equal(found["outputs"], expected.ids[:, 0])
  np.testing.assert_array_equal(found["scores"], expected.scores[:, 0])
