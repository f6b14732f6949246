import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  decoded_spans,
  load_tokenizer,
)
from official_transformer.text.words import Span, words_of, words_under


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("A dog runs.", ["A", "dog", "runs."]),
    ("  two  blanks\u00a0here ", ["two", "blanks", "here"]),
    ("我爱 Berlin吗?", ["我", "爱", "Berlin", "吗", "?"]),
    ("こんにちは", list("こんにちは")),
    ("나는 학생", ["나는", "학생"]),
    # A vowel sign stays with its consonant.
    ("ภาษา", ["ภ", "า", "ษ", "า"]),
    ("ที่", ["ที่"]),
    ("e\u0301te\u0301 ok", ["e\u0301te\u0301", "ok"]),
    ("", []),
    ("   ", []),
  ],
)
def test_words(text, words):
  assert [span.of(text) for span in words_of(text)] == words


@given(st.text())
def test_words_hold_all_that_is_no_blank(text):
  words = words_of(text)
  assert "".join(w.of(text) for w in words) == "".join(text.split())
  assert all(a.end <= b.start for a, b in itertools.pairwise(words))


def test_words_under_spans():
  words = words_of("ab 北京 c")
  spans = [Span(0, 1), Span(1, 3), Span(3, 5), Span(5, 5), Span(5, 7)]
  assert words_under(words, spans) == [[0], [0], [1, 2], [], [3]]


@pytest.fixture(scope="module", params=["sentencepiece", "subtokens"])
def tokenizer(request, demo_data, demo_text):
  if request.param == "sentencepiece":
    return load_tokenizer(str(demo_data / "vocab.400.model"))
  return Subtokenizer.build([str(demo_text / "train.en")], 300)


@pytest.mark.parametrize(
  "text",
  [
    "The dogs run, again.",
    " Two  blanks , and an Ümlaut ½ 北京 _x\\ ",
    "",
    "...!? a",
  ],
)
def test_spans_follow_the_ids(tokenizer, text):
  ids, spans = tokenizer.encode(text), tokenizer.spans(text)
  assert len(spans) == len(ids)
  assert all(0 <= s.start <= s.end <= len(text) for s in spans)
  starts = [s.start for s in spans]
  assert starts == sorted(starts)
  covered = {place for s in spans for place in range(*s)}
  assert all(n in covered for n, c in enumerate(text) if not c.isspace())


def test_pieces_are_found_in_the_text(tokenizer):
  text = "The dogs run"
  for piece, span in zip(
    tokenizer.pieces(tokenizer.encode(text)), tokenizer.spans(text), strict=True
  ):
    assert span.of(text).strip() == piece.strip("▁_")


def test_decoded_spans_lie_side_by_side(tokenizer):
  ids = tokenizer.encode("The dogs run , again !")
  text, spans = tokenizer.decode(ids), decoded_spans(tokenizer, ids)
  assert len(spans) == len(ids)
  assert "".join(s.of(text) for s in spans) == text
  assert decoded_spans(tokenizer, []) == []


def test_text_is_brought_into_its_form_first(tokenizer):
  formed = FormedTokenizer(tokenizer, TextForm(lowercase=True))
  text = "  THE dogs "
  assert len(formed.spans(text)) == len(formed.encode(text))
  assert formed.spans(text) == tokenizer.spans("the dogs")
