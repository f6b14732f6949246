"""Models by the languages that they translate."""

import os

import pytest

from official_transformer.errors import InputError
from official_transformer.serving.directions import (
  UNNAMED,
  Direction,
  choose_direction,
  parse_directions,
)

EN_DE, DE_EN = Direction("en", "de"), Direction("de", "en")


@pytest.mark.parametrize(
  ("flag", "found"),
  [
    ("model", {UNNAMED: "model"}),
    ("a,b", {UNNAMED: "a,b"}),
    ("en-de=a", {EN_DE: "a"}),
    ("en-de=a,de-en=b", {EN_DE: "a", DE_EN: "b"}),
    ("en-de=a, de-en=b=c", {EN_DE: "a", DE_EN: "b=c"}),
    # Several that decide together.
    ("en-de=a,b,de-en=c", {EN_DE: "a,b", DE_EN: "c"}),
    ("zh_hant-PT_br=a", {Direction("zh-Hant", "pt-BR"): "a"}),
    ("en-de=~/a", {EN_DE: os.path.expanduser("~/a")}),
  ],
)
def test_a_flag_names_models(flag, found):
  assert parse_directions(flag) == found


def test_what_names_none_is_refused():
  with pytest.raises(InputError, match="en-de twice"):
    parse_directions("en-de=a,en-de=b")
  with pytest.raises(InputError, match="en-de twice"):
    parse_directions("EN-DE=a,en-de=b")
  with pytest.raises(InputError, match="a has no direction"):
    parse_directions("a,en-de=b")
  for name in ("auto-de=a", "en_de=a", "zh-Hant-en=a", "en-de=a,de_en=b"):
    with pytest.raises(InputError, match="written as en-de=DIR"):
      parse_directions(name)


def test_a_directory_may_look_like_a_direction(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "run-lr=0.1").mkdir()
  assert parse_directions("run-lr=0.1") == {UNNAMED: "run-lr=0.1"}


def test_a_direction_is_written_as_it_is_named():
  for name in ("en-de", "zh_Hant-pt_BR"):
    (direction,) = parse_directions(f"{name}=a")
    assert str(direction) == name
  assert str(UNNAMED) == ""


@pytest.mark.parametrize(
  ("source", "target", "found"),
  [
    ("en", "de", EN_DE),
    ("EN", "de-AT", EN_DE),
    ("en_GB", None, EN_DE),
    (None, "en", DE_EN),
  ],
)
def test_the_direction_that_fits_is_chosen(source, target, found):
  assert choose_direction([EN_DE, DE_EN], source, target) == found


def test_a_variant_is_another_language_where_it_has_a_model():
  portuguese = [Direction("pt", "en"), Direction("pt-BR", "en")]
  assert choose_direction(portuguese, "pt-br", "en") == portuguese[1]
  assert choose_direction(portuguese, "pt-PT", "en") == portuguese[0]
  assert choose_direction(portuguese[1:], "pt", None) == portuguese[1]
  chinese = [Direction("zh-Hant", "en"), Direction("zh-Hans", "en")]
  with pytest.raises(InputError, match="no model translates from zh"):
    choose_direction(chinese, "zh", "en")


@pytest.mark.parametrize(
  ("source", "target", "message"),
  [
    ("fr", "de", "no model translates from fr to de: there are en-de, de-en"),
    ("fr", None, "from fr to any language"),
    (None, None, "name source and target: there are en-de, de-en"),
  ],
)
def test_what_fits_none_or_several_is_refused(source, target, message):
  with pytest.raises(InputError, match=message):
    choose_direction([EN_DE, DE_EN], source, target)


def test_a_model_without_languages_is_asked_for_none():
  assert choose_direction([UNNAMED], None, None) == UNNAMED
  with pytest.raises(InputError, match="--model_dir=en-de=DIR"):
    choose_direction([UNNAMED], "en", "de")
