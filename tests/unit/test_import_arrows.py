"""Who may import whom: the rooms of the project and the arrows between them.

docs/architecture.md draws them.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = "official_transformer"

# What every room may import: modules that belong to none, and files.
LEAVES = {"errors", "hardware", "model_params", "storage"}
# What each room may import besides the leaves and itself; from the top down.
ARROWS = {
  "commands": {
    "flag_groups",
    "data",
    "decoding",
    "distribution",
    "evaluation",
    "exporting",
    "model",
    "model_directory",
    "plotting",
    "search",
    "serving",
    "training",
  },
  "serving": {"decoding"},
  "training": {"data", "distribution", "model", "model_directory", "ops"},
  "evaluation": {"data", "decoding", "model_directory"},
  "exporting": {"data", "decoding", "model", "model_directory", "search"},
  "importing": {"data", "model", "model_directory"},
  "decoding": {"data", "model", "model_directory", "ops", "search"},
  "model_directory": {"data"},
  "plotting": set(),
  "distribution": set(),
  "model": {"hardware", "ops", "search"},
  "search": {"ops"},
  "ops": {"hardware"},
  "data": set(),
  "flag_groups": {"storage"},
  "storage": set(),
  "hardware": set(),
}
# The doors: flags in, one command run.
DOORS = {
  "transformer_main": {"commands", "flag_groups"},
  "translate": {"commands", "decoding", "flag_groups"},
  "compute_bleu": {"commands", "data", "evaluation", "flag_groups"},
  "translation_report": {"commands", "flag_groups"},
  "import_checkpoint": {"data", "importing", "flag_groups"},
  "translation_server": {"commands", "flag_groups"},
}
LEAF_ARROWS = {
  "errors": set(),
  "model_params": {"errors"},
}
UPSTREAMS_CALLS = {
  "sequence_beam_search",
  "SequenceBeamSearch.__init__",
  "DecoderStack.call",
  "Subtokenizer.init_from_files",
  "translate_file",
}
# Some modules know less than their room may.
STRICTER = {
  "hardware/processor.py": set(),
  "ops/top_k.py": set(),
  "evaluation/bleu.py": set(),
  "evaluation/comet.py": {"data", "errors"},
  "evaluation/scores.py": {"evaluation"},
  "evaluation/metrics.py": {"errors", "evaluation"},
  "evaluation/significance.py": {"evaluation"},
  "commands/scoring.py": {"errors", "evaluation", "flag_groups"},
  "data/text_files.py": {"storage", "errors"},
  "data/identity.py": {"errors", "storage"},
  "importing/formats.py": set(),
  "training/step/optimizer.py": {"model_params"},
  "search/beam_search.py": {"ops", "search"},
  "search/state.py": set(),
  "search/rules.py": set(),
  "search/options.py": {"errors"},
  "serving/settings.py": {"errors"},
  "serving/supervisor.py": {"errors", "serving"},
  "exporting/read_back.py": set(),
  "exporting/formats.py": {"decoding", "errors"},
  "decoding/engines.py": {"decoding", "errors", "model_params"},
}


def imported(path: pathlib.Path) -> set[str]:
  """Returns the rooms and leaves of this project that a file imports."""
  found = set()
  for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
    names = []
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path}: relative import"
      names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
      parts = name.split(".")
      if parts[0] == PACKAGE and len(parts) > 1:
        found.add(parts[1])
      elif parts[0] in ("flags", "data_prep"):
        found.add(parts[0])
  return found - {"__version__"}


@pytest.mark.parametrize("room", ARROWS)
def test_rooms_import_only_what_they_may(room):
  files = sorted((ROOT / PACKAGE / room).rglob("*.py"))
  assert len(files) > 2
  lowest = ("flag_groups", "storage")
  for path in files:
    name = str(path.relative_to(ROOT / PACKAGE))
    # The paper stands by itself.
    paper = ("model", "ops", "search")
    leaves = {"errors", "model_params"} if room in paper else LEAVES
    leaves = {"errors"} if room == "hardware" else leaves
    leaves = {"hardware"} if room in lowest else leaves
    allowed = STRICTER.get(name, ARROWS[room] | leaves | {room})
    assert imported(path) <= allowed, name


def test_no_arrow_runs_upwards():
  """Each room's arrows end in rooms below it: no circle can be drawn."""
  rooms = list(ARROWS)
  for number, room in enumerate(rooms):
    assert ARROWS[room] <= set(rooms[number + 1 :]), room


@pytest.mark.parametrize("module", [*DOORS, *LEAF_ARROWS])
def test_doors_and_leaves_import_only_what_they_may(module):
  path = ROOT / PACKAGE / f"{module}.py"
  allowed = LEAF_ARROWS.get(module)
  if allowed is None:
    allowed = DOORS[module] | LEAVES
  assert imported(path) <= allowed


def test_every_room_and_every_module_at_the_root_is_covered():
  root = ROOT / PACKAGE
  assert {p.parent.name for p in root.glob("*/__init__.py")} == set(ARROWS)
  modules = {path.stem for path in root.glob("*.py")} - {"__init__"}
  assert modules == DOORS.keys() | LEAF_ARROWS.keys()
  assert len(modules) <= 9


def test_upstreams_name_of_the_flags_is_that_alone():
  for path in (ROOT / "flags").glob("*.py"):
    assert imported(path) <= {"flag_groups"}


def test_data_prep_imports_data_and_flags_alone():
  allowed = LEAVES | {"data", "distribution", "flag_groups", "data_prep"}
  for path in (ROOT / "data_prep").rglob("*.py"):
    assert imported(path) <= allowed, path.name


@pytest.mark.parametrize("folder", [PACKAGE, "data_prep", "flags"])
def test_nothing_private_of_tensorflow_or_keras(folder):
  for path in (ROOT / folder).rglob("*.py"):
    text = path.read_text(encoding="utf-8")
    assert "tensorflow.python" not in text, path
    assert "keras.src" not in text, path


@pytest.mark.parametrize("folder", [PACKAGE, "data_prep", "flags"])
def test_functions_and_classes_stay_livable(folder):
  """At most 60 lines and 6 parameters a function, 250 lines a class.

  But for calls that are upstream's, parameter for parameter.
  """
  for path in (ROOT / folder).rglob("*.py"):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = {
      child: f"{node.name}."
      for node in ast.walk(tree)
      if isinstance(node, ast.ClassDef)
      for child in node.body
    }
    for node in ast.walk(tree):
      name = f"{classes.get(node, '')}{getattr(node, 'name', '')}"
      where = f"{path.relative_to(ROOT)}: {name}"
      if isinstance(node, ast.ClassDef):
        assert node.end_lineno - node.lineno + 1 <= 250, where
      elif isinstance(node, ast.FunctionDef):
        lines = node.end_lineno - node.lineno + 1
        if text := ast.get_docstring(node, clean=False):
          lines -= text.count("\n") + 1
        assert lines <= 60, where
        arguments = node.args
        names = [
          a.arg
          for a in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
          )
          if a.arg not in ("self", "cls")
        ]
        assert len(names) <= 6 or name in UPSTREAMS_CALLS, where
