"""Flags that contradict each other, or name the same file twice."""

import pytest

from official_transformer.commands.predict import PredictOptions
from official_transformer.commands.serve import ServiceOptions
from official_transformer.commands.train_options import TrainOptions
from official_transformer.errors import InputError
from official_transformer.translate import TranslateOptions


@pytest.mark.parametrize(
  "name", ["prefix_file", "required_phrases", "forbidden_phrases"]
)
def test_a_file_that_guides_the_search_is_not_overwritten(tmp_path, name):
  source, guide = tmp_path / "in", tmp_path / "guide"
  source.write_text("a\n")
  guide.write_text("b\n")
  options = PredictOptions(
    model_dir="m", file=str(source), file_out=str(guide), **{name: str(guide)}
  )
  with pytest.raises(InputError, match="file_out"):
    options._check_files()
  assert guide.read_text() == "b\n"


def requested(kind, override, **flags):
  options = kind(
    model_dir="m", text="a", params_override=override, given=set(flags), **flags
  )
  return options.requested_params.overrides


def test_an_override_wins_over_the_default_of_a_flag():
  override = "extra_decode_length=30"
  for kind in (PredictOptions, TranslateOptions):
    assert requested(kind, override)["extra_decode_length"] == 30
  assert requested(TranslateOptions, "")["extra_decode_length"] == 100


def test_an_override_that_contradicts_a_flag_is_refused():
  with pytest.raises(InputError, match="--beam_size=2 contradicts"):
    requested(PredictOptions, "beam_size=5", beam_size=2)
  found = requested(PredictOptions, "beam_size=2", beam_size=2)
  assert found["beam_size"] == 2


def test_training_refuses_a_wrong_pattern_before_it_begins():
  with pytest.raises(InputError, match="--keep"):
    TrainOptions(
      model_dir="m", data_dir="d", bleu_source="a", bleu_ref="b", keep="("
    )


def test_a_document_has_its_own_markup(tmp_path):
  page = tmp_path / "page.html"
  page.write_text("<p>a</p>")
  options = PredictOptions(
    model_dir="m", file=str(page), markup="html", given={"file", "markup"}
  )
  with pytest.raises(InputError, match="--markup is for lines"):
    options.check_document_flags(())


@pytest.mark.parametrize(
  "flag",
  ["max_connections=2147483648", "batch_wait_ms=1e13", "reload_secs=1e10"],
)
def test_values_beyond_what_a_system_waits_for_are_refused(flag):
  import command_line

  said = command_line.fail(command_line.SERVER, "--model_dir=m", f"--{flag}")
  assert flag.partition("=")[0] in said


def test_the_key_of_the_environment_has_no_line_end(monkeypatch):
  from official_transformer.commands.serve import read_api_key
  from official_transformer.serving.settings import API_KEY_VARIABLE

  assert ServiceOptions(model_dir="m").api_key_file is None
  for value, key in (("k\n", "k"), (" ", None), ("", None)):
    monkeypatch.setenv(API_KEY_VARIABLE, value)
    assert read_api_key(None) == key
  monkeypatch.setenv(API_KEY_VARIABLE, "a\nb")
  with pytest.raises(InputError, match=API_KEY_VARIABLE):
    read_api_key(None)
