import pytest

from official_transformer.evaluation.breakdowns import (
  by_length,
  by_order,
  by_rarest_word,
  count_ngrams,
  most,
  plain_words,
)
from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  corpus_scores,
  create_metrics,
)

REFERENCE = ["a b c d e", "a b c d e f g", "x y", ""]
SYSTEMS = [
  ["a b c d e", "a b c d x f g", "x y", ""],
  ["a b c", "g f e d c b a", "x z", "q"],
]
SETTINGS = MetricSettings(("bleu", "chrf"), resamples=0)


def test_lengths_are_scored_by_themselves():
  groups = by_length(SYSTEMS, References([REFERENCE]), SETTINGS)
  assert [(g.name, g.lines) for g in groups] == [
    ("0", 1),
    ("1-5", 2),
    ("6-10", 1),
  ]
  references = References([[REFERENCE[0], REFERENCE[2]]])
  for system, scores in zip(SYSTEMS, groups[1].scores, strict=True):
    expected = corpus_scores(
      create_metrics(SETTINGS, references), [system[0], system[2]], 0
    )
    assert scores == {s.name: s.score for s in expected}


def test_the_rarest_word_decides():
  text = ["a b c d e"] * 3 + ["f g"] * 1 + ["x"] * 20 + ["y"] * 12
  groups = by_rarest_word(SYSTEMS, References([REFERENCE]), SETTINGS, text)
  assert [(g.name, g.lines) for g in groups] == [
    ("no word", 1),
    ("1", 1),
    ("2-4", 1),
    ("10-49", 1),
  ]
  groups = by_rarest_word(SYSTEMS, References([REFERENCE]), SETTINGS, ["a"])
  assert [(g.name, g.lines) for g in groups] == [
    ("no word", 1),
    ("0", 3),
  ]


def test_marks_are_no_part_of_words():
  assert plain_words('Ein Hund, "läuft" - schnell!') == [
    "ein",
    "hund",
    "läuft",
    "schnell",
  ]
  assert plain_words("我爱。") == ["我", "爱"]


def test_precisions_of_orders():
  one, _ = by_order(SYSTEMS, References([REFERENCE]), "13a")
  # 14 words, one of them wrong; of 11 bigrams, two.
  assert one[0] == pytest.approx(100 * 13 / 14)
  assert one[1] == pytest.approx(100 * 9 / 11)


def test_ngrams_are_counted_and_clipped():
  counts = {
    c.ngram: c
    for c in count_ngrams([["b a b b", "the cat"]], ["a b", "The dog"])
  }
  assert counts["b"]._asdict() == {
    "ngram": "b",
    "in_references": 1,
    "matched": [1],
    "in_translations": [3],
  }
  assert counts["a b"].matched == [1]
  assert counts["the"].matched == [1]
  assert counts["cat"].in_references == 0


def test_of_phrases_that_hold_each_other_the_longest_is_told():
  counts = count_ngrams([[""] * 3], ["in front of", "in front of", "in it"])
  missed = most(counts, lambda c: c.in_references - c.matched[0])
  assert [c.ngram for c in missed] == ["in", "in front of"]
  assert most(counts, lambda c: c.matched[0]) == []
  assert len(most(counts, lambda c: c.in_references, number=1)) == 1
