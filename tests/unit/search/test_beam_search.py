"""Beam search on toy graphs that are drawn in the test."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.search import compaction
from official_transformer.search.beam_search import (
  BeamSearch,
  DecoderState,
  length_normalization,
)
from official_transformer.search.rules import finishes_for_patience

EOS = 1
NOTHING = DecoderState(per_beam=[], per_sentence=[])


def graph_step(table):
  """Returns a step that reads logits from `table` [position, token, V]."""
  table = tf.constant(table, tf.float32)

  def step(ids, index, state):
    return tf.gather(table[index], ids), state

  return step


def random_table(seed, length, vocab_size, scale=2.0):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(length, vocab_size, vocab_size)) * scale


def log_softmax(x):
  return x - np.log(np.exp(x).sum(-1, keepdims=True))


def exhaustive(table, limit, alpha):
  """Scores every sequence that ends in EOS within the limit; best first."""
  log_probs = log_softmax(table)
  vocab_size = table.shape[1]
  others = [t for t in range(vocab_size) if t != EOS]
  found = []
  for length in range(1, limit + 1):
    for inner in itertools.product(others, repeat=length - 1):
      sequence = [*inner, EOS]
      total = sum(
        log_probs[i, before, token]
        for i, (before, token) in enumerate(
          zip([0, *inner], sequence, strict=True)
        )
      )
      found.append((total / ((5 + length) / 6) ** alpha, sequence))
  return sorted(found, reverse=True)


def search(table, limits, beam_size, alpha):
  batch = len(limits)
  result = BeamSearch(
    graph_step(table), table.shape[1], beam_size, alpha, EOS
  ).search(tf.zeros([batch], tf.int32), tf.constant(limits), NOTHING)
  return tuple(t.numpy() for t in result)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed, alpha):
  limit, vocab_size = 4, 4
  table = random_table(seed, limit, vocab_size)
  expected = exhaustive(table, limit, alpha)
  # As wide as there are sequences without EOS: nothing is ever pruned.
  width = (vocab_size - 1) ** limit
  ids, scores, finished = search(table, [limit], width, alpha)
  assert finished[0, 0]
  best_score, best = expected[0]
  assert ids[0, 0, : len(best)].tolist() == best
  assert not ids[0, 0, len(best) :].any()
  assert math.isclose(scores[0, 0], best_score, abs_tol=1e-4)
  known = {tuple(s): score for score, s in expected}
  for row, score in zip(
    ids[0][finished[0]], scores[0][finished[0]], strict=True
  ):
    sequence = tuple(row[: row.tolist().index(EOS) + 1].tolist())
    assert math.isclose(known[sequence], score, abs_tol=1e-4)


def test_greedy_follows_the_likeliest_token():
  table = random_table(7, 8, 6)
  table[:6, :, EOS] = -50.0
  table[6:, :, EOS] = 50.0
  token, path = 0, []
  for i in range(7):
    token = int(table[i, token].argmax())
    path.append(token)
  ids, scores, finished = search(table, [8], beam_size=1, alpha=0.6)
  assert ids[0, 0].tolist() == [*path, 0]
  assert finished[0, 0]
  before = [0, *path[:-1]]
  total = sum(log_softmax(table)[range(7), before, path])
  assert math.isclose(scores[0, 0], total / 2**0.6, abs_tol=1e-4)


def test_a_beam_finds_what_greedy_search_misses():
  # 2 looks best at first, but only 3 leads to a certain end.
  table = np.full([2, 5, 5], -20.0)
  table[0, 0, [2, 3]] = np.log([0.6, 0.4])
  table[1, 2, [1, 2, 3, 4]] = np.log([0.25] * 4)
  table[1, 3, EOS] = 0.0
  greedy, _, _ = search(table, [2], beam_size=1, alpha=0.0)
  beam, scores, _ = search(table, [2], beam_size=2, alpha=0.0)
  assert greedy[0, 0].tolist() == [2, 1]
  assert beam[0, 0].tolist() == [3, 1]
  assert math.isclose(scores[0, 0], math.log(0.4), abs_tol=1e-3)


def test_nothing_finished_gives_the_alive_and_their_log_probability():
  table = random_table(3, 4, 5)
  table[:, :, EOS] = -np.inf
  ids, scores, finished = search(table, [3], beam_size=2, alpha=0.6)
  assert not finished.any()
  assert ids.shape == (1, 2, 3)
  log_probs = log_softmax(table)
  for row, score in zip(ids[0], scores[0], strict=True):
    total = sum(
      log_probs[i, b, t]
      for i, (b, t) in enumerate(zip([0, *row[:-1]], row, strict=True))
    )
    assert math.isclose(score, total, abs_tol=1e-4)


def test_fewer_finished_than_beams_leaves_the_rest_empty():
  # EOS is certain at once: one hypothesis finishes, and decides the search.
  table = np.full([3, 4, 4], -30.0)
  table[:, :, EOS] = 0.0
  ids, scores, finished = search(table, [3], beam_size=3, alpha=0.6)
  assert finished[0].tolist()[0]
  assert ids[0, 0].tolist() == [EOS, 0, 0]
  for row, score, flag in zip(ids[0], scores[0], finished[0], strict=True):
    if not flag:
      assert not row.any()
      assert score == -np.inf


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_is_frozen_at_its_own_limit_whatever_its_company(beam_size):
  table = random_table(11, 9, 6)
  alone = search(table, [4], beam_size, 0.6)
  together = search(table, [9, 4, 2, 4], beam_size, 0.6)
  for a, t in zip(alone, together, strict=True):
    for row in (1, 3):
      if t.ndim == 3:
        np.testing.assert_array_equal(a[0], t[row, :, :4])
        assert not t[row, :, 4:].any()
      else:
        np.testing.assert_allclose(a[0], t[row], rtol=1e-6)


def test_state_follows_its_hypothesis_and_may_grow():
  """Each beam's state is its own history: it must equal its ids."""
  table = tf.constant(random_table(5, 6, 5, scale=1.0), tf.float32)
  seen = []

  def step(ids, index, state):
    history = tf.concat([state.per_beam["ids"], ids[:, None]], axis=1)
    tf.py_function(lambda h: seen.append(h.numpy()), [history], [])
    logits = tf.gather(table[index], ids) + state.per_sentence[0][0, 0]
    return logits, DecoderState({"ids": history}, state.per_sentence)

  state = DecoderState({"ids": tf.zeros([4, 0], tf.int32)}, [tf.zeros([1, 1])])
  result = BeamSearch(step, 5, 4, 0.6, EOS).search(
    tf.zeros([1], tf.int32), tf.constant([6]), state
  )
  assert len(seen) >= 2
  # What each step saw must be some path, and the paths of one step differ.
  for number, history in enumerate(seen[1:], start=2):
    assert history.shape == (4, number)
    assert not history[:, 0].any()
    assert EOS not in history
    assert len({tuple(h) for h in history.tolist()}) == 4
  best = result.ids.numpy()[0, 0]
  length = best.tolist().index(EOS)
  assert [0, *best[:length]] in seen[length].tolist()


def test_works_inside_a_graph():
  table = random_table(2, 5, 6)
  searcher = BeamSearch(graph_step(table), 6, 3, 0.6, EOS)

  @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)] * 2)
  def traced(initial, limits):
    return searcher.search(initial, limits, NOTHING)

  eager = searcher.search(tf.zeros([2], tf.int32), tf.constant([5, 3]), NOTHING)
  graph = traced(tf.zeros([2], tf.int32), tf.constant([5, 3]))
  for a, b in zip(eager, graph, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_length_normalization_by_hand():
  assert float(length_normalization(0.6, tf.constant(1))) == 1.0
  assert math.isclose(
    float(length_normalization(0.6, tf.constant(7))), 2**0.6, rel_tol=1e-6
  )
  assert float(length_normalization(0.0, tf.constant(99))) == 1.0


@pytest.mark.parametrize("sizes", [(1, 4), (5, 0)])
def test_impossible_sizes_are_refused(sizes):
  with pytest.raises(ValueError, match="must be at least"):
    BeamSearch(graph_step(np.zeros([1, 2, 2])), *sizes, 0.6)


def plain_search(table, limit, k, alpha, wanted):
  """Beam search with a patience, hypothesis by hypothesis.

  Returns:
    The finished hypotheses, best first, K at most, and the steps made.
  """
  log_probs = log_softmax(table)
  alive, finished, ended = [(0.0, [])], [], 0
  for step in range(limit):
    candidates = sorted(
      (
        (total + log_probs[step, [0, *ids][-1], token], [*ids, token])
        for total, ids in alive
        for token in range(table.shape[1])
      ),
      reverse=True,
    )[: 2 * k]
    done = [c for c in candidates if c[1][-1] == EOS]
    alive = [c for c in candidates if c[1][-1] != EOS][:k]
    norm = ((5 + step + 1) / 6) ** alpha
    finished += [(total / norm, ids) for total, ids in done]
    finished = sorted(finished, reverse=True)[:k]
    ended += sum(c[1][-1] == EOS for c in candidates[:k])
    best_possible = alive[0][0] / ((5 + limit) / 6) ** alpha
    if ended >= wanted or (finished and finished[-1][0] > best_possible):
      break
  return finished, step + 1


# Half of a beam of 3 is 2 hypotheses, a tenth is 1.
@pytest.mark.parametrize(
  "patience, wanted", [(0.1, 1), (0.5, 2), (1.0, 3), (2.0, 6), (0.0, 10**9)]
)
@pytest.mark.parametrize("alpha", [0.6, 1.5])
@pytest.mark.parametrize("longest", [None, 12])
def test_patience_is_that_of_a_plain_search(patience, wanted, alpha, longest):
  limit, vocab_size, k, number = 12, 6, 3, 20
  tables = [random_table(seed, limit, vocab_size) for seed in range(number)]
  # Some end early, some late.
  for table, likely in zip(tables, np.linspace(-2, 2, number), strict=True):
    table[..., EOS] += likely
  steps = tf.Variable(tf.zeros([number], tf.int32))
  joined = tf.constant(np.stack(tables), tf.float32)

  def step(ids, index, state):
    rows = state.per_sentence
    steps.scatter_nd_update(rows[:, None], tf.fill(tf.shape(rows), index + 1))
    rows = tf.repeat(rows, k)
    where = tf.stack([rows, tf.fill(tf.shape(rows), index), ids], axis=1)
    return tf.gather_nd(joined, where), state

  @tf.function
  def find():
    zeros = tf.zeros([number], tf.int32)
    return BeamSearch(step, vocab_size, k, alpha, EOS).search(
      zeros,
      zeros + limit,
      DecoderState(per_beam=[], per_sentence=tf.range(number)),
      longest,
      finishes_needed=tf.fill([number], finishes_for_patience(k, patience))
      if patience
      else None,
    )

  found = [tensor.numpy() for tensor in find()]
  expected = [plain_search(t, limit, k, alpha, wanted) for t in tables]
  for ids, scores, flags, (sequences, _) in zip(*found, expected, strict=True):
    assert flags.sum() == len(sequences)
    for row, score, (wanted_score, sequence) in zip(
      ids, scores, sequences, strict=False
    ):
      assert row[: len(sequence)].tolist() == sequence
      assert math.isclose(score, wanted_score, abs_tol=1e-4)
  # Nobody is searched for longer than until an eighth of all have stopped.
  made, needed = steps.numpy(), np.array([steps for _, steps in expected])
  assert (made >= needed).all()
  assert made.max() == needed.max()


def test_patience_ends_a_search_sooner():
  """Where a long translation could still win, and none does."""
  table = np.full([40, 3, 3], -3.0)
  table[:, :, EOS] = 0.0
  lengths = {}
  for patience in (0.0, 1.0):
    seen = []

    def step(ids, index, state, seen=seen):
      tf.py_function(lambda i: seen.append(int(i)), [index], [])
      return tf.gather(tf.constant(table[0], tf.float32), ids), state

    found = BeamSearch(step, 3, 2, 3.0, EOS).search(
      tf.zeros([1], tf.int32),
      tf.constant([40]),
      NOTHING,
      finishes_needed=tf.constant([finishes_for_patience(2, patience)])
      if patience
      else None,
    )
    assert found.finished.numpy().all()
    lengths[patience] = len(seen)
  assert lengths[1.0] == 2 < lengths[0.0]


@pytest.mark.parametrize("static", [True, False])
def test_sentences_stop_and_leave_as_they_would_alone(static, monkeypatch):
  """Each sentence has a graph of its own, found by what the search gathers."""
  monkeypatch.setattr(compaction, "DROPPED_SHARE", 3)
  rng = np.random.default_rng(8)
  sentences, length, vocab_size, k = 12, 9, 7, 3
  tables = rng.normal(size=(sentences, length, vocab_size, vocab_size)) * 2
  # Some end early, some late, some never.
  tables[..., EOS] += np.linspace(-9, 3, sentences)[:, None, None]
  tables = tf.constant(tables, tf.float32)
  limits = rng.integers(1, length + 1, sentences).astype(np.int32)
  present = []

  def step(ids, index, state):
    rows = tf.repeat(state.per_sentence, k)
    tf.py_function(lambda r: present.append(len(r)), [state.per_sentence], [])
    where = tf.stack([rows, tf.fill(tf.shape(rows), index), ids], axis=1)
    return tf.gather_nd(tables, where), state

  def find(rows):
    rows = tf.cast(rows, tf.int32)
    return BeamSearch(step, vocab_size, k, 0.6, EOS).search(
      tf.zeros_like(rows),
      tf.gather(limits, rows),
      DecoderState(per_beam=[], per_sentence=rows),
      longest=length if static else None,
    )

  together = tf.function(find, autograph=False)(np.arange(sentences))
  if static:
    assert set(present) == {sentences}
    assert together.ids.shape == (sentences, k, length)
  else:
    assert present[0] == sentences and present[-1] < sentences // 2
    assert present == sorted(present, reverse=True)
  for row in range(sentences):
    alone = find([row])
    longest = alone.ids.shape[2]
    np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :longest])
    assert not together.ids.numpy()[row, :, longest:].any()
    np.testing.assert_array_equal(alone.finished[0], together.finished[row])
    np.testing.assert_allclose(alone.scores[0], together.scores[row], atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_what_is_beyond_the_vocabulary_is_never_chosen(beam_size):
  """Though it is what the model likes best, and has its share of the sum."""
  rng = np.random.default_rng(3)
  table = rng.normal(size=(6, 9, 9)).astype(np.float32)
  table[..., 6:] += 5.0
  found = BeamSearch(graph_step(table), 6, beam_size, 0.6, EOS).search(
    tf.zeros([1], tf.int32), tf.constant([6]), NOTHING
  )
  assert found.ids.numpy().max() < 6
  # By hand, of the hypothesis that was found.
  ids = found.ids.numpy()[0, 0]
  length = ids.tolist().index(EOS) + 1 if EOS in ids else 6
  total, before = 0.0, 0
  for step, token in enumerate(ids[:length]):
    logits = table[step, before].astype(np.float64)
    total += logits[token] - np.log(np.exp(logits).sum())
    before = token
  if found.finished[0, 0]:
    total /= ((5 + length) / 6) ** 0.6
  np.testing.assert_allclose(found.scores[0, 0], total, rtol=1e-5)
