import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import metrics

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


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_equals_its_definition(smoothing):
  actual = metrics.smoothed_cross_entropy(
    tf.constant(LOGITS), tf.constant(LABELS), smoothing
  )
  expected = one_hot_loss(LOGITS, LABELS, smoothing)
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_loss_by_hand():
  # Uniform logits over 4 tokens cost ln 4; the target (.9, .1/3 three times)
  # has entropy .9 ln(1/.9) + .1 ln 30.
  entropy = 0.9 * math.log(1 / 0.9) + 0.1 * math.log(30)
  actual = metrics.smoothed_cross_entropy(
    tf.zeros([1, 4]), tf.constant([2]), 0.1
  )
  np.testing.assert_allclose(actual, [math.log(4) - entropy], atol=1e-6)


def test_loss_of_the_smoothed_target_itself_is_zero():
  target = np.full([1, 5], 0.1 / 4, "float32")
  target[0, 3] = 0.9
  actual = metrics.smoothed_cross_entropy(
    tf.constant(np.log(target)), tf.constant([3]), 0.1
  )
  np.testing.assert_allclose(actual, [0.0], atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_is_softmax_minus_target(smoothing):
  logits = tf.constant(LOGITS)
  weights = tf.constant([[1.0, 2.0, 0.0], [3.0, 1.0, 1.0]])
  with tf.GradientTape() as tape:
    tape.watch(logits)
    loss = tf.reduce_sum(
      weights * metrics.smoothed_cross_entropy(logits, LABELS, smoothing)
    )
  target = np.full(LOGITS.shape, smoothing / 6)
  np.put_along_axis(target, LABELS[..., None], 1 - smoothing, axis=-1)
  expected = (tf.nn.softmax(logits).numpy() - target) * weights[..., None]
  np.testing.assert_allclose(tape.gradient(loss, logits), expected, atol=1e-6)


def test_batch_loss_is_the_mean_over_tokens_that_are_not_padding():
  per_token = one_hot_loss(LOGITS, LABELS, 0.1)
  expected = per_token[LABELS != 0].mean()
  actual = metrics.transformer_loss(LOGITS, tf.constant(LABELS), 0.1)
  assert math.isclose(float(actual), expected, rel_tol=1e-5)


def test_batch_of_padding_costs_nothing():
  loss = metrics.transformer_loss(LOGITS, tf.zeros([2, 3], tf.int64), 0.1)
  assert float(loss) == 0.0


def test_large_logits_stay_finite():
  logits = tf.constant([[1e4, -1e4, 0.0]])
  loss = metrics.smoothed_cross_entropy(logits, tf.constant([1]), 0.0)
  np.testing.assert_allclose(loss, [2e4], rtol=1e-6)


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


def test_loss_layer_adds_the_loss_to_a_functional_model():
  logits, labels = keras.Input([3, 7]), keras.Input([3], dtype="int64")
  model = keras.Model(
    [logits, labels], metrics.LossLayer(0.1)([logits, labels])
  )
  model([LOGITS, LABELS])
  (loss,) = model.losses
  expected = one_hot_loss(LOGITS, LABELS, 0.1)[LABELS != 0].mean()
  assert math.isclose(float(loss), expected, rel_tol=1e-5)
