import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import building, metrics
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
  layer = metrics.MetricLayer(4)
  np.testing.assert_array_equal(layer([logits, labels]), logits)
  values = {m.name: float(m.result()) for m in layer.metrics}
  layer([logits[:1], labels[:1]])
  accuracy = layer.means["accuracy_per_sequence"].result()
  assert float(accuracy) == pytest.approx(1 / 3)  # Of three sequences.
  log_z = math.log(sum(map(math.exp, range(4))))
  assert values["accuracy"] == 0.75
  assert values["accuracy_top5"] == 1.0
  assert values["accuracy_per_sequence"] == 0.5
  assert math.isclose(
    values["neg_log_perplexity"], (3 + 2 + 3 + 3) / 4 - log_z, rel_tol=1e-5
  )


def test_logits_and_labels_of_other_lengths_are_padded():
  longer = np.pad(LABELS, [[0, 0], [0, 2]])
  for logits, labels in (
    (LOGITS, longer),
    (np.pad(LOGITS, [[0, 0], [0, 2], [0, 0]]), LABELS),
  ):
    losses, weights = metrics.padded_cross_entropy_loss(
      tf.constant(logits), tf.constant(labels), 0.1, 7
    )
    np.testing.assert_allclose(
      losses[:, :3],
      one_hot_loss(LOGITS, LABELS, 0.1) * (LABELS != 0),
      rtol=1e-5,
    )
    np.testing.assert_array_equal(weights, longer != 0)
    right, _ = metrics.padded_accuracy_topk(
      tf.constant(logits), tf.constant(labels), 7
    )
    np.testing.assert_array_equal(right, np.ones([2, 5]))


def test_official_metrics_by_hand():
  logits = tf.constant(LOGITS)
  log_probs = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))
  found, weights = metrics.padded_neg_log_perplexity(logits, LABELS, 7)
  expected = np.take_along_axis(log_probs, LABELS[..., None], -1)[..., 0]
  np.testing.assert_allclose(found, expected * (LABELS != 0), atol=1e-5)
  np.testing.assert_array_equal(weights, LABELS != 0)
  best = LOGITS.argmax(-1)
  right, _ = metrics.padded_accuracy(logits, best)
  np.testing.assert_array_equal(right, np.ones([2, 3]))
  whole, weight = metrics.padded_sequence_accuracy(
    logits, np.stack([best[0], best[1] + 1])
  )
  assert whole.numpy().tolist() == [1.0, 0.0] and float(weight) == 1.0
  order = LOGITS.argsort(-1)
  fifth, sixth = order[..., -5], order[..., -6]
  assert metrics.padded_accuracy_top5(logits, fifth)[0].numpy().all()
  assert not metrics.padded_accuracy_top5(logits, sixth)[0].numpy().any()
  with pytest.raises(ValueError, match="vocab_size is 8, but there are 7"):
    metrics.padded_cross_entropy_loss(logits, LABELS, 0.1, 8)


def test_the_loss_layer_adds_the_loss_of_logits():
  layer = metrics.LossLayer(7, 0.1)
  logits = layer([tf.constant(LOGITS), tf.constant(LABELS)])
  np.testing.assert_array_equal(logits, LOGITS)
  (loss,) = layer.losses
  assert float(loss) == float(metrics.transformer_loss(LOGITS, LABELS, 0.1))
  again = metrics.LossLayer.from_config(layer.get_config())
  assert (again.vocab_size, again.label_smoothing) == (7, 0.1)
  metric = metrics.MetricLayer.from_config(metrics.MetricLayer(7).get_config())
  assert metric.vocab_size == 7


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
    [inputs, labels],
    building.LogitsAndLossLayer(0.1, embedding)([inputs, labels]),
  )
  logits = model([states, LABELS])
  np.testing.assert_allclose(
    logits, states @ embedding.shared_weights.numpy().T, atol=1e-6
  )
  (loss,) = model.losses
  expected = one_hot_loss(logits.numpy(), LABELS, 0.1)[LABELS != 0].mean()
  assert math.isclose(float(loss), expected, rel_tol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_loss_layer_is_the_same_for_static_and_dynamic_shapes(compiled):
  states, embedding = states_and_table()
  layer = building.LogitsAndLossLayer(0.1, embedding)

  def loss_and_gradients(states, labels):
    with tf.GradientTape() as tape:
      tape.watch(states)
      layer([states, labels])
      (loss,) = layer.losses
    return loss, tape.gradient(loss, [states, embedding.shared_weights.value])

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
  layer = building.LogitsAndLossLayer(0.1, embedding)

  @tf.function(
    input_signature=[tf.TensorSpec([None, None], tf.int64)], autograph=False
  )
  def gradient(labels):
    with tf.GradientTape() as tape:
      layer([tf.constant(states), labels])
      (loss,) = layer.losses
    return loss, tape.gradient(loss, embedding.shared_weights.value)

  loss, table = gradient(np.zeros([2, 3], "int64"))
  assert float(loss) == 0.0
  np.testing.assert_array_equal(table, np.zeros([7, 4]))
