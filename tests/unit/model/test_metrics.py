import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import metrics
from official_transformer.model.embedding_layer import EmbeddingSharedWeights

LOGITS = np.random.default_rng(0).normal(size=(2, 3, 7)).astype("float32") * 3
LABELS = np.array([[2, 5, 1], [6, 1, 0]])


def one_hot_loss(logits, labels, smoothing):
  """The loss as its definition says, with the target laid out."""
  size = logits.shape[-1]
  target = np.full(logits.shape, smoothing / (size - 1))
  np.put_along_axis(target, labels[..., None], 1 - smoothing, axis=-1)
  log_z = np.log(np.exp(logits.astype("float64")).sum(-1, keepdims=True))
  entropy = -(target * np.log(target + 1e-20)).sum(-1)
  return -(target * (logits - log_z)).sum(-1) - entropy


def test_batch_loss_is_the_mean_over_tokens_that_are_not_padding():
  per_token = one_hot_loss(LOGITS, LABELS, 0.1)
  expected = per_token[LABELS != 0].mean()
  actual = metrics.transformer_loss(LOGITS, tf.constant(LABELS), 0.1)
  assert math.isclose(float(actual), expected, rel_tol=1e-5)


def test_batch_of_padding_costs_nothing():
  loss = metrics.transformer_loss(LOGITS, tf.zeros([2, 3], tf.int64), 0.1)
  assert float(loss) == 0.0


def test_metric_layer_by_hand():
  # Likeliest first: token 3, 2, 1; labels: right, second, padding.
  logits = np.tile(np.arange(4, dtype="float32"), (2, 3, 1))
  labels = np.array([[3, 2, 0], [3, 3, 0]])
  layer = metrics.MetricLayer()
  np.testing.assert_array_equal(layer([logits, labels]), logits)
  values = {m.name: float(m.result()) for m in layer.metrics}
  log_z = math.log(sum(map(math.exp, range(4))))
  assert values["accuracy"] == 0.75
  assert values["accuracy_top5"] == 1.0
  assert values["accuracy_per_sequence"] == 0.5
  assert math.isclose(
    values["neg_log_perplexity"], (3 + 2 + 3 + 3) / 4 - log_z, rel_tol=1e-5
  )


def states_and_table():
  rng = np.random.default_rng(1)
  states = rng.normal(size=(2, 3, 4)).astype("float32")
  embedding = EmbeddingSharedWeights(7, 4)
  embedding.build(None)
  return states, embedding


def test_loss_layer_adds_the_loss_to_a_functional_model():
  states, embedding = states_and_table()
  inputs, labels = keras.Input([3, 4]), keras.Input([3], dtype="int64")
  model = keras.Model(
    [inputs, labels], metrics.LossLayer(0.1, embedding)([inputs, labels])
  )
  logits = model([states, LABELS])
  np.testing.assert_allclose(
    logits, states @ embedding.table.numpy().T, atol=1e-6
  )
  (loss,) = model.losses
  expected = one_hot_loss(logits.numpy(), LABELS, 0.1)[LABELS != 0].mean()
  assert math.isclose(float(loss), expected, rel_tol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_loss_layer_is_the_same_for_static_and_dynamic_shapes(compiled):
  states, embedding = states_and_table()
  layer = metrics.LossLayer(0.1, embedding)

  def loss_and_gradients(states, labels):
    with tf.GradientTape() as tape:
      tape.watch(states)
      layer([states, labels])
      (loss,) = layer.losses
    return loss, tape.gradient(loss, [states, embedding.table.value])

  shape = [2, 3] if compiled else [None, None]
  traced = tf.function(
    loss_and_gradients,
    input_signature=[
      tf.TensorSpec([*shape, 4]),
      tf.TensorSpec(shape, tf.int64),
    ],
    jit_compile=compiled,
    autograph=False,
  )
  expected = loss_and_gradients(tf.constant(states), tf.constant(LABELS))
  actual = traced(states, LABELS)
  for a, b in zip(
    tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True
  ):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_batch_of_padding_has_no_loss_and_no_gradient():
  states, embedding = states_and_table()
  layer = metrics.LossLayer(0.1, embedding)

  @tf.function(
    input_signature=[tf.TensorSpec([None, None], tf.int64)], autograph=False
  )
  def gradient(labels):
    with tf.GradientTape() as tape:
      layer([tf.constant(states), labels])
      (loss,) = layer.losses
    return loss, tape.gradient(loss, embedding.table.value)

  loss, table = gradient(np.zeros([2, 3], "int64"))
  assert float(loss) == 0.0
  np.testing.assert_array_equal(table, np.zeros([7, 4]))
