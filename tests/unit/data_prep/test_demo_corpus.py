import re

import pytest

from data_prep.demo import lexicon as lexicon
from data_prep.demo.grammar import DemoGrammar
from data_prep.demo_corpus import draw_pairs, translate_word_for_word
from official_transformer.evaluation.bleu import official_bleu


@pytest.fixture(scope="module")
def grammar():
  return DemoGrammar(3)


@pytest.fixture(scope="module")
def pairs(grammar):
  return draw_pairs(grammar, 3000)


@pytest.fixture(scope="module")
def many():
  return draw_pairs(DemoGrammar(5), 60000)


def test_the_seed_decides_and_no_sentence_comes_twice(pairs):
  assert draw_pairs(DemoGrammar(3), 3000) == pairs
  assert draw_pairs(DemoGrammar(4), 3000) != pairs
  assert len({english for english, _ in pairs}) == 3000


def test_sentences_are_well_formed(pairs):
  for pair in pairs:
    for text in pair:
      assert text[0].isupper()
      assert text[-1] in ".?"
      assert not re.search(r"  | ,|,,|,[.?]| [.?]|[.?].", text), text


@pytest.mark.parametrize(
  ("value", "english", "german"),
  [
    (2, "two", "zwei"),
    (17, "seventeen", "siebzehn"),
    (21, "twenty-one", "einundzwanzig"),
    (70, "seventy", "siebzig"),
    (99, "ninety-nine", "neunundneunzig"),
  ],
)
def test_numbers(value, english, german):
  assert lexicon.number_words(value) == (english, german)


def find(pairs, english):
  """Returns the German of the first pair whose English has a pattern."""
  return next(g for e, g in pairs if re.search(english, e))


def test_german_verbs_stand_where_they_must(pairs):
  assert re.search(
    r" hebt .* auf[.?,]|weil .* aufhebt", find(pairs, "picks up")
  )
  assert find(pairs, r"^(The|A) \w+ must buy").endswith("kaufen.")
  for english, german in pairs:
    if english.startswith("Tomorrow"):
      assert re.match("Morgen (wird|werden) ", german)
    if english.startswith("Did "):
      assert re.match("(Hat|Haben|Ist|Sind) ", german)


@pytest.mark.parametrize(
  ("english", "german"),
  [
    # Subjects, by gender and number.
    (r"^The man (can|will) ", r"^Der Mann "),
    (r"^The old woman (can|will) ", r"^Die alte Frau "),
    (r"^A young man (can|will) ", r"^Ein junger Mann "),
    (r"^This child (can|will) ", r"^Dieses Kind "),
    (r"^My women ", r"^Meine Frauen\b"),
    # Objects in the accusative and in the dative.
    (r"buys? the letter\b", r"den Brief\b"),
    (r"buys? a flower\b", r"eine Blume\b"),
    (r"helps? the woman\b", r"der Frau\b"),
    (r"helps? my brothers\b", r"meinen Brüdern\b"),
    (r"thanks? a king\b", r"einem König\b"),
    # Places in the dative, with the contraction.
    (r"\bin the garden\b", r"\bim Garten\b"),
    (r"behind my old house\b", r"hinter meinem alten Haus\b"),
  ],
)
def test_articles_adjectives_and_nouns_agree(many, english, german):
  found = [(e, g) for e, g in many if re.search(english, e)]
  assert found
  for source, target in found:
    assert re.search(german, target), (source, target)


def test_every_noun_declines_by_a_known_gender():
  nouns = lexicon.PEOPLE + lexicon.THINGS + lexicon.PLACES
  assert {noun.gender for noun in nouns} == {"m", "f", "n"}
  assert len({noun.english for noun in nouns}) == len(nouns)
  assert all(noun.german[0].isupper() for noun in nouns)


def test_a_dictionary_is_not_enough(grammar, pairs):
  dictionary = [translate_word_for_word(grammar, e) for e, _ in pairs[:500]]
  assert official_bleu([g for _, g in pairs[:500]], dictionary) < 40
