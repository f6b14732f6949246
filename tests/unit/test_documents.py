"""What the documents say is there, and up to date."""

import importlib.util
import pathlib
import re

import command_line
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
  ROOT / "README.md",
  ROOT / "FIDELITY.md",
  ROOT / "recipes" / "README.md",
  ROOT / "benchmarks" / "README.md",
  ROOT / "examples" / "serving" / "README.md",
  *sorted((ROOT / "docs").glob("*.md")),
]


def test_the_page_of_flags_is_what_its_command_makes():
  path = ROOT / "docs" / "make_flags.py"
  spec = importlib.util.spec_from_file_location("make_flags", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  command_line.forget_flags()
  written = module.PAGE.read_text(encoding="utf-8")
  assert module.page() == written, "run: python docs/make_flags.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
  text = page.read_text(encoding="utf-8")
  for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
    if not target.startswith("http"):
      assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_flags_that_are_named_exist(page, transformer_flags):
  text = page.read_text(encoding="utf-8")
  known = set(transformer_flags)
  for command in (
    command_line.PREPARE,
    command_line.IMPORT,
    command_line.BLEU,
    command_line.DEMO,
    command_line.SERVER,
    command_line.DOWNLOAD,
    command_line.CHECK,
    command_line.REPORT,
  ):
    with command_line.fresh_flags(command) as values:
      known |= set(values)
  named = set(re.findall(r"`--(\w+)", text))
  # Absl's own, those of scripts, and Docker's.
  others = {"rest", "help", "helpfull", "all", "rounds", "rows", "flagfile"}
  others |= {"build", "gpus", "time"}
  unknown = {n for n in named if n.removeprefix("no") not in known} - known
  assert unknown <= others
