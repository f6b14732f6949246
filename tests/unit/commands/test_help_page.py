import re

import command_line
import pytest

from official_transformer.commands.flag_records import fields_of
from official_transformer.commands.help_page import (
  asked_mode,
  define_help,
  help_page,
)
from official_transformer.commands.modes import MODES


def names_in(page):
  return re.findall(r"^  (?:-\w+, )?--(?:\[no\])?(\w+)", page, re.MULTILINE)


def test_without_a_mode_the_modes_and_ten_flags_are_told(transformer_flags):
  page = help_page(MODES, "What it is for.")
  assert page.startswith("What it is for.\n\n")
  for mode, record in MODES.records.items():
    assert re.search(rf"^  {mode} +{record.summary}$", page, re.MULTILINE)
  assert names_in(page) == list(MODES.most_used)
  assert len(MODES.most_used) == 10


@pytest.mark.parametrize("mode", MODES.records)
def test_a_mode_has_each_flag_that_it_reads_once(mode, transformer_flags):
  record = MODES.records[mode]
  page = help_page(MODES, "", mode)
  read = {
    name
    for specs in fields_of(record).values()
    for name, spec in specs.items()
    if not spec.never
  }
  found = names_in(page)
  assert sorted(found) == sorted(read)
  assert found[: len(record.most_used)] == list(record.most_used)


def test_what_nothing_reads_is_not_told(transformer_flags):
  page = help_page(MODES, "", "train")
  assert "enable_mlir_bridge" in transformer_flags
  assert "enable_mlir_bridge" not in page


@pytest.mark.parametrize(
  "arguments, mode",
  [
    (["--mode=predict", "--help"], "predict"),
    (["--help", "--mode", "eval"], "eval"),
    (["-mode=eval", "-mode=plot"], "plot"),
    (["--help", "--mode"], None),
    (["--model_dir=mode=x", "--help"], None),
  ],
)
def test_the_mode_is_found_before_and_after_help(arguments, mode):
  assert asked_mode(arguments) == mode


@pytest.mark.parametrize("argument", ["--help", "--helpshort", "-?"])
def test_a_command_answers_with_its_page(
  argument, transformer_flags, monkeypatch, capsys
):
  line = ["transformer_main", argument, "--mode=score"]
  monkeypatch.setattr("sys.argv", line)
  define_help(MODES, "What it is for.")
  with pytest.raises(SystemExit) as end:
    transformer_flags(line)
  assert end.value.code == 1  # As absl has it.
  page = capsys.readouterr().out
  assert page.startswith("--mode=score: tell how probable")
  assert "reference_file" in names_in(page)


def test_a_command_without_modes_tells_all_its_flags():
  with command_line.fresh_flags(command_line.DEMO):
    page = help_page(command_line.record_of(command_line.DEMO), "About.")
    assert page.startswith("About.\n\ndemo_corpus:\n")
    assert "output_dir" in names_in(page)
