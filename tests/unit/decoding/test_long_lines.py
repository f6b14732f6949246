from hypothesis import given
from hypothesis import strategies as st

from official_transformer.decoding.long_lines import cut_line, cut_sentences


def words(text):
  return len(text.split())


def cut(text, longest, length=words):
  return [p.text for p in cut_line(text, length, longest)]


def test_a_short_line_stays_whole():
  assert cut("One. Two. Three.", 3) == ["One. Two. Three."]


def test_cuts_come_at_the_sentence_end_nearest_the_middle():
  text = "A b. C d e f. G h. I j k. L m."
  assert cut(text, 6) == ["A b. C d e f.", "G h. I j k.", "L m."]


def test_quotes_and_brackets_stay_with_their_sentence():
  text = 'He said "no." She (too!) left. "Why?" he asked.'
  assert cut(text, 5) == [
    'He said "no."',
    "She (too!) left.",
    '"Why?" he asked.',
  ]
  # Text without capitals has sentences too.
  assert cut("a b. c d. e f.", 4) == ["a b. c d.", "e f."]


def test_without_sentence_ends_commas_then_spaces_then_anywhere():
  assert cut("a b c, d e f, g h", 5) == ["a b c,", "d e f, g h"]
  assert cut("a b c d e f", 3) == ["a b c", "d e f"]
  assert cut("abcdefgh", 4, len) == ["abcd", "efgh"]
  # A number's point is no sentence end.
  assert cut("a 3.5 b c. d e", 4) == ["a 3.5 b c.", "d e"]


def test_a_character_is_not_cut():
  family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
  for whole in ("e\u0301", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", family):
    assert cut(whole * 2, len(whole), len) == [whole] * 2
    assert cut("a" + whole, 1, len)[0] == "a"


def test_no_crumbs():
  assert cut("Mr. aa bb cc dd ee ff gg hh ii jj", 8) == [
    "Mr. aa bb cc dd",
    "ee ff gg hh ii jj",
  ]


def test_a_very_long_line_is_not_measured_over_and_over():
  text = "A sentence of five words. " * 20_000
  measured = []

  def counted(part):
    measured.append(len(part))
    return words(part)

  pieces = cut_line(text, counted, 100)
  assert len(pieces) >= 1000
  # Each halving measures all of it once: 10 of them make 1,024 pieces.
  assert sum(measured) <= 16 * len(text)


def test_scripts_without_spaces():
  text = "\u4eca\u65e5\u306f\u3002\u96e8\u3060\u3002"
  pieces = cut_line(text, len, 4)
  assert [p.text for p in pieces] == [text[:4], text[4:]]
  assert [p.joint for p in pieces] == ["", ""]


def test_joints_are_what_stood_there():
  pieces = cut_line("  a b.\tc d.  e\u00a0\u3000f ", words, 2)
  assert [p[:2] for p in pieces] == [
    ("a b.", ""),
    ("c d.", "\t"),
    ("e\u00a0\u3000f", "  "),
  ]


@given(st.text(min_size=1), st.integers(1, 20))
def test_nothing_is_lost_and_no_piece_is_long_or_blank(text, longest):
  if not text.strip():
    return
  pieces = cut_line(text, len, longest)
  for piece in pieces:
    assert piece.text.strip() == piece.text != ""
    assert len(piece.text) <= longest
  rejoined = "".join(p.joint + p.text for p in pieces)
  assert rejoined == text.strip()


def test_sentences_are_cut_where_they_stand():
  found = cut_sentences(" A b.\t\tC d!  (E.) f. \u597d\u3002\u597d\u3002 ")
  assert [p[:2] for p in found] == [
    ("A b.", ""),
    ("C d!", "\t\t"),
    ("(E.) f.", "  "),
    ("\u597d\u3002", " "),
    ("\u597d\u3002", ""),
  ]


def test_a_tab_divides_what_is_no_sentence():
  found = cut_sentences("Name:\tTom \t  a dog\t\tb  c")
  assert [p[:2] for p in found] == [
    ("Name:", ""),
    ("Tom", "\t"),
    ("a dog", " \t  "),
    ("b  c", "\t\t"),
  ]


@given(st.text(alphabet="aB .!?\u3002\u201d\t", min_size=1))
def test_sentences_and_what_stands_between_are_the_line(text):
  if text.strip():
    pieces = cut_sentences(text)
    assert "".join(p.joint + p.text for p in pieces) == text.strip()
