import pytest

from official_transformer.evaluation.sentence_warnings import (
  MEANINGS,
  numbers_of,
  repeats,
  warnings_of,
)

# The usual ratio of lengths comes from all lines: these make it about 1.
DEFAULT_FIELDS = ["A dog runs along the beach today."] * 5
TRANSLATED = ["Ein Hund läuft heute den Strand."] * 5


@pytest.mark.parametrize(
  ("source", "translation", "expected"),
  [
    ("A dog runs.", "Ein Hund rennt.", []),
    ("", "", []),
    ("A dog runs.", "", ["empty"]),
    ("Two men sit on a bench.", "Two men sit on a bench.", ["copied"]),
    ("Two men sit on a bench.", "Zwei men sit on a bench.", ["copied"]),
    # One word may be a name.
    ("Berlin", "Berlin", []),
    ("A dog runs in the park now.", "Ein Hund Hund Hund Hund rennt.",
     ["repetition"]),
    ("A dog runs in the park now.", "ein roter ein roter ein roter Hund.",
     ["repetition"]),
    ("He said no no no no no.", "Er sagte nein nein nein nein nein.", []),
    ("A man who stands at the street corner sells apples.", "Ein Mann.",
     ["length"]),
    ("A dog runs along the beach.", "Ein Hund rennt am Strand",
     ["unfinished"]),
    ("A dog on the beach", "Ein Hund am Strand", []),
    ("In 1999 he ran.", "Er lief im Jahr 1989.", ["numbers"]),
    ("It cost 1,000.50 then.", "Es kostete damals 1.000,50.", []),
    ("Room ١٢ is free.", "Zimmer 12 ist frei.", []),
    ("我喜欢学习。", "I study a lot", ["length", "unfinished"]),
  ],
)  # fmt: skip
def test_each_warning(source, translation, expected):
  found = warnings_of([*DEFAULT_FIELDS, source], [*TRANSLATED, translation])
  assert found[-1] == expected
  assert all(name in MEANINGS for name in expected)


def test_what_the_model_says_of_itself_counts():
  lines = ["A dog.", "A dog."], ["Ein Hund.", "Ein Hund"]
  assert warnings_of(*lines) == [[], ["unfinished"]]
  assert warnings_of(*lines, [True, False]) == [["unfinished"], []]


def test_the_usual_ratio_is_the_texts_own():
  """Chinese takes a quarter of the characters: nothing is odd about it."""
  sources = ["This is a fairly long sentence about some things there."] * 4
  lines = ["这是一个关于某些事情的相当长的句子。"] * 4
  assert warnings_of(sources, lines) == [[]] * 4
  (*_, last) = warnings_of([*sources, sources[0]], [*lines, "这。"])
  assert last == ["length"]


def test_repetition_by_hand():
  assert repeats(list("aaaa"))
  assert not repeats(list("aaa"))
  assert repeats(list("xababab"))
  assert not repeats(list("abab"))
  assert not repeats([])


def test_numbers_by_hand():
  assert numbers_of("1 and 2, 1") == {"1": 2, "2": 1}
  assert numbers_of("none") == {}
