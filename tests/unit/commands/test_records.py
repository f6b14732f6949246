import dataclasses
import os

import command_line
import pytest
from absl import flags

from official_transformer.commands import flags_core as core
from official_transformer.commands.flag_records import (
  REQUIRED,
  Modes,
  Options,
  fields_of,
  flag,
  parsed,
)
from official_transformer.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaceOptions(Options):
  heading = "Places"

  folder: str | None = flag(None, "Where.", path=True)
  files: tuple[str, ...] = flag(("a", "b"), "Which.", path=True)
  mark: str | None = flag(None, "Not a path.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HouseOptions(PlaceOptions):
  heading = "house"

  name: str = flag(REQUIRED, "Of the house.", short_name="hn")
  rooms: int = flag(
    3,
    "Rooms.",
    (lambda v: v.style == "tent", "a tent has one"),
    lower_bound=1,
  )
  style: str = flag("hut", "Of its kind.", choices=("hut", "tent"))
  guests: tuple[str, ...] = flag((), "Who comes.", repeated=True)
  heated: bool = flag(False, "Whether it is warm.")
  height: float | None = flag(None, "In metres.")

  def __post_init__(self):
    if self.heated and self.style == "tent":
      raise InputError("--heated: a tent burns")


@pytest.fixture
def parse():
  """Returns what makes a record of a command line."""
  command_line.forget_flags()
  core.define_all(HouseOptions)

  def parse(*arguments):
    flags.FLAGS.unparse_flags()
    flags.FLAGS(["command", *arguments])
    core.expand_home(flags.FLAGS)
    return parsed(HouseOptions)

  yield parse
  command_line.forget_flags()


def test_defaults_are_the_fields_own(parse):
  assert parse("--name=x") == HouseOptions(name="x")
  assert parse("--name=x").given == {"name"}


def test_values_have_the_fields_types(parse):
  found = parse(
    *("-hn", "x", "--rooms=4", "--style=tent", "--guests=a,b"),
    *("--guests=c", "--noheated", "--height=2", "--files=c,d"),
  )
  assert found == HouseOptions(
    name="x",
    rooms=4,
    style="tent",
    guests=("a,b", "c"),
    height=2.0,
    files=("c", "d"),
  )
  assert "heated" in found.given and "folder" not in found.given


@pytest.mark.parametrize(
  ("arguments", "complaint"),
  [
    ([], "name"),
    (["--name=x", "--rooms=0"], "rooms"),
    (["--name=x", "--style=palace"], "should be one of"),
  ],
)
def test_absl_refuses_what_no_field_may_be(parse, arguments, complaint):
  with pytest.raises(flags.Error, match=complaint):
    parse(*arguments)


def test_a_contradiction_is_said_at_once(parse):
  with pytest.raises(InputError, match="--heated: a tent burns"):
    parse("--name=x", "--heated", "--style=tent")


def test_only_paths_begin_at_home(parse, monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  found = parse("--name=~/x", "--folder=~/a,b,~/c", "--files=~/d,e", "--mark=~")
  home = os.fspath(tmp_path)
  assert found.folder == f"{home}/a,b,{home}/c"
  assert found.files == (f"{home}/d", "e")
  assert (found.name, found.mark) == ("~/x", "~")


def test_headings_are_those_of_the_classes():
  assert {heading: list(specs) for heading, specs in
          fields_of(HouseOptions).items()} == {
    "house": ["name", "rooms", "style", "guests", "heated", "height"],
    "Places": ["folder", "files", "mark"],
  }  # fmt: skip


def test_a_flag_without_effect_says_so(parse):
  options = parse("--name=x", "--style=tent", "--rooms=2")
  (line,) = core.without_effect(options)
  assert line == "--rooms has no effect: a tent has one"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuinOptions(PlaceOptions):
  heading = "ruin"

  bats: int = flag(7, "Who lives there.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LostOptions(PlaceOptions):
  heading = "ruin"

  ghosts: int = flag(0, "Accepted.", never="there are none")


MODES = Modes(
  {"house": HouseOptions, "ruin": RuinOptions},
  ("Places", "house", "ruin"),
  accepted=LostOptions,
)


@pytest.fixture
def said():
  """Returns what makes a record, by its mode, and what is said of flags."""
  command_line.forget_flags()
  core.define_all(MODES)

  def said(*arguments):
    flags.FLAGS.unparse_flags()
    flags.FLAGS(["command", "--name=x", *arguments])
    options = parsed(MODES)
    return options, list(core.without_effect(options))

  yield said
  command_line.forget_flags()


def test_a_mode_has_its_own_record(said):
  assert said()[0] == HouseOptions(name="x")
  options, _ = said("--mode=ruin", "--bats=3", "--folder=f")
  assert options == RuinOptions(bats=3, folder="f")


def test_a_flag_of_another_mode_has_no_effect(said):
  _, lines = said("--bats=3", "--ghosts=1", "--folder=f")
  assert lines == [
    "--bats has no effect with --mode=house",
    "--ghosts has no effect: there are none",
  ]


def test_flags_know_who_reads_them(said):
  assert core.definition_of("bats").modes == ("ruin",)
  assert core.definition_of("folder").modes == ()
  assert core.definition_of("ghosts").modes == ()
