import math

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import cross_entropy

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
  r_drop_alpha=0.0,
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
      r_drop_alpha,
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


def with_r_drop_by_parts(states, table, labels, weights, smoothing, alpha):
  """The definition: each pass' loss, and the divergences both ways."""
  states, table = tf.constant(states), tf.constant(table)
  with tf.GradientTape() as tape:
    tape.watch([states, table])
    logits = tf.matmul(states, table, transpose_b=True)
    losses = cross_entropy.smoothed_cross_entropy(logits, labels, smoothing)
    log_p, log_q = tf.split(tf.nn.log_softmax(logits), 2)
    p_to_q = tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=1)
    q_to_p = tf.reduce_sum(tf.exp(log_q) * (log_q - log_p), axis=1)
    divergence = tf.tile((p_to_q + q_to_p) / 2, [2])
    loss = tf.reduce_sum((losses + alpha / 2 * divergence) * weights)
    doubled = loss * 2.0
  return loss, tape.gradient(doubled, [states, table])


def two_passes(positions=5):
  """A pair of passes over the same tokens; the last is padding."""
  states, table, labels, weights = example(2 * positions)
  weights[positions - 1] = 0.0
  return (
    states,
    table,
    np.tile(labels[:positions], 2),
    np.tile(weights[:positions], 2),
  )


# 14 logits a position of both passes: in chunks of 1, 2, 3 (the last of 2).
@pytest.mark.parametrize("chunk", [1, 28, 42, 2**24])
@pytest.mark.parametrize("alpha", [0.5, 5.0])
def test_r_drop_equals_its_definition(chunk, alpha, monkeypatch):
  monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", chunk)
  loss, gradients = linear(*two_passes(), 0.1, r_drop_alpha=alpha)
  expected = with_r_drop_by_parts(*two_passes(), 0.1, alpha)
  np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
  for a, b in zip(gradients, expected[1], strict=True):
    np.testing.assert_allclose(a, b, atol=2e-6)


def test_r_drop_costs_nothing_where_both_passes_agree():
  states, table, labels, weights = two_passes()
  states[5:] = states[:5]
  with_it, _ = linear(states, table, labels, weights, 0.1, r_drop_alpha=5.0)
  without, _ = linear(states, table, labels, weights, 0.1)
  np.testing.assert_allclose(with_it, without, rtol=1e-6)


def test_divergence_by_hand():
  # p = (3/4, 1/4), q = (1/2, 1/2): (p - q)(a - b) / 2 is ln 3 / 4 / 2, for each
  # of the two positions once with the weight 1 and half of alpha.
  log3 = math.log(3.0)
  arguments = ([[log3], [0.0]], [[1.0], [0.0]], [0, 0], [1.0, 1.0], 0.0)
  with_it, _ = linear(*arguments, r_drop_alpha=1.0)
  without, _ = linear(*arguments)
  np.testing.assert_allclose(with_it - without, log3 / 8, rtol=1e-5)
