import math

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.ops import cross_entropy

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
  actual = cross_entropy.smoothed_cross_entropy(
    tf.constant(LOGITS), tf.constant(LABELS), smoothing
  )
  expected = one_hot_loss(LOGITS, LABELS, smoothing)
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_loss_by_hand():
  # Uniform logits over 4 tokens cost ln 4; the target (.9, .1/3 three times)
  # has entropy .9 ln(1/.9) + .1 ln 30.
  entropy = 0.9 * math.log(1 / 0.9) + 0.1 * math.log(30)
  actual = cross_entropy.smoothed_cross_entropy(
    tf.zeros([1, 4]), tf.constant([2]), 0.1
  )
  np.testing.assert_allclose(actual, [math.log(4) - entropy], atol=1e-6)


def test_loss_of_the_smoothed_target_itself_is_zero():
  target = np.full([1, 5], 0.1 / 4, "float32")
  target[0, 3] = 0.9
  actual = cross_entropy.smoothed_cross_entropy(
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
      weights * cross_entropy.smoothed_cross_entropy(logits, LABELS, smoothing)
    )
  target = np.full(LOGITS.shape, smoothing / 6)
  np.put_along_axis(target, LABELS[..., None], 1 - smoothing, axis=-1)
  expected = (tf.nn.softmax(logits).numpy() - target) * weights[..., None]
  np.testing.assert_allclose(tape.gradient(loss, logits), expected, atol=1e-6)


def test_large_logits_stay_finite():
  logits = tf.constant([[1e4, -1e4, 0.0]])
  loss = cross_entropy.smoothed_cross_entropy(logits, tf.constant([1]), 0.0)
  np.testing.assert_allclose(loss, [2e4], rtol=1e-6)


def linear(
  states,
  table,
  labels,
  weights,
  smoothing,
  dtype=tf.float32,
):
  """The joint loss and its two gradients."""
  states, table = tf.constant(states, dtype), tf.constant(table)
  with tf.GradientTape() as tape:
    tape.watch([states, table])
    loss = cross_entropy.linear_cross_entropy(
      states,
      table,
      tf.constant(labels),
      tf.constant(weights),
      smoothing,
    )
    doubled = loss * 2.0
  return loss, tape.gradient(doubled, [states, table])


def by_parts(states, table, labels, weights, smoothing):
  """The same from all logits at once, by TensorFlow's own gradients."""
  states, table = tf.constant(states), tf.constant(table)
  with tf.GradientTape() as tape:
    tape.watch([states, table])
    losses = cross_entropy.smoothed_cross_entropy(
      tf.matmul(states, table, transpose_b=True), labels, smoothing
    )
    loss = tf.reduce_sum(losses * weights)
    doubled = loss * 2.0
  return loss, tape.gradient(doubled, [states, table])


def example(positions=10, vocab_size=7, hidden_size=4):
  rng = np.random.default_rng(3)
  return (
    rng.normal(size=(positions, hidden_size)).astype("float32"),
    rng.normal(size=(vocab_size, hidden_size)).astype("float32"),
    rng.integers(0, vocab_size, positions),
    rng.uniform(size=positions).astype("float32") / positions,
  )


# 7 logits a position: in chunks of 1, 2, 4 and 10, and all at once.
@pytest.mark.parametrize("chunk", [1, 14, 28, 70, 2**24])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_joint_loss_equals_product_and_loss(chunk, smoothing, monkeypatch):
  monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", chunk)
  loss, gradients = linear(*example(), smoothing)
  expected, expected_gradients = by_parts(*example(), smoothing)
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  for a, b in zip(gradients, expected_gradients, strict=True):
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
  ("dtype", "tolerance"), [(tf.bfloat16, 0.02), (tf.float16, 0.003)]
)
def test_joint_loss_in_half_precision(dtype, tolerance):
  states, table, labels, weights = example(200, 50, 16)
  loss, gradients = linear(states, table, labels, weights, 0.1, dtype)
  expected, expected_gradients = by_parts(states, table, labels, weights, 0.1)
  np.testing.assert_allclose(loss, expected, rtol=tolerance)
  assert [g.dtype for g in gradients] == [dtype, tf.float32]
  for a, b in zip(gradients, expected_gradients, strict=True):
    a, b = tf.cast(a, tf.float32).numpy(), b.numpy()
    assert np.linalg.norm(a - b) < tolerance * np.linalg.norm(b)


def test_joint_loss_of_logits_that_are_far_apart():
  # The label's probability is e^-200: nothing, in float32.
  loss, _ = linear([[1.0]], [[100.0], [-100.0]], [1], [1.0], 0.0)
  np.testing.assert_allclose(loss, 200.0, rtol=1e-6)
