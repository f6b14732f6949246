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
  "text",
  [
    "A DOG RUNS.",
    "I AM OK.",
    "HELLO WORLD!",
    "I DON'T KNOW 3 OF THEM.",
    "ROOM OF 20 M\u00b2 FOR RENT",
    "1\u00ba DE MAYO \u00c9 FERIADO",
    "DIE STRA\u00dfE IST NASS.",
    "\u041a\u041e\u0428\u041a\u0410 \u0421\u041f\u0418\u0422.",
  ],
)
def test_text_in_capitals(text):
  assert case_of(text) is CAPITALS


@pytest.mark.parametrize(
  "text",
  [
    "My Name Is Tom And I Live In Boston.",
    "It's A Well-Known Story Again",
    "It'S What Str.Title Makes Of It",
    "The 21st Century Is At An End",
    "E\u0301lan De La Cafe\u0301 Fin",
  ],
)
def test_text_in_title_case(text):
  assert case_of(text) is TITLE


@pytest.mark.parametrize(
  "text",
  [
    "A dog runs.",
    "a dog runs.",
    "THE DOG of Tom",
    "iPhone And Other New Things On It",
    "The Lord of the Rings Returns Again",
    # Abbreviations, and words that may be.
    *("NATO", "STOP!", "I", "NATO, EU", "USA, UK, EU", "JSON API"),
    *("BMW X5 AWD", "AB12 CD34 EF56"),
    # Names, lists, addresses, short sentences.
    "New York City Council",
    "Donald Trump Meets Angela Merkel Today",
    "Tom Hanks, Meg Ryan, Bill Pullman.",
    "Max M\u00fcller, Berliner Stra\u00dfe 12, 10115 Berlin",
    "Montag, Dienstag, Mittwoch, Donnerstag, Freitag",
    *("Jan. Feb. Mar. Apr. May", "Yes. No. Maybe. Stop. Go."),
    # No letters, or letters without case, beside abbreviations.
    *("", "42, 17!", "\u00bd", "\u6211\u7528 HTML \u548c CSS \u5beb"),
    # Cherokee, whose ordinary letters are capitals in Unicode.
    "\u13c2\u13cd\u13f4 \u13a0\u13b4\u13b2\u13b2 \u13a4\u13c2\u13cd",
  ],
)
def test_ordinary_text(text):
  assert case_of(text) is None


@pytest.mark.parametrize(
  ("text", "sentence"),
  [
    ("A DOG RUNS.", "A dog runs."),
    ('"STOP," HE SAID.', '"Stop," he said.'),
    ("3 DOGS RUN.", "3 dogs run."),
    ("2ND WORLD WAR ENDS", "2nd world war ends"),
    ("It's A Well-Known Story", "It's a well-known story"),
    ("WE WENT HOME. MR. SMITH WAS ILL.", "We went home. Mr. smith was ill."),
    ("\u0130STANBUL B\u0130R", "Istanbul bir"),
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
    (
      TITLE,
      "garc\u0327ons donau\u00addampfer",
      "Garc\u0327ons Donau\u00addampfer",
    ),
    # Georgian capitals are for whole words.
    (TITLE, "\u10d2\u10d0 \u10db", "\u10d2\u10d0 \u10db"),
  ],
)
def test_a_translation_gets_the_case(case, text, cased):
  assert case.apply(text) == cased


WORDS = st.lists(
  st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8), min_size=7
)


@given(WORDS)
def test_a_text_comes_back(words):
  capitals = " ".join(words).upper()
  assert CAPITALS.apply(as_sentence(capitals)) == capitals
  title = " ".join(word.title() for word in words)
  assert TITLE.apply(as_sentence(title)) == title
  found = case_of(" ".join(["The", *words, "to", "it"]).title())
  assert found is TITLE


@given(st.text())
def test_no_text_is_too_odd(text):
  case_of(text)
  for case in LetterCase:
    assert isinstance(case.apply(as_sentence(text)), str)
