"""Models and layers do what Keras and TensorFlow do with any other."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_variants import SMALL, SOURCE, TARGET, VARIANTS

from official_transformer.model.attention_layer import Attention
from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.model.ffn_layer import FeedForwardNetwork
from official_transformer.model.transformer import (
  DecoderLayer,
  DecoderStack,
  EncoderLayer,
  EncoderStack,
  LayerNormResidualWrapper,
  Transformer,
  create_model,
)
from official_transformer.model.variants import (
  LearnedPositions,
  PostNormWrapper,
)
from official_transformer.ops.dropout import Dropout
from official_transformer.training.step.optimizer import (
  LearningRateSchedule,
  create_optimizer,
)

PARAMS = dataclasses.replace(
  SMALL,
  num_hidden_layers=1,
  layer_postprocess_dropout=0.0,
  attention_dropout=0.0,
  relu_dropout=0.0,
  learning_rate_warmup_steps=20,
)
# What a variant's own values are left out of.
SIZES = (
  "num_hidden_layers",
  "layer_postprocess_dropout",
  "attention_dropout",
  "relu_dropout",
)
BATCH = [tf.constant(SOURCE), tf.constant(TARGET)]


def variant(name):
  usual = dataclasses.asdict(PARAMS)
  if name == "target_space":
    return dataclasses.replace(PARAMS, target_space_embedding=True)
  return dataclasses.replace(
    PARAMS, **{**VARIANTS[name], **{key: usual[key] for key in SIZES}}
  )


@pytest.mark.parametrize("name", ["official", "notebook", "two_vocabularies"])
def test_models_are_saved_and_loaded(name, tmp_path):
  params = variant(name)
  trainer = create_model(params, is_train=True, with_metrics=True)
  trainer.compile(create_optimizer(params))
  trainer.fit(BATCH, verbose=0)
  trainer.save(tmp_path / "trainer.keras")
  again = keras.models.load_model(tmp_path / "trainer.keras")
  np.testing.assert_array_equal(again(BATCH), trainer(BATCH))
  assert [w.path for w in again.weights] == [w.path for w in trainer.weights]
  losses = [m.fit(BATCH, verbose=0).history["loss"] for m in (again, trainer)]
  np.testing.assert_allclose(*losses, rtol=1e-5)

  decoder = create_model(params, is_train=False)
  weights = trainer.get_layer("transformer").get_weights()
  decoder.get_layer("transformer").set_weights(weights)
  decoder.save(tmp_path / "decoder.keras")
  again = keras.models.load_model(tmp_path / "decoder.keras")
  for one, other in zip(again(SOURCE), decoder(SOURCE), strict=True):
    np.testing.assert_array_equal(one, other)


def test_half_precision_stays_what_it_is_when_it_is_loaded(tmp_path):
  model = create_model(PARAMS, is_train=True, dtype="bf16")
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  assert again(BATCH).dtype == tf.bfloat16
  np.testing.assert_array_equal(
    tf.cast(again(BATCH), tf.float32), tf.cast(model(BATCH), tf.float32)
  )


def test_a_model_is_cloned_and_summed_up():
  model = create_model(PARAMS, is_train=True)
  clone = keras.models.clone_model(model)
  clone.set_weights(model.get_weights())
  np.testing.assert_array_equal(clone(BATCH), model(BATCH))
  lines = []
  model.summary(print_fn=lambda line, **_: lines.append(line))
  assert f"{model.count_params():,}" in "\n".join(lines)


@pytest.mark.parametrize(
  "name", ["official", "notebook", "two_vocabularies", "target_space"]
)
def test_tensorflows_checkpoints_restore_every_variable(name, tmp_path):
  params = variant(name)
  model, other = (create_model(params, is_train=True) for _ in range(2))
  for number, variable in enumerate(model.weights):
    variable.assign(tf.fill(variable.shape, float(number + 1)))
  path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
  tf.train.Checkpoint(model=other).restore(path).assert_consumed()
  for one, another in zip(model.weights, other.weights, strict=True):
    np.testing.assert_array_equal(one, another, err_msg=one.path)


def test_three_ways_of_training_come_to_one_loss():
  """`fit` with our optimizer and with Keras' own, and a loop of one's own."""
  keras.utils.set_random_seed(1)
  models = [create_model(PARAMS, is_train=True) for _ in range(3)]
  for model in models[1:]:
    model.set_weights(models[0].get_weights())
  models[0].compile(create_optimizer(PARAMS))
  schedule = LearningRateSchedule(2.0, 16, 20)
  models[1].compile(keras.optimizers.Adam(schedule, 0.9, 0.997, epsilon=1e-9))
  losses = [
    model.fit(BATCH, epochs=8, batch_size=3, shuffle=False, verbose=0).history[
      "loss"
    ]
    for model in models[:2]
  ]
  optimizer = create_optimizer(PARAMS)
  optimizer.build(models[2].trainable_variables)
  own = []
  for _ in range(8):
    with tf.GradientTape() as tape:
      models[2](BATCH, training=True)
      loss = tf.add_n(models[2].losses)
    gradients = tape.gradient(
      loss, [v.value for v in models[2].trainable_variables]
    )
    optimizer.apply_gradients(
      zip(gradients, models[2].trainable_variables, strict=True)
    )
    own.append(float(loss))
  np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
  np.testing.assert_allclose(own, losses[0], rtol=1e-4)
  assert own[-1] < 0.8 * own[0]


def test_the_model_of_this_projects_trainings_has_the_same_loss():
  transformer = build_transformer(PARAMS)
  fused = create_training_model(transformer)
  plain = create_model(PARAMS, is_train=True)
  plain.set_weights(transformer.get_weights())
  np.testing.assert_allclose(plain(BATCH), fused(BATCH), atol=1e-5)
  np.testing.assert_allclose(plain.losses, fused.losses, rtol=1e-6)


@pytest.mark.parametrize(
  "make",
  [
    lambda: LayerNormResidualWrapper(
      Attention(16, 2, 0.1, name="attention"), PARAMS, name="wrapper"
    ),
    lambda: PostNormWrapper(
      FeedForwardNetwork(16, 24, 0.1, name="network"), PARAMS, name="wrapper"
    ),
    lambda: EncoderLayer(PARAMS, name="layer"),
    lambda: DecoderLayer(PARAMS, name="layer"),
    lambda: EncoderStack(PARAMS, name="stack"),
    lambda: DecoderStack(PARAMS, name="stack", dtype="bfloat16"),
    lambda: LearnedPositions(9, 16, name="positions"),
    lambda: Dropout(0.1, name="dropout"),
    lambda: Transformer(PARAMS, name="transformer", trainable=False),
  ],
)
def test_layers_are_made_of_their_configs(make):
  layer = make()
  config = layer.get_config()
  again = type(layer).from_config(config)
  assert again.get_config() == config
  for made in (layer, again):
    made.build(None)
  assert [w.path for w in again.weights] == [w.path for w in layer.weights]
  assert again.trainable == layer.trainable
  assert again.dtype_policy == layer.dtype_policy


def test_frozen_layers_stay_frozen(tmp_path):
  model = create_model(PARAMS, is_train=True)
  model.get_layer("transformer").trainable = False
  assert not keras.models.clone_model(model).trainable_variables
  model.save(tmp_path / "frozen.keras")
  again = keras.models.load_model(tmp_path / "frozen.keras")
  assert not again.trainable_variables and again.weights


def test_attention_without_a_bias_sees_everything():
  layer = Attention(16, 2, 0.0)
  x = tf.random.normal([2, 4, 16], seed=1)
  np.testing.assert_array_equal(layer(x, x), layer(x, x, tf.zeros([1])))
