import numpy as np
import pytest
import tensorflow as tf

from official_transformer.ops.top_k import top_log_probabilities


def expected(logits, k):
  """All are sorted; equal ones stay in the order of their ids."""
  wide = logits.astype(np.float64)
  log_probs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
  ids = np.argsort(-wide, axis=1, kind="stable")[:, :k]
  return np.take_along_axis(log_probs, ids, axis=1), ids


# Few to many chunks, divisible sizes, one that is twice a prime, and a prime.
@pytest.mark.parametrize("size", [9, 64, 1000, 2048, 4096, 5021, 10006])
@pytest.mark.parametrize("k", [2, 8])
def test_equals_sorting_the_vocabulary(size, k):
  logits = np.random.default_rng(size).normal(size=[7, size]) * 3
  logits = logits.astype(np.float32)
  values, ids = top_log_probabilities(tf.constant(logits), k)
  want_values, want_ids = expected(logits, k)
  np.testing.assert_array_equal(ids, want_ids)
  np.testing.assert_allclose(values, want_values, atol=2e-6)


@pytest.mark.parametrize("size", [2048, 5021])
def test_equal_logits_come_in_the_order_of_their_ids(size):
  # Few different values: every chunk holds the largest ones several times.
  rng = np.random.default_rng(1)
  for highest in (2, 40):
    logits = rng.integers(0, highest, [50, size]).astype(np.float32)
    _, ids = top_log_probabilities(tf.constant(logits), 8)
    np.testing.assert_array_equal(ids, expected(logits, 8)[1])


def test_neighbours_in_one_chunk_are_all_found():
  logits = np.zeros([1, 4096], np.float32)
  logits[0, 130:138] = np.arange(8, 0, -1)
  _, ids = top_log_probabilities(tf.constant(logits), 8)
  np.testing.assert_array_equal(ids[0], np.arange(130, 138))


def test_impossible_tokens():
  logits = np.full([1, 4096], -np.inf, np.float32)
  logits[0, [7, 4000]] = [1.0, 3.0]
  values, ids = top_log_probabilities(tf.constant(logits), 4)
  assert ids.numpy()[0, :2].tolist() == [4000, 7]
  total = np.logaddexp(1, 3)
  np.testing.assert_allclose(values[0, :2], [3 - total, 1 - total], atol=1e-6)
  assert np.isneginf(values.numpy()[0, 2:]).all()
