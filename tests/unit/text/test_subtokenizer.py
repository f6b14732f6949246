import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_transformer.errors import InputError
from official_transformer.text import subtokenizer as lib
from official_transformer.text.packed_ids import pack

TEXT = "the cat sat on the mat , the cat_ and the rat sat \\ there .\n" * 20


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("text") / "text"
  path.write_text(TEXT, encoding="utf-8")
  return lib.Subtokenizer.build([str(path)], 100, min_count=2)


@pytest.mark.parametrize(
  ("text", "tokens"),
  [
    ("", []),
    ("Hello, world", ["Hello", ", ", "world"]),
    ("a b", ["a", "b"]),
    ("a  b", ["a", "  ", "b"]),
    (" a", [" ", "a"]),
    ("a ", ["a", " "]),
    ("3.14 x²", ["3", ".", "14", "x²"]),
  ],
)
def test_tokens_split_where_words_meet_others(text, tokens):
  assert lib.split_to_tokens(text) == tokens


def test_escapes_by_hand():
  alphabet = set("ab\\u_;0123456789")
  assert lib.escape_token("a_b\\", alphabet) == "a\\ub\\\\_"
  assert lib.escape_token("é\n", alphabet) == "\\233;\\10;_"
  assert lib.unescape_token("a\\ub\\\\") == "a_b\\"
  assert lib.unescape_token("\\233;\\10;") == "é\n"
  assert lib.unescape_token("\\99999999;") == "\u3013"
  assert lib.unescape_token("\\55296;") == "\u3013"  # Half a UTF-16 pair.


def test_vocabulary_by_hand(tmp_path):
  """Counted by hand: what occurs twice, minus what longer entries took."""
  path = tmp_path / "text"
  path.write_text("abc abc abd\n", encoding="utf-8")
  tokenizer = lib.Subtokenizer.build([str(path)], 100, min_count=2)
  assert tokenizer.subtokens[:2] == ["<pad>", "<EOS>"]
  # "abc_" twice and, without "abc_", nothing longer than a letter twice.
  multi = [s for s in tokenizer.subtokens[2:] if len(s) > 1]
  assert multi == ["abc_"]
  assert tokenizer.encode("abc")[0] == tokenizer.subtokens.index("abc_")


def test_file_has_the_official_format(tokenizer, tmp_path):
  path = tmp_path / "vocab"
  tokenizer.save(str(path))
  lines = path.read_text(encoding="utf-8").split("\n")
  assert lines[:2] == ["'<pad>'", "'<EOS>'"]
  assert lines[-1] == ""
  assert len(lines) - 1 == tokenizer.vocab_size
  again = lib.Subtokenizer(str(path))
  assert again.subtokens == tokenizer.subtokens


def test_frequent_words_are_one_subtoken(tokenizer):
  assert len(tokenizer.encode("the")) == 1
  assert tokenizer.encode("the", add_eos=True)[-1] == lib.EOS_ID
  assert "the_" in tokenizer.subtokens


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_text_survives(tokenizer, text):
  ids = tokenizer.encode(text)
  assert all(1 < i < tokenizer.vocab_size for i in ids)
  # One space between words is implied, so only it may be lost: at an end.
  decoded = tokenizer.decode(ids)
  assert decoded.split() == text.split()
  if not text.startswith(" ") and not text.endswith(" "):
    assert decoded == text


def test_search_comes_near_the_target(tmp_path):
  path = tmp_path / "text"
  words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklm" for c in "nopqr"]
  path.write_text(
    "\n".join(" ".join(words[: n + 1]) for n in range(len(words))),
    encoding="utf-8",
  )
  tokenizer = lib.Subtokenizer.build([str(path)], 100, threshold=10)
  assert abs(tokenizer.vocab_size - 100) < 30


def test_a_file_of_another_kind_is_refused(tmp_path):
  path = tmp_path / "vocab"
  path.write_text("'<pad>'\n'<EOS>'\nword\n", encoding="utf-8")
  with pytest.raises(InputError, match="line 3: 'word' does not stand"):
    lib.Subtokenizer(str(path))


def test_ids_beyond_the_vocabulary_decode_to_nothing(tokenizer):
  ids = tokenizer.encode("the cat")
  assert tokenizer.decode([*ids, tokenizer.vocab_size + 5]) == "the cat"


@settings(deadline=None, max_examples=500)
@given(
  st.text(st.sampled_from(" aZ9.,_\\\t\u00a0\u3000\u4e2d\u0301"), max_size=12)
)
def test_words_at_a_time_are_cut_as_single_tokens_are(tokenizer, text):
  """`encode` takes a word with what follows it; `split_to_tokens` rules."""
  one_by_one = [
    tokenizer.subtokens.index(piece)
    for token in lib.split_to_tokens(text)
    for piece in lib._cut(
      lib.escape_token(token, tokenizer.alphabet),
      set(tokenizer.subtokens),
      max(map(len, tokenizer.subtokens)),
    )
  ]
  assert tokenizer.encode(text) == one_by_one
  packed = tokenizer.pack_lines([text]).packed
  assert packed == [pack([*one_by_one, lib.EOS_ID])]
