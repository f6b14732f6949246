import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.decoding import scorer as scorer_lib
from official_transformer.decoding.options import BatchLimits
from official_transformer.decoding.scorer import PairScore, Scorer
from official_transformer.errors import InputError
from official_transformer.model.building import build_transformer
from official_transformer.model_params import TransformerParams
from official_transformer.ops import cross_entropy

PAIRS = [("abc", "ba"), ("", "c"), ("cab", ""), ("a" * 9, "abcabc"), ("b", "a")]


class Letters:
  """Three letters from id 2 on."""

  vocab_size = 20

  def encode(self, text, add_eos=False):
    return [2 + "abc".index(c) for c in text] + [1] * add_eos


@pytest.fixture
def model():
  keras.utils.set_random_seed(1)
  params = TransformerParams(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=1,
    num_heads=2,
    filter_size=32,
    alpha=0.5,
  )
  return build_transformer(params)


@pytest.fixture
def scorer(model):
  return Scorer(model, Letters(), BatchLimits(lines=2))


def test_scores_by_hand(scorer, model):
  letters = Letters()
  for pair, score in zip(PAIRS, scorer.score_stream(PAIRS), strict=True):
    source, target = (letters.encode(side, add_eos=True) for side in pair)
    logits = model([np.array([source]), np.array([target])]).numpy()[0]
    logits = logits.astype(np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = log_probs[np.arange(len(target)), target]
    assert score.tokens == len(target)
    np.testing.assert_allclose(
      score.token_log_probabilities, expected, atol=1e-5
    )
    assert score.log_probability == pytest.approx(expected.sum(), abs=1e-5)
    norm = ((5 + len(target)) / 6) ** 0.5
    assert score.normalized_score == pytest.approx(
      expected.sum() / norm, abs=1e-5
    )


def test_company_changes_no_score(scorer):
  together = list(scorer.score_stream(PAIRS))
  for pair, expected in zip(PAIRS, together, strict=True):
    (alone,) = scorer.score_stream([pair])
    assert alone.log_probability == pytest.approx(
      expected.log_probability, abs=1e-5
    )


def test_a_translation_scores_what_the_search_says(scorer, model):
  """The search's own score of a finished hypothesis, found again."""
  # Towards EOS, so that there is a finished one.
  table = model.embedding.shared_weights.numpy()
  model.decoder_stack.output_normalization.beta.assign(2 * table[1])
  source = np.array([[3, 4, 1]], np.int32)
  result = model.beam_search(source)
  ids = result.ids.numpy()[0, 0]
  assert result.finished.numpy()[0, 0]
  target = ids[: list(ids).index(1) + 1]
  found = scorer.score_batch([(source[0].tolist(), target.tolist())])[0]
  assert found.normalized_score == pytest.approx(
    float(result.scores[0, 0]), abs=1e-4
  )


def test_the_sum_is_over_all_tokens():
  score = PairScore([-1.0, -2.5], -3.0)
  assert (score.log_probability, score.tokens) == (-3.5, 2)


def test_half_of_a_character_is_refused(scorer):
  with pytest.raises(InputError, match="half of a surrogate"):
    list(scorer.score_stream([("a", "\ud83d")]))


def test_nothing_in_nothing_out(scorer):
  assert list(scorer.score_stream([])) == []


def test_the_logits_exist_for_some_positions_at_a_time(scorer, monkeypatch):
  expected = list(scorer.score_stream(PAIRS))
  sizes = []
  matmul = cross_entropy.matmul

  def seen(a, b, **options):
    sizes.append(a.shape[0])
    return matmul(a, b, **options)

  monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", 60)  # 3 positions.
  monkeypatch.setattr(cross_entropy, "matmul", seen)
  tf.config.run_functions_eagerly(True)  # Else shapes are not known.
  try:
    fewer = Scorer(scorer.transformer, Letters(), BatchLimits(lines=2))
    found = list(fewer.score_stream(PAIRS))
  finally:
    tf.config.run_functions_eagerly(False)
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(
      one.token_log_probabilities, other.token_log_probabilities, atol=1e-5
    )
  assert max(sizes) == 3


def test_a_pair_too_long_for_the_memory_has_no_score(
  scorer, monkeypatch, caplog
):
  """The others have, one line for each."""
  expected = list(scorer.score_stream(PAIRS))
  monkeypatch.setattr(
    scorer_lib, "lacks_memory", lambda _, lines, length: lines * length > 8
  )
  found = list(scorer.score_stream(PAIRS))
  assert [np.isnan(score.log_probability) for score in found] == [
    False, False, False, True, False
  ]  # fmt: skip
  assert scorer.not_scored == 1
  assert "a side of 10 tokens is too long" in caplog.text
  for one, other in zip(found, expected, strict=True):
    assert one.tokens == other.tokens
    if not np.isnan(one.log_probability):
      assert one.log_probability == pytest.approx(
        other.log_probability, abs=1e-5
      )


def test_a_lack_of_memory_gives_smaller_batches(scorer, monkeypatch):
  whole = scorer._log_probabilities

  def full(sources, targets):
    if len(sources) > 1:
      raise tf.errors.ResourceExhaustedError(None, None, "OOM")
    return whole(sources, targets)

  monkeypatch.setattr(scorer, "_log_probabilities", full)
  assert len(list(scorer.score_stream(PAIRS))) == 5
  assert scorer.not_scored == 0


def test_blanks_at_either_end_are_not_scored(model):
  class Words(Letters):
    def encode(self, text, add_eos=False):
      assert text == text.strip()
      return super().encode(text, add_eos)

  scorer = Scorer(model, Words())
  plain, padded = scorer.score_stream([("ab", "c"), (" ab\t", "\u3000c ")])
  assert plain.log_probability == pytest.approx(
    padded.log_probability, abs=1e-5
  )


def test_a_pair_beyond_the_learnt_positions_is_told_apart(
  scorer, monkeypatch, caplog
):
  monkeypatch.setattr(
    scorer_lib, "lacks_positions", lambda _, length: length > 8
  )
  found = list(scorer.score_stream(PAIRS))
  assert [np.isnan(score.log_probability) for score in found] == [
    False, False, False, True, False
  ]  # fmt: skip
  assert (scorer.not_scored, scorer.beyond_positions) == (0, 1)
  assert "positions that the model has learnt" in caplog.text
