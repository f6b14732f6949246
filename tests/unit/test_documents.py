"""What the documents say is there, and up to date."""

import ast
import importlib.util
import pathlib
import re

import command_line
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
  *(ROOT / f"{name}.md" for name in ("README", "FIDELITY", "CHANGELOG")),
  *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY")),
  ROOT / "benchmarks" / "results.md",
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


# Its commands are those of their time, and of peers.
LOG = ROOT / "benchmarks" / "history" / "measurements.md"


@pytest.mark.parametrize("page", [*PAGES, LOG], ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
  text = page.read_text(encoding="utf-8")
  for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
    if target.startswith("http"):
      continue
    found = page.parent / target if target else page
    assert found.exists(), target
    if anchor:
      assert anchor in anchors(found), f"{target}#{anchor}"


def anchors(page):
  """Returns the names that a web view gives a page's headings."""
  titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
  kept = (re.sub(r"[^\w\s-]", "", title.lower()) for title in titles)
  return {title.replace(" ", "-") for title in kept}


def rows_below(page, heading):
  """Returns the cells of the tables' rows below a heading of a page."""
  text = page.read_text("utf-8").split(f"## {heading}\n")[1]
  rows = re.findall(r"^\| (.+) \|$", text.split("\n## ")[0], re.MULTILINE)
  return [row.split(" | ") for row in rows]


def test_the_readmes_results_are_rows_of_all_results():
  results = rows_below(
    ROOT / "benchmarks" / "results.md", "Translation quality"
  )
  found = {
    (row[0].split(",")[0], *row[1:4]) for row in results if "±" in row[2]
  }
  named = rows_below(ROOT / "README.md", "Four results")[2:]
  assert len(named) == 4
  assert {tuple(row) for row in named} <= found


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
  for folder in ("benchmarks", "recipes"):
    for script in (ROOT / folder).glob("*.py"):
      known |= set(
        re.findall(r'add(?:_argument)?\(\s*"--(\w+)', script.read_text())
      )
  named = set(re.findall(r"`--(\w+)", text))
  # Absl's own, those of shell scripts, and Docker's.
  others = {"rest", "help", "helpfull", "all", "flagfile"}
  others |= {"build", "gpus", "time"}
  unknown = {n for n in named if n.removeprefix("no") not in known} - known
  assert unknown <= others


def literals(package):
  """Yields the text of all literals of a package, {} where values stand."""
  for path in (ROOT / package).rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
      if isinstance(node, ast.JoinedStr):
        yield "".join(
          str(part.value) if isinstance(part, ast.Constant) else "{}"
          for part in node.values
        )
      elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_the_messages_that_are_explained_exist():
  known = [*literals("official_transformer"), *literals("data_prep")]
  rows = rows_below(ROOT / "docs" / "troubleshooting.md", "Messages")[2:]
  assert len(rows) > 9
  for row in rows:
    for message in re.findall(r"`([^`]+)`", row[0]):
      for part in filter(None, map(str.strip, message.split("..."))):
        assert any(part in text for text in known), part


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_modules_that_are_named_exist(page):
  # Upstream's files are named in the first column of its table.
  theirs = page.stem in ("upstream", "FIDELITY", "CHANGELOG")
  folders = ("official_transformer", "data_prep", "tests", "docs", "benchmarks")
  known = [
    f"/{path.relative_to(ROOT)}"
    for folder in (*folders, "flags", "recipes")
    for path in (ROOT / folder).rglob("*.py")
  ]
  known.append("/setup.py")
  for name in re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")):
    found = any(path.endswith(f"/{name}") for path in known)
    assert found or (theirs and name.count("/") < 2), name
