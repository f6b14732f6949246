import pytest

from data_prep.encoding import filters as lib
from official_transformer.errors import InputError
from official_transformer.text.text_form import TextForm


def reason(source, target, held_out=(), **settings):
  return lib.TextFilter(
    lib.FilterSettings(**settings), frozenset(held_out)
  ).reason(source, target)


def test_by_default_only_empty_sides_are_left_out():
  assert reason("", "a") == lib.EMPTY_SOURCE
  assert reason("a", "") == lib.EMPTY_TARGET
  assert reason("a", "a") is None
  assert reason("\x07", "Привет" * 1000) is None
  assert lib.token_reason(lib.FilterSettings(), 2, 10_000) is None
  assert lib.FilterSettings().to_json() == {}


@pytest.mark.parametrize(
  ("source", "control"),
  [
    ("a\x07", True),
    ("\x85", True),
    ("a\u202eb", True),
    ("a\tb", False),
    ("a\u00a0b\u3000", False),
    ("a\u200d", False),
  ],
)
def test_control_characters(source, control):
  for pair in ((source, "x"), ("x", source)):
    found = reason(*pair, control_characters=True)
    assert found == (lib.CONTROL if control else None)


def test_identical_sides_and_held_out_text():
  assert reason("a b", "a b", identical=True) == lib.IDENTICAL
  assert reason("a b", "a c", identical=True) is None
  assert reason("a", "b", held_out=["b"]) == lib.HELD_OUT
  assert reason("b", "a", held_out=["b"]) == lib.HELD_OUT
  assert reason("a", "bb", held_out=["b"]) is None


def test_held_out_text_is_compared_in_the_datas_form(tmp_path):
  path = tmp_path / "test"
  path.write_bytes(b"  Caf\xc3\x89 \r\n\n\xff\n")
  form = TextForm(lowercase=True)
  assert lib.read_held_out([str(path)], form) == {"café", "\ufffd"}


@pytest.mark.parametrize(
  ("tokens", "settings", "expected"),
  [
    ((1, 5), {}, lib.SOURCE_WITHOUT_TOKENS),
    ((5, 1), {}, lib.TARGET_WITHOUT_TOKENS),
    ((11, 3), {"max_tokens": 11}, None),
    ((12, 3), {"max_tokens": 11}, lib.TOO_LONG),
    ((3, 12), {"max_tokens": 11}, lib.TOO_LONG),
    # Without EOS, ten tokens beside five, and beside four.
    ((11, 6), {"max_ratio": 2.0}, None),
    ((5, 11), {"max_ratio": 2.0}, lib.RATIO),
  ],
)
def test_tokens(tokens, settings, expected):
  assert lib.token_reason(lib.FilterSettings(**settings), *tokens) == expected


@pytest.mark.parametrize(
  ("script", "text", "fits"),
  [
    ("latin", "Grüße aus Łódź, 42!", True),
    ("latin", "Привет", False),
    ("cyrillic", "Привет, world", True),  # Six letters of eleven.
    ("cyrillic", "Привет, big world", False),
    ("han", "我们 go", True),
    ("han", "すし", False),
    ("japanese", "寿司がすき", True),
    ("arabic", "مرحبا", True),
    ("greek", "42 - 17", True),  # No letters: nothing speaks against it.
  ],
)
def test_scripts(script, text, fits):
  assert reason(text, "x", source_script=script) == (
    None if fits else lib.SOURCE_SCRIPT
  )
  assert reason("x", text, target_script=script) == (
    None if fits else lib.TARGET_SCRIPT
  )


def test_what_cannot_be_asked_for():
  with pytest.raises(InputError, match="--source_script=klingon is unknown"):
    lib.FilterSettings(source_script="klingon")
  with pytest.raises(InputError, match="would leave out every pair"):
    lib.FilterSettings(max_ratio=0.5)
