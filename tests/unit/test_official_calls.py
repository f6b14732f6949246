"""Upstream's Python calls, each as a reader of its code would type it."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer import compute_bleu, model_params, translate
from official_transformer.errors import InputError
from official_transformer.model import model_utils
from official_transformer.model.attention_layer import Attention, SelfAttention
from official_transformer.model.embedding_layer import EmbeddingSharedWeights
from official_transformer.model.ffn_layer import FeedForwardNetwork
from official_transformer.model.metrics import (
  LossLayer,
  MetricLayer,
  padded_cross_entropy_loss,
  transformer_loss,
)
from official_transformer.model.transformer import (
  DecoderStack,
  EncoderStack,
  LayerNormResidualWrapper,
  Transformer,
  create_model,
)
from official_transformer.ops.layer_norm import LayerNormalization
from official_transformer.search.sequence_beam_search import SequenceBeamSearch
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.training.step.optimizer import (
  LearningRateSchedule,
  create_optimizer,
)

PARAMS = {
  "vocab_size": 24,
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_heads": 2,
  "filter_size": 32,
  "layer_postprocess_dropout": 0.1,
  "attention_dropout": 0.1,
  "relu_dropout": 0.1,
  "label_smoothing": 0.1,
  "extra_decode_length": 4,
  "beam_size": 3,
  "alpha": 0.6,
  "use_tpu": False,
}
SOURCE = tf.constant([[5, 6, 7, 1], [8, 9, 1, 0]])
TARGET = tf.constant([[3, 4, 5, 6, 1], [6, 7, 1, 0, 0]])


@pytest.fixture(autouse=True)
def _weights():
  """Draws the same weights in any order: with others nothing may be said."""
  keras.utils.set_random_seed(3)


def empty_cache(length):
  """Returns keys and values of two sentences as in upstream's caches."""
  return {name: tf.zeros([2, length, 2, 8]) for name in ("k", "v")}


def test_attention_grows_a_cache_by_concatenation():
  attention = SelfAttention(16, 2, 0.0)
  x = tf.random.normal([2, 5, 16], seed=1)
  bias = model_utils.get_decoder_self_attention_bias(5)
  whole = attention(x, bias)
  cache = empty_cache(0)
  for t in range(5):
    y = attention(x[:, t : t + 1], tf.zeros([1]), training=False, cache=cache)
    np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-5)
    assert cache["k"].shape == cache["v"].shape == (2, t + 1, 2, 8)


def test_attention_fills_a_static_cache():
  attention = SelfAttention(16, 2, 0.0)
  x = tf.random.normal([2, 5, 16], seed=2)
  bias = model_utils.get_decoder_self_attention_bias(5)
  whole = attention(x, bias)
  cache = empty_cache(5)
  for t in range(5):
    y = attention(
      x[:, t : t + 1],
      bias[:, :, t : t + 1],
      cache=cache,
      decode_loop_step=tf.constant(t),
    )
    np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-5)
    assert cache["k"].shape == (2, 5, 2, 8)


def test_the_stacks():
  source, target = (tf.random.normal([2, n, 16], seed=n) for n in (4, 5))
  padding = model_utils.get_padding(SOURCE)
  bias = model_utils.get_padding_bias(SOURCE)
  encoded = EncoderStack(PARAMS)(source, bias, padding, training=False)
  assert encoded.shape == (2, 4, 16)
  stack = DecoderStack(PARAMS)
  own = model_utils.get_decoder_self_attention_bias(5)
  whole = stack(target, encoded, own, bias, training=False)
  cache = {f"layer_{n}": empty_cache(0) for n in range(2)}
  for t in range(5):
    y = stack(
      target[:, t : t + 1],
      encoded,
      own[:, :, t : t + 1, : t + 1],
      bias,
      training=False,
      cache=cache,
    )
    np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-5)


@pytest.mark.parametrize("graph", [False, True])
def test_the_decoder_stack_fills_static_caches(graph):
  source, target = (tf.random.normal([2, n, 16], seed=n) for n in (4, 5))
  bias = model_utils.get_padding_bias(SOURCE)
  own = model_utils.get_decoder_self_attention_bias(5)
  stack = DecoderStack(PARAMS)
  whole = stack(target, source, own, bias, training=False)
  cache = {f"layer_{n}": empty_cache(5) for n in range(2)}

  def step(t, cache):
    cache = tf.nest.map_structure(tf.identity, cache)
    y = stack(
      target[:, t : t + 1],
      source,
      own[:, :, t : t + 1],
      bias,
      training=False,
      cache=cache,
      decode_loop_step=t,
    )
    return y, cache

  if graph:
    step = tf.function(step)
  for t in range(5):
    y, cache = step(tf.constant(t), cache)
    np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-5)


def test_a_sub_layer_is_wrapped():
  wrapped = LayerNormResidualWrapper(FeedForwardNetwork(16, 32, 0.1), PARAMS)
  x = tf.random.normal([2, 4, 16], seed=3)
  y = wrapped(x, training=False)
  normal = LayerNormalization(16)(x)
  inner = wrapped.layer.filter_dense_layer(normal)
  expected = x + wrapped.layer.output_dense_layer(tf.nn.relu(inner))
  np.testing.assert_allclose(y, expected, atol=1e-5)


def test_the_cached_decoder_is_the_incremental_one():
  """Greedy, with dictionaries as caches, as upstream's own search decodes."""
  model = Transformer({**PARAMS, "beam_size": 1, "alpha": 0.0})
  bias = model_utils.get_padding_bias(SOURCE)
  encoded = model.encode(SOURCE, bias, training=False)
  cache = {f"layer_{n}": empty_cache(0) for n in range(2)}
  positions = model_utils.get_position_encoding(8, 16)
  ids, found, total = tf.zeros([2, 1], tf.int32), [], 0.0
  for t in range(8):
    x = model.embedding(ids) + positions[t]
    states = model.decoder_stack(
      x, encoded, tf.zeros([1]), bias, training=False, cache=cache
    )
    logits = model.embedding(states, mode="linear")[:, 0]
    total += tf.reduce_max(tf.nn.log_softmax(logits), axis=1)
    ids = tf.argmax(logits, axis=1, output_type=tf.int32)[:, None]
    found.append(ids)
  outputs = model([SOURCE], training=False)
  assert not np.any(np.concatenate(found, 1) == 1), "EOS: choose other weights"
  # The second sentence is one token shorter, and so is its limit.
  for row, length in enumerate((8, 7)):
    np.testing.assert_array_equal(
      np.concatenate(found, 1)[row, :length], outputs["outputs"][row, :length]
    )
  assert float(outputs["scores"][0]) == pytest.approx(float(total[0]), abs=1e-4)


def test_losses_and_layers_around_the_model():
  model = Transformer(PARAMS)
  logits = model([SOURCE, TARGET], training=True)
  loss, weights = padded_cross_entropy_loss(logits, TARGET, 0.1, 24)
  mean = tf.reduce_sum(loss) / tf.reduce_sum(weights)
  np.testing.assert_allclose(
    transformer_loss(logits, TARGET, 0.1, 24), mean, rtol=1e-6
  )
  layer = LossLayer(24, 0.1)
  assert layer([logits, TARGET]).shape == (2, 5, 24)
  np.testing.assert_allclose(layer.losses[0], mean, rtol=1e-6)
  assert MetricLayer(24)([logits, TARGET]).shape == (2, 5, 24)
  assert EmbeddingSharedWeights(24, 16)(SOURCE).shape == (2, 4, 16)
  y = Attention(16, 2, 0.1)(logits[..., :16], logits[..., :16], tf.zeros([1]))
  assert y.shape == (2, 5, 16)


def test_metrics_may_be_asked_for_in_the_dictionary():
  params = {**PARAMS, "enable_metrics_in_training": True}
  layers = create_model(params, is_train=True).layers
  assert "metrics" in [layer.name for layer in layers]


def test_an_unknown_dtype_is_refused():
  with pytest.raises(InputError, match="'float16', must be one of fp32, bf16"):
    create_model(PARAMS, is_train=True, dtype="float16")


def test_a_dictionary_trains_by_fit_and_translates(tmp_path):
  params = {**PARAMS, "layer_postprocess_dropout": 0.0}
  model = create_model(params, is_train=True)
  schedule = LearningRateSchedule(2.0, 16, 20)
  model.compile(keras.optimizers.Adam(schedule, 0.9, 0.997, epsilon=1e-9))
  history = model.fit([SOURCE, TARGET], epochs=30, verbose=0).history["loss"]
  assert history[-1] < 0.5 * history[0]
  path = str(tmp_path / "weights.weights.h5")
  model.save_weights(path)
  decoder = create_model(params, is_train=False)
  decoder.load_weights(path)
  outputs, scores = decoder.predict(SOURCE, verbose=0)
  assert outputs.shape == (2, 8) and scores.shape == (2,)
  expected = model.get_layer("transformer")([SOURCE])
  np.testing.assert_array_equal(outputs, expected["outputs"])


@pytest.mark.parametrize("static", [False, True])
def test_a_search_over_a_function_with_any_cache(static):
  """Each token's successor is the next number; after 5 comes EOS."""
  seen = []

  def symbols_to_logits(ids, i, cache):
    seen.append(ids.shape[1])
    newest = ids[:, -1]
    following = tf.where(newest >= 5, 1, newest + 1)
    cache["steps"] += 1
    return 5.0 * tf.one_hot(following, 8), cache

  search = SequenceBeamSearch(
    symbols_to_logits, 8, 2, 2, 0.0, 6, 1, padded_decode=static
  )
  ids, scores = search.search(tf.constant([2, 3]), {"steps": tf.zeros([2, 1])})
  assert ids.shape == (2, 2, 7) and scores.shape == (2, 2)
  assert ids[0, 0].numpy().tolist() == [2, 3, 4, 5, 1, 0, 0]
  assert ids[1, 0].numpy().tolist() == [3, 4, 5, 1, 0, 0, 0]
  assert set(seen) == ({1} if static else set(range(1, len(seen) + 1)))


def test_a_cache_may_grow_from_any_size():
  def symbols_to_logits(ids, i, cache):
    del i
    new = tf.cast(ids[:, -1:, None], tf.float32)
    cache = {"seen": tf.concat([cache["seen"], new], axis=1)}
    following = tf.cast(tf.reduce_sum(cache["seen"], axis=[1, 2]), tf.int32)
    return 5.0 * tf.one_hot(following % 8, 8), cache

  def search():
    made = SequenceBeamSearch(symbols_to_logits, 8, 1, 1, 0.0, 4, 1)
    return made.search(tf.constant([2]), {"seen": tf.ones([1, 1, 1])})[0]

  # 1 + 2 is 3, and 3 more is 6, and 6 more is 12; the best that ends is given.
  for ids in (search(), tf.function(search)()):
    assert ids[0, 0].numpy().tolist() == [2, 3, 6, 4, 1]


def test_arguments_bear_upstreams_names():
  for function, names in (
    (Subtokenizer.encode, "raw_string add_eos"),
    (Subtokenizer.decode, "subtokens"),
    (Subtokenizer, "vocab_file reserved_tokens master_char_set"),
    (LearningRateSchedule, "initial_learning_rate hidden_size warmup_steps"),
    (LearningRateSchedule.__call__, "global_step"),
    (Attention.call, "query_input source_input bias training cache"),
    (SelfAttention.call, "query_input bias training cache decode_loop_step"),
    (FeedForwardNetwork.call, "x training"),
    (EmbeddingSharedWeights.call, "inputs mode"),
    (
      EncoderStack.call,
      "encoder_inputs attention_bias inputs_padding training",
    ),
    (
      DecoderStack.call,
      "decoder_inputs encoder_outputs decoder_self_attention_bias "
      "attention_bias training cache decode_loop_step",
    ),
    (Transformer.call, "inputs training"),
    (Transformer.encode, "inputs attention_bias training"),
    (
      Transformer.decode,
      "targets encoder_outputs attention_bias training",
    ),
    (
      Transformer.predict,
      "encoder_outputs encoder_decoder_attention_bias training",
    ),
    (create_model, "params is_train"),
    (padded_cross_entropy_loss, "logits labels smoothing vocab_size"),
    (
      SequenceBeamSearch,
      "symbols_to_logits_fn vocab_size batch_size beam_size alpha "
      "max_decode_length eos_id",
    ),
    (
      translate.translate_file,
      "model params subtokenizer input_file output_file "
      "print_all_translations distribution_strategy",
    ),
    (compute_bleu.bleu_wrapper, "ref_filename hyp_filename case_sensitive"),
  ):
    found = [n for n in inspect.signature(function).parameters if n != "self"]
    expected = names.split()
    assert found[: len(expected)] == expected, function


def test_a_record_of_parameters_reads_as_a_dictionary():
  params = model_params.TransformerParams.of(PARAMS)
  assert params["hidden_size"] == 16 and "use_tpu" not in params
  assert params.get("use_tpu", 3) == 3 and params.get("alpha") == 0.6
  assert dict(params)["beam_size"] == 3
  with pytest.raises(KeyError):
    params["use_tpu"]
  assert create_optimizer(PARAMS).learning_rate == 0.0
  assert model_params.BASE_PARAMS["max_length"] == 256
  assert model_params.BASE_PARAMS["no_such_key"] is None


def test_subtokenizers(tmp_path):
  text, vocab_file = tmp_path / "text", tmp_path / "vocab"
  text.write_text("a test of a test\n" * 9, "utf-8")
  made = Subtokenizer.init_from_files(str(vocab_file), [str(text)], 40, 20)
  again = Subtokenizer.init_from_files(str(vocab_file), [], 40, 20)
  assert made.subtokens == again.subtokens
  assert made.subtokens[:2] == ["<pad>", "<EOS>"]
  whole = Subtokenizer(str(vocab_file), reserved_tokens=[])
  assert whole.subtokens == made.subtokens
  assert made.decode(made.encode("a test")) == "a test"
  vocab_file.write_text("'123_'\n'test'\n'ing_'\n", "utf-8")
  bare = Subtokenizer(str(vocab_file), reserved_tokens=[])
  assert bare.encode("testing 123") == [1, 2, 0]
  with pytest.raises(ValueError, match="master_char_set=.* is not supported"):
    Subtokenizer(str(vocab_file), master_char_set={"a"})


def test_official_bleu(tmp_path):
  one, other = tmp_path / "one", tmp_path / "other"
  one.write_text("Test 1 two 3\nmore tests!\n", "utf-8")
  other.write_text("test 1 two 3\nMore tests!\n", "utf-8")
  assert compute_bleu.bleu_wrapper(str(one), str(other)) == 100
  assert compute_bleu.bleu_wrapper(str(one), str(other), True) < 100
  assert compute_bleu.bleu_on_list(["a b c d"], ["A b c d"], False) == 100
  assert compute_bleu.bleu_tokenize("Test0, 1") == ["Test0", ",", "1"]


def test_sets_of_parameters_by_name():
  found = model_params.get_model_params("base", num_gpus=4)
  assert found["learning_rate_warmup_steps"] == 8000
  found["hidden_size"] = 3
  assert model_params.get_model_params("base", 4)["hidden_size"] == 512


@pytest.mark.parametrize("kind", ["model", "transformer"])
def test_files_and_lines_are_translated(kind, tmp_path):
  vocab_file, text = tmp_path / "vocab", tmp_path / "text"
  text.write_text("one two three\n\nthree\n", "utf-8")
  subtokenizer = Subtokenizer.init_from_files(
    str(vocab_file), [str(text)], 60, 30
  )
  params = {**PARAMS, "vocab_size": subtokenizer.vocab_size}
  model = create_model(params, is_train=False)
  if kind == "transformer":
    model = model.get_layer("transformer")
  out = str(tmp_path / "out")
  found = translate.translate_file(
    model,
    model_params.TransformerParams.of(params),
    subtokenizer,
    str(text),
    out,
  )
  assert len(found) == 3 and found[1] == ""
  assert (tmp_path / "out").read_text("utf-8") == "".join(
    f"{line}\n" for line in found
  )
  single = translate.translate_from_text(model, subtokenizer, "three")
  assert single == found[2] and single
  ids = subtokenizer.encode("three", add_eos=True)
  for outputs in (ids, [ids]):
    assert translate.translate_from_input(outputs, subtokenizer) == "three"
  with pytest.raises(AttributeError, match="no attribute 'translate_all'"):
    translate.translate_all  # noqa: B018
