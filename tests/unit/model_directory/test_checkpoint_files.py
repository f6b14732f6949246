import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.model.transformer import create_model
from official_transformer.model_directory.checkpoint_files import (
  AVERAGED_STEPS,
  MOVING_AVERAGE,
  OPTIMIZER,
  WEIGHTS,
  DamagedCheckpointError,
  check_bundle,
  mean_weights,
  problem_of_weights,
  read_integers,
  read_tensors,
  read_weights,
  restore_variables,
)
from official_transformer.model_directory.checkpoint_writing import (
  to_storage,
  write_bundle,
  write_checkpoint,
  write_only_checkpoint,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  ModelDirectory,
)
from official_transformer.training.checkpoints import (
  CheckpointManager,
  read_progress,
)
from official_transformer.training.initial_weights import copy_weights
from official_transformer.training.step.optimizer import create_optimizer


@pytest.fixture
def saved(tmp_path, undropped):
  """A directory with one checkpoint, and the model it was made from."""
  model = create_model(undropped, is_train=True)
  optimizer = create_optimizer(undropped)
  optimizer.build(model.trainable_variables)
  directory = ModelDirectory(str(tmp_path))
  groups = {WEIGHTS: model.weights, OPTIMIZER: optimizer.variables}
  CheckpointManager(directory, groups, 0).save(step=7, seed=3)
  return directory, model


def test_stored_keys_equal_the_weights(saved):
  directory, model = saved
  stored = {
    name.removeprefix("weights/"): shape
    for name, shape in tf.train.list_variables(directory.latest_checkpoint())
    if name.startswith("weights/")
  }
  assert stored == {w.path: list(w.shape) for w in model.weights}
  assert read_progress(directory.latest_checkpoint()) == (7, 3)


def test_training_and_decoding_models_agree_after_loading(saved, undropped):
  directory, model = saved
  source = tf.constant([[5, 6, 1]])
  target = tf.constant([[7, 8, 9, 1]])
  expected = model([source, target]).numpy()
  for is_train in (True, False):
    fresh = create_model(undropped, is_train=is_train)
    restore_variables(directory.latest_checkpoint(), WEIGHTS, fresh.weights)
    transformer = fresh.get_layer("transformer")
    np.testing.assert_array_equal(transformer([source, target]), expected)


def test_every_difference_is_listed_and_nothing_assigned(saved, undropped):
  directory, _ = saved
  other = create_model(
    dataclasses.replace(undropped, filter_size=48, num_hidden_layers=3), True
  )
  before = [w.numpy() for w in other.weights]
  with pytest.raises(InputError) as caught:
    restore_variables(directory.latest_checkpoint(), WEIGHTS, other.weights)
  message = str(caught.value)
  assert "missing: weights/transformer/encoder_stack/layer_2/ffn" in message
  assert "stored (16, 32), needed (16, 48)" in message
  for old, new in zip(before, other.weights, strict=True):
    np.testing.assert_array_equal(old, new)


def test_a_damaged_checkpoint_is_one_clear_error(saved, undropped):
  directory, model = saved
  prefix = directory.latest_checkpoint()
  with open(prefix + ".data-00000-of-00001", "r+b") as stream:
    stream.truncate(100)
  with pytest.raises(InputError, match="damaged"):
    restore_variables(prefix, WEIGHTS, model.weights)
  with open(prefix + ".data-00000-of-00001", "r+b") as stream:
    stream.truncate(5)
  with pytest.raises(InputError, match="damaged"):
    read_progress(prefix)
  with open(prefix + ".index", "wb") as stream:
    stream.write(b"nonsense")
  with pytest.raises(InputError, match="damaged"):
    restore_variables(prefix, WEIGHTS, model.weights)


def checkpoints(tmp_path, *values, dtype="float32"):
  """A directory with a checkpoint of each value, in steps 1, 2 and so on."""
  directory = ModelDirectory(str(tmp_path))
  for step, value in enumerate(values, start=1):
    tensors = {"weights/a": np.array(value, dtype), "optimizer/a": 5.0}
    write_checkpoint(directory, step, tensors)
  return directory, [
    directory.checkpoint_prefix(n + 1) for n in range(len(values))
  ]


@pytest.mark.parametrize(
  ("value", "said"),
  [
    (np.array([1.0, np.nan]), "1 numbers that are not finite"),
    (np.array([1e300, 1.0]), "1 numbers that are not finite"),
    (np.array([np.inf] * 2, np.float16), "2 numbers that are not finite"),
    (np.array([b"x", b"y"], object), "no real numbers, but object"),
    (np.array([1j, 1.0]), "no real numbers, but complex"),
    (np.array([1, 2]), "no real numbers, but int64"),
  ],
)
@pytest.mark.parametrize("group", [WEIGHTS, MOVING_AVERAGE])
def test_what_is_no_finite_number_is_refused_everywhere(
  tmp_path, value, said, group
):
  directory = ModelDirectory(str(tmp_path))
  name, prefix = f"{group}/a", directory.checkpoint_prefix(1)
  write_checkpoint(directory, 1, {"weights/a": np.ones(2), name: value})
  uses = [
    check_bundle,
    lambda prefix: read_weights(prefix, [name]),
    lambda prefix: copy_weights(prefix, ModelDirectory(f"{tmp_path}/other")),
  ]
  if group == WEIGHTS:
    uses.append(lambda prefix: mean_weights([prefix]))
  for use in uses:
    with pytest.raises(DamagedCheckpointError, match=f"{name} holds {said}"):
      use(prefix)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_halves_of_numbers_are_weights(tmp_path, dtype):
  value = tf.constant([1.0, 0.5], dtype)
  assert problem_of_weights(value.numpy()) is None
  directory = ModelDirectory(str(tmp_path))
  write_checkpoint(directory, 1, {"weights/a": value})
  found = read_weights(directory.checkpoint_prefix(1), ["weights/a"])
  assert found["weights/a"].dtype == np.float32


@pytest.mark.parametrize(
  "value",
  [np.array([b"a"], object), [-1], [[1, 2]], np.zeros(0, np.int64), 1.5],
)
def test_steps_are_whole_numbers(tmp_path, value):
  directory = ModelDirectory(str(tmp_path))
  write_checkpoint(directory, 1, {AVERAGED_STEPS: tf.constant(value)})
  with pytest.raises(DamagedCheckpointError, match="no number of steps"):
    read_integers(directory.checkpoint_prefix(1), AVERAGED_STEPS)


def test_the_mean_of_weights_by_hand(tmp_path):
  _, prefixes = checkpoints(tmp_path, [1.0, 4.0], [2.0, -4.0], [6.0, 3.0])
  mean = mean_weights(prefixes)
  assert list(mean) == ["weights/a"]
  assert mean["weights/a"].dtype == np.float32
  np.testing.assert_array_equal(mean["weights/a"], [3.0, 1.0])


def test_many_half_precision_weights_lose_nothing_on_the_way(tmp_path):
  # Summed in float16, 2049 times 1 would stay at 2048.
  _, (prefix,) = checkpoints(tmp_path, [1.0], dtype="float16")
  mean = mean_weights([prefix] * 2049)["weights/a"]
  np.testing.assert_array_equal(mean, [1.0])


@pytest.mark.parametrize(
  ("storage", "step"), [("fp16", 2.0**-11), ("bf16", 2.0**-8), ("fp32", 0.0)]
)
def test_weights_in_half_the_space_are_read_as_float32(tmp_path, storage, step):
  values = np.random.default_rng(1).normal(size=50).astype("float32")
  prefix = str(tmp_path / "half")
  write_bundle(prefix, to_storage({"weights/a": values}, storage))
  found = read_tensors(prefix, ["weights/a"])["weights/a"]
  assert found.dtype == np.float32
  assert np.abs(found / values - 1).max() <= step
  assert (found == values).all() == (storage == "fp32")
  mean = mean_weights([prefix])["weights/a"]
  np.testing.assert_array_equal(mean, found)


def test_numbers_too_large_for_their_storage_are_refused():
  large = {"weights/a": np.array([1.0, -70000.0], np.float32)}
  with pytest.raises(InputError, match="weights/a has numbers that are too"):
    to_storage(large, "fp16")
  assert to_storage(large, "bf16")


def test_checkpoints_of_different_models_have_no_mean(tmp_path):
  _, prefixes = checkpoints(tmp_path, [1.0, 4.0], [2.0])
  with pytest.raises(InputError, match=r"step-2.*different models"):
    mean_weights(prefixes)


def test_a_kind_of_which_there_is_one_keeps_one(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  for step in (3, 7, 5):
    write_only_checkpoint(directory, step, {"weights/a": 1.0 * step}, AVERAGE)
    assert directory.checkpoint_steps(AVERAGE) == [step]
  assert directory.choose_checkpoints("average") == (AVERAGE, [5])
  assert directory.checkpoint_steps() == []


@pytest.mark.parametrize("value", [np.array([b"x"], object), np.array([1j])])
def test_a_state_that_is_no_number_is_damage(tmp_path, value):
  directory = ModelDirectory(str(tmp_path))
  write_checkpoint(directory, 1, {f"{OPTIMIZER}/m": value})
  variable = keras.Variable([0.0], name="m")
  with pytest.raises(DamagedCheckpointError, match="m holds no numbers"):
    restore_variables(directory.checkpoint_prefix(1), OPTIMIZER, [variable])
