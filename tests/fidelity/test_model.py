"""The model, its loss, its training and its search, against upstream's.

The numbers in `fixtures/` come from upstream's own code; `make_fixtures.py`
says which and how. Tolerances: float32 to 1e-5 of an array's largest
magnitude, gradients and changes of weights to 1e-4 of their norm, ids exact.
"""

import dataclasses
import pathlib

import defects
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.importing import formats
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.model import metrics, model_utils
from official_transformer.model.building import build_transformer
from official_transformer.model.transformer import (
  create_model,
)
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  restore_variables,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import PARAM_SETS
from official_transformer.search.beam_search import (
  BeamSearch,
  DecoderState,
)
from official_transformer.text.vocabulary_files import VocabFiles
from official_transformer.training.step.optimizer import (
  LearningRateSchedule,
  create_optimizer,
)
from official_transformer.training.step.training_step import TrainingStep

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
SEARCHES = [(beam, alpha) for beam in (1, 4, 8) for alpha in (0.0, 0.6, 1.0)]
UNDROPPED = {
  "layer_postprocess_dropout": 0.0,
  "attention_dropout": 0.0,
  "relu_dropout": 0.0,
  "learning_rate_warmup_steps": 2,
  "extra_decode_length": 12,
  "num_heads": 4,
}


def load(name):
  with np.load(FIXTURES / f"{name}.npz") as arrays:
    return dict(arrays)


def under(arrays, group):
  """Returns the arrays of a group by the rest of their names."""
  prefix = group + "/"
  return {
    name.removeprefix(prefix): value
    for name, value in arrays.items()
    if name.startswith(prefix)
  }


def assert_close(actual, expected, tolerance=1e-5):
  """Compares to a share of the expected array's largest magnitude."""
  actual, expected = np.asarray(actual), np.asarray(expected)
  assert actual.shape == expected.shape
  largest = np.abs(expected).max()
  assert np.abs(actual - expected).max() <= tolerance * largest


def assert_close_in_norm(actual, expected, tolerance=1e-4):
  """Compares to a share of the expected array's norm."""
  actual, expected = np.asarray(actual), np.asarray(expected)
  assert actual.shape == expected.shape
  distance = np.linalg.norm(actual - expected)
  assert distance <= tolerance * np.linalg.norm(expected)


def write_checkpoint(prefix, tensors):
  tf.raw_ops.SaveV2(
    prefix=str(prefix),
    tensor_names=list(tensors),
    shape_and_slices=[""] * len(tensors),
    tensors=[tf.constant(t) for t in tensors.values()],
  )


def write_vocabulary(path, size):
  entries = ["<pad>", "<EOS>", *"\\_u;0123456789", *"abcdefghijklmnopqrstvwxyz"]
  path.write_text("".join(f"'{e}'\n" for e in entries[:size]))
  return path


def import_fixture(arrays, directory, format_name, names=None):
  """Writes a fixture's weights as upstream would have; imports them."""
  tensors = under(arrays, "weights")
  for name, shape in names or []:
    # The optimizer's variables and whatever else is no weight.
    dimensions = [int(n) for n in shape.split("x")] if shape else []
    tensors.setdefault(name, np.zeros(dimensions, np.float32))
  write_checkpoint(directory / "cp.ckpt", tensors)
  request = ImportRequest(
    format_name,
    str(directory / "cp.ckpt"),
    VocabFiles.joint(str(write_vocabulary(directory / "vocab", 39))),
    param_set=None,
    overrides=UNDROPPED,
    target_space_id=None,
  )
  import_checkpoint(request, str(directory / "model"))
  model = ModelDirectory(str(directory / "model"))
  return model.read().params, model.latest_checkpoint()


@pytest.fixture(scope="module")
def legacy():
  return load("legacy_model")


@pytest.fixture(scope="module")
def restored(legacy, tmp_path_factory):
  """The parameters and the checkpoint of upstream's model, imported."""
  directory = tmp_path_factory.mktemp("legacy")
  names = zip(legacy["names/fit"], legacy["shapes/fit"], strict=True)
  return import_fixture(legacy, directory, "v2", names)


def build(restored):
  params, checkpoint = restored
  transformer = build_transformer(params)
  restore_variables(checkpoint, WEIGHTS, transformer.weights)
  return transformer


def our_paths(arrays):
  """Returns upstream's arrays by the paths of our variables."""
  found = {}
  for name, value in arrays.items():
    for placement in formats.V2.place(name):
      if value.ndim == 3 and "output" in name:
        value = value.reshape(-1, value.shape[-1])
      elif value.ndim == 3:
        value = value.reshape(value.shape[0], -1)
      found["transformer/" + placement.path] = value
  return found


def check_positions(restored, legacy):
  for name, expected in under(legacy, "layers/positions").items():
    length, size = map(int, name.split("/"))
    signal = model_utils.get_position_encoding(length, size)
    assert_close(signal, expected)


def check_biases(restored, legacy):
  frozen = under(legacy, "layers")
  np.testing.assert_array_equal(
    model_utils.get_padding_bias(frozen["ids"]), frozen["padding_bias"]
  )
  np.testing.assert_array_equal(
    model_utils.get_decoder_self_attention_bias(5), frozen["causal_bias"]
  )


def check_layers(restored, legacy):
  frozen = under(legacy, "layers")
  transformer = build(restored)
  x = tf.constant(frozen["x"])
  encoder = transformer.encoder_stack.layers[0]
  decoder = transformer.decoder_stack.layers[0]
  bias = model_utils.get_padding_bias(frozen["ids"])
  source_bias = model_utils.get_padding_bias(frozen["source_ids"])
  assert_close(encoder.self_attention.layer(x, bias), frozen["self_attention"])
  assert_close(
    decoder.cross_attention.layer(x, frozen["source"], source_bias),
    frozen["cross_attention"],
  )
  assert_close(encoder.ffn.layer(x), frozen["feed_forward"])


def check_stacks(restored, legacy):
  frozen = under(legacy, "layers")
  transformer = build(restored)
  small = tf.constant(frozen["small"])
  bias = model_utils.get_padding_bias(frozen["ids"])
  source_bias = model_utils.get_padding_bias(frozen["source_ids"])
  causal = model_utils.get_decoder_self_attention_bias(5)
  stack = transformer.encoder_stack
  assert_close(stack.layers[0].ffn(small), frozen["wrapped_feed_forward"])
  assert_close(stack.output_normalization(small), frozen["encoder_norm"])
  assert_close(stack(small, bias), frozen["encoder_stack"])
  assert_close(
    transformer.decoder_stack(small, frozen["source"], causal, source_bias),
    frozen["decoder_stack"],
  )


def check_logits(restored, legacy):
  logits = build(restored)([legacy["inputs"], legacy["targets"]])
  assert_close(logits, legacy["logits"])


def check_loss(restored, legacy):
  logits, targets = legacy["logits"], legacy["targets"]
  for smoothing in (0.0, 0.1):
    losses, _ = metrics.padded_cross_entropy_loss(logits, targets, smoothing)
    assert_close(losses, legacy[f"loss/{smoothing}/tokens"])
    assert_close(
      metrics.transformer_loss(logits, targets, smoothing),
      legacy[f"loss/{smoothing}/total"],
    )


def check_gradients(restored, legacy):
  params, checkpoint = restored
  model = create_model(params, is_train=True)
  restore_variables(checkpoint, WEIGHTS, model.weights)
  with tf.GradientTape() as tape:
    model([legacy["inputs"], legacy["targets"]], training=True)
    loss = tf.add_n(model.losses)
  variables = model.trainable_variables
  gradients = tape.gradient(loss, [v.value for v in variables])
  expected = our_paths(under(legacy, "gradients"))
  assert len(variables) == len(expected)
  for variable, gradient in zip(variables, gradients, strict=True):
    assert_close_in_norm(
      tf.convert_to_tensor(gradient), expected[variable.path]
    )


def check_search(restored, legacy):
  params, checkpoint = restored
  frozen = under(legacy, "search")
  for beam_size, alpha in SEARCHES:
    transformer = build(
      (
        dataclasses.replace(params, beam_size=beam_size, alpha=alpha),
        checkpoint,
      )
    )
    compare_search(
      transformer.beam_search(legacy["inputs"]),
      [
        under(frozen, f"{row}/{beam_size}/{alpha}")
        for row in range(len(legacy["inputs"]))
      ],
    )


def check_toy_search(restored, legacy):
  frozen = load("toy_search")
  tables = tf.constant(frozen["tables"])
  limit = int(frozen["limit"])
  sentences, _, vocab_size, _ = tables.shape
  for beam_size, alpha in SEARCHES:

    def step(ids, index, state, beam_size=beam_size):
      # Sentences leave; those that have not are told by the state.
      rows = tf.repeat(state.per_sentence, beam_size)
      where = tf.stack([rows, tf.fill(tf.shape(rows), index), ids], axis=1)
      return tf.gather_nd(tables, where), state

    search = BeamSearch(step, vocab_size, beam_size, alpha)
    result = search.search(
      tf.zeros([sentences], tf.int32),
      tf.fill([sentences], limit),
      DecoderState(per_beam=[], per_sentence=tf.range(sentences)),
    )
    compare_search(
      result,
      [under(frozen, f"{row}/{beam_size}/{alpha}") for row in range(sentences)],
    )


def compare_search(result, expected):
  """Compares hypotheses with those of upstream, each sentence by itself.

  Upstream fills a beam of which not all hypotheses finished with others of
  score -1e7; ours are empty there.
  """
  for ids, scores, finished, want in zip(
    result.ids.numpy(),
    result.scores.numpy(),
    result.finished.numpy(),
    expected,
    strict=True,
  ):
    real = want["scores"] > -1e6
    assert real.any()
    if finished.any():
      np.testing.assert_array_equal(finished, real)
    # Upstream's rows begin with the start symbol and end with its search.
    for row in np.flatnonzero(real):
      mine, theirs = ids[row], want["ids"][row][1:]
      np.testing.assert_array_equal(mine[: len(theirs)], theirs)
      assert not mine[len(theirs) :].any()
    assert_close(scores[real], want["scores"][real])


CHECKS = {
  check.__name__: check
  for check in (
    check_positions,
    check_biases,
    check_layers,
    check_stacks,
    check_logits,
    check_loss,
    check_gradients,
    check_search,
    check_toy_search,
  )
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_equals_upstream(check, restored, legacy):
  check(restored, legacy)


def test_weights_move_as_upstreams(restored, legacy):
  """Five updates by Adam, the learning rate warming up over two."""
  params, checkpoint = restored
  model = create_model(params, is_train=True)
  restore_variables(checkpoint, WEIGHTS, model.weights)
  before = {v.path: v.numpy() for v in model.trainable_variables}
  optimizer = create_optimizer(params)
  optimizer.build(model.trainable_variables)
  step = TrainingStep(model, optimizer, seed=1)
  losses = [step(*map(tf.constant, batch)).loss for batch in
            legacy["steps/batches"]]  # fmt: skip
  assert_close(losses, legacy["steps/losses"])
  expected = our_paths(under(legacy, "changes"))
  assert expected.keys() == before.keys()
  for variable in model.trainable_variables:
    change = variable.numpy() - before[variable.path]
    assert np.linalg.norm(change) > 1e-3
    assert_close_in_norm(change, expected[variable.path])


def test_learning_rates_equal_upstreams():
  frozen = load("learning_rates")
  for name, expected in under(frozen, "rates").items():
    hidden_size, warmup = map(int, name.split("/"))
    assert hidden_size in {p.hidden_size for p in PARAM_SETS.values()}
    schedule = LearningRateSchedule(2.0, hidden_size, warmup)
    assert_close([schedule(step) for step in frozen["steps"]], expected)


def test_checkpoints_of_both_training_loops_import_alike(
  restored, legacy, tmp_path
):
  names = list(legacy["names/ctl"])
  assert all(
    name.startswith(("model/", "optimizer/", "save_counter", "_CHECK"))
    for name in names
  )
  looped = {
    name: value
    for name, value in legacy.items()
    if not name.startswith("weights/")
  } | {
    f"weights/model/{name}": value
    for name, value in under(legacy, "weights").items()
  }
  assert {f"model/{n}" for n in under(legacy, "weights")} <= set(names)
  params, checkpoint = import_fixture(
    looped, tmp_path, "v2", zip(names, legacy["shapes/ctl"], strict=True)
  )
  assert params == restored[0]
  check_logits((params, checkpoint), legacy)


@pytest.mark.parametrize(
  ("fixture", "format_name"), [("v1_model", "v1"), ("early_v2_model", "v2")]
)
def test_first_versions(fixture, format_name, tmp_path):
  """They start from a zero vector, and have two-dimensional kernels."""
  frozen = load(fixture)
  names = None
  if "names" in frozen:
    names = zip(frozen["names"], frozen["shapes"], strict=True)
  params, checkpoint = import_fixture(frozen, tmp_path, format_name, names)
  assert params.start_symbol == "zero"
  check_logits((params, checkpoint), frozen)
  frozen_searches = under(frozen, "search")
  assert bool(frozen_searches) == (fixture == "v1_model")
  for beam_size, alpha in SEARCHES if frozen_searches else []:
    transformer = build(
      (
        dataclasses.replace(params, beam_size=beam_size, alpha=alpha),
        checkpoint,
      )
    )
    result = transformer.beam_search(frozen["inputs"])
    for row in range(len(frozen["inputs"])):
      want = under(frozen_searches, f"{row}/{beam_size}/{alpha}")
      best = result.ids[row, 0].numpy()
      length = len(want["ids"])
      np.testing.assert_array_equal(best[:length], want["ids"])
      assert not best[length:].any()
      assert_close(result.scores[row, 0], want["scores"])


# -- What the comparisons would notice: each change must make one fail.


@pytest.mark.parametrize(
  ("change", "check"),
  [
    (defects.sines_and_cosines_swapped, check_positions),
    (defects.larger_epsilon, check_stacks),
    (defects.twice_the_epsilon, check_stacks),
    (defects.norm_after_the_sum, check_stacks),
    (defects.norm_after_the_sum, check_logits),
    (defects.residual_order, check_logits),
    (defects.unscaled_queries, check_layers),
    (defects.unscaled_queries, check_logits),
    (defects.no_padding_mask, check_logits),
    (defects.no_causal_mask, check_logits),
    (defects.smoothing_denominator, check_loss),
    (defects.smoothing_denominator, check_gradients),
    (defects.length_norm, check_toy_search),
    (defects.length_norm, check_search),
    (defects.eos_counting, check_toy_search),
  ],
)
def test_a_change_is_noticed(change, check, monkeypatch, restored, legacy):
  check(restored, legacy)
  change(monkeypatch)
  with pytest.raises(AssertionError):
    check(restored, legacy)
