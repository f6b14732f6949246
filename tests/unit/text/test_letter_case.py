import pytest
from hypothesis import given
from hypothesis import strategies as st

from official_transformer.text.letter_case import (
  LetterCase,
  as_sentence,
  case_of,
)

CAPITALS, TITLE = LetterCase.CAPITALS, LetterCase.TITLE


@pytest.mark.parametrize(
  ("text", "case"),
  [
    ("A DOG RUNS.", CAPITALS),
    ("I AM OK.", CAPITALS),
    ("HELLO WORLD!", CAPITALS),
    ("I DON'T KNOW 3 OF THEM.", CAPITALS),
    ("DIE STRA\u00dfE IST NASS.", CAPITALS),
    ("\u041a\u041e\u0422 \u0421\u041f\u0418\u0422.", CAPITALS),
    ("My Name Is Tom, I Live In Boston.", TITLE),
    ("It's A Well-Known Story Again", TITLE),
    ("It'S What Str.Title Makes", TITLE),
    ("A dog runs.", None),
    ("a dog runs.", None),
    # Abbreviations, a single word, names.
    ("NATO", None),
    ("STOP!", None),
    ("USA, UK", None),
    ("I", None),
    ("New York City Council", None),
    ("The Lord of the Rings Returns Again", None),
    ("THE DOG of Tom", None),
    ("iPhone And Other New Things", None),
    # No letters, or letters without case, beside abbreviations.
    ("", None),
    ("42, 17!", None),
    ("\u6211\u7528 HTML \u548c CSS \u5beb\u7db2\u9801", None),
  ],
)
def test_the_case_of_a_text(text, case):
  assert case_of(text) is case


@pytest.mark.parametrize(
  ("text", "sentence"),
  [
    ("A DOG RUNS.", "A dog runs."),
    ('"STOP," HE SAID.', '"Stop," he said.'),
    ("3 DOGS RUN.", "3 Dogs run."),
    ("It's A Well-Known Story", "It's a well-known story"),
  ],
)
def test_the_same_text_as_a_sentence(text, sentence):
  assert as_sentence(text) == sentence


@pytest.mark.parametrize(
  ("case", "text", "cased"),
  [
    (CAPITALS, "Die Stra\u00dfe ist na\u00df.", "DIE STRASSE IST NASS."),
    (TITLE, "ich wei\u00df's nicht-so gut.", "Ich Wei\u00df's Nicht-So Gut."),
    (TITLE, "l'ami de 3 gar\u00e7ons", "L'ami De 3 Gar\u00e7ons"),
  ],
)
def test_a_translation_gets_the_case(case, text, cased):
  assert case.apply(text) == cased


@given(st.text())
def test_no_text_is_too_odd(text):
  case = case_of(text)
  if case:
    assert case.apply(as_sentence(text)).strip()
  # Text that has the case of a sentence is taken as it is.
  assert case_of(as_sentence(text)) is not TITLE
