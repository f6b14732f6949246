import math

import pytest

from official_transformer.evaluation import bleu


@pytest.mark.parametrize(
  ("text", "tokens"),
  [
    ("Hello, world!", ["Hello", ",", "world", "!"]),
    ("1,000.5 is", ["1,000.5", "is"]),
    ("in 1999.", ["in", "1999."]),
    ("a $5 bill", ["a", "$", "5", "bill"]),
    ("don't", ["don", "'", "t"]),
    ("»Ja«", ["»", "Ja", "«"]),
    ("a\u2028b", ["a", "b"]),
    ("", []),
  ],
)
def test_tokenization_by_hand(text, tokens):
  assert bleu.bleu_tokenize(text) == tokens


def test_bleu_by_hand():
  reference = "a b c d e f".split()
  translation = "a b c d x".split()
  # Orders 1 to 4: 4/5, 3/4, 2/3, 1/2; one word short of six.
  expected = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25 * math.exp(1 - 6 / 5)
  actual = bleu.compute_bleu([reference], [translation])
  assert math.isclose(actual, expected, rel_tol=1e-9)


def test_repeated_words_are_clipped():
  actual = bleu.compute_bleu([["a", "b"]], [["a", "a"]])
  # 1 of 2 unigrams; the bigram order has no match: half of one.
  assert math.isclose(actual, (1 / 2 * 1 / 2) ** 0.25, rel_tol=1e-9)


def test_smoothing_doubles_with_each_empty_order():
  actual = bleu.compute_bleu([list("abcd")], [list("axby")])
  # 2/4, then 0 of 3, 0 of 2, 0 of 1.
  expected = (2 / 4 / (2 * 3) / (4 * 2) / (8 * 1)) ** 0.25
  assert math.isclose(actual, expected, rel_tol=1e-9)


def test_perfect_and_empty():
  lines = ["the cat sat on the mat .", "a dog ran ."]
  assert bleu.official_bleu(lines, lines) == pytest.approx(100.0)
  assert bleu.official_bleu(lines, ["", ""]) == 0.0
  assert bleu.official_bleu(["", ""], lines) == 0.0


def test_case():
  reference, translation = ["The Cat sat there ."], ["the cat sat there ."]
  assert bleu.official_bleu(reference, translation) == pytest.approx(100.0)
  assert bleu.official_bleu(reference, translation, case_sensitive=True) < 60
