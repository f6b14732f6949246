import numpy as np
import pytest

from official_transformer.decoding.batching import BatchLimits
from official_transformer.decoding.scorer import PairScore, Scorer
from official_transformer.model.transformer import build_transformer
from official_transformer.model_params import TransformerParams

PAIRS = [("abc", "ba"), ("", "c"), ("cab", ""), ("a" * 9, "abcabc"), ("b", "a")]


class Letters:
  """Three letters from id 2 on."""

  vocab_size = 20

  def encode(self, text, add_eos=False):
    return [2 + "abc".index(c) for c in text] + [1] * add_eos


@pytest.fixture
def model():
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
  table = model.embedding.table.numpy()
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


def test_nothing_in_nothing_out(scorer):
  assert list(scorer.score_stream([])) == []
