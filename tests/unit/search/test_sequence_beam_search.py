"""The official call of the search, on a toy model with a cache."""

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.search.beam_search import BeamSearch
from official_transformer.search.sequence_beam_search import (
  sequence_beam_search,
)
from official_transformer.search.state import DecoderState

VOCAB_SIZE, EOS, LIMIT = 6, 1, 7
TABLE = tf.constant(
  np.random.default_rng(3).normal(size=[40, VOCAB_SIZE]) * 2, tf.float32
)
STARTS = tf.constant([2, 3, 4])


def logits_of(total):
  """Returns logits that depend on the sum of all ids so far, int32 [R]."""
  return tf.gather(TABLE, total % TABLE.shape[0])


def by_ids(ids, i, cache):
  """Sees every sentence at every step, those that have stopped too."""
  beam_size = tf.shape(ids)[0] // 3
  tf.debugging.assert_equal(tf.shape(ids), [3 * beam_size, i + 1])
  tf.debugging.assert_equal(ids[:, 0], tf.repeat(STARTS, beam_size))
  return logits_of(tf.reduce_sum(ids, axis=1)), cache


def by_cache(ids, i, cache):
  """Sums up in one tensor of the cache, and keeps all ids in another."""
  total = cache["total"] + ids[:, -1:]
  kept = tf.concat([cache["kept"][0], ids[:, -1:, None]], axis=1)
  tf.debugging.assert_equal(tf.reduce_sum(kept, axis=[1, 2]), total[:, 0])
  return logits_of(total[:, 0]), {"total": total, "kept": [kept]}


def search(function, cache, beam_size, padded=False):
  return tf.function(
    lambda: sequence_beam_search(
      *(function, STARTS, cache, VOCAB_SIZE, beam_size, 0.6, LIMIT, EOS, padded)
    ),
    autograph=False,
  )()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_cache_follows_its_hypotheses(beam_size):
  ids, scores = search(by_ids, {}, beam_size)
  empty = {
    "total": tf.zeros([3, 1], tf.int32),
    "kept": [tf.zeros([3, 0, 1], tf.int32)],
  }
  other_ids, other_scores = search(by_cache, empty, beam_size)
  np.testing.assert_array_equal(ids, other_ids)
  np.testing.assert_allclose(scores, other_scores, rtol=1e-6)
  assert ids.shape == (3, beam_size, LIMIT + 1)
  np.testing.assert_array_equal(
    ids[:, :, 0], np.tile(STARTS[:, None], beam_size)
  )


def test_padded_decoding_finds_the_same():
  def by_total(ids, i, total):
    assert ids.shape[1] == 1
    total += ids
    return logits_of(total[:, 0]), total

  ids, scores = search(by_total, tf.zeros([3, 1], tf.int32), 3, padded=True)
  expected_ids, expected_scores = search(by_ids, {}, 3)
  np.testing.assert_array_equal(ids, expected_ids)
  np.testing.assert_allclose(scores, expected_scores, rtol=1e-6)


def test_it_is_the_search_of_the_model():
  """Whose step sees the newest token, and keeps what it needs by itself."""

  def step(ids, index, state):
    total = state.per_beam + ids
    return logits_of(total), DecoderState(total, [])

  found = BeamSearch(step, VOCAB_SIZE, 3, 0.6, EOS).search(
    STARTS, tf.fill([3], LIMIT), DecoderState(tf.zeros([9], tf.int32), [])
  )
  ids, scores = search(by_ids, {}, 3)
  np.testing.assert_array_equal(ids[:, :, 1:], found.ids)
  np.testing.assert_allclose(scores, found.scores, rtol=1e-6)
