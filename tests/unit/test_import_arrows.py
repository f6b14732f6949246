"""Who may import whom: the rooms of the project and the arrows between them."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = "official_transformer"

# Modules that belong to no room and that every room may import.
LEAVES = {
  "durable_files",
  "errors",
  "model_params",
  "model_directory",
}
ARROWS = {
  "model": LEAVES,
  "data": LEAVES,
  "decoding": LEAVES | {"model", "data"},
  "training": LEAVES | {"model", "data", "requested_params"},
  "evaluation": LEAVES | {"decoding", "data"},
  "importing": LEAVES | {"model", "data"},
}
LEAF_ARROWS = {
  "durable_files": set(),
  "errors": set(),
  "model_params": {"errors"},
  "model_directory": {"durable_files", "errors", "model_params"},
  "transformer_flags": {
    "decoding_flags",
    "model_params",
    "training_flags",
    "flags",
  },
  "training_flags": {"model_params", "flags"},
  "decoding_flags": {"model_directory", "flags"},
  "flag_effects": set(),
  "requested_params": {"errors", "model_directory", "model_params"},
  "flag_readers": {"decoding", "model_params", "requested_params"},
}
# One module knows less than its room may.
STRICTER = {
  "model/beam_search.py": {"model"},
  "model/top_k.py": set(),
  "evaluation/bleu.py": set(),
  "evaluation/scores.py": {"evaluation"},
  "data/text_files.py": {"errors"},
  "importing/formats.py": set(),
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


def files(room: str) -> list[pathlib.Path]:
  return sorted((ROOT / PACKAGE / room).glob("*.py"))


@pytest.mark.parametrize("room", ARROWS)
def test_rooms_import_only_what_they_may(room):
  assert len(files(room)) > 1
  for path in files(room):
    name = f"{room}/{path.name}"
    allowed = STRICTER.get(name, ARROWS[room] | {room})
    assert imported(path) <= allowed, name


def test_the_search_knows_nothing_of_the_model():
  path = ROOT / PACKAGE / "model" / "beam_search.py"
  text = path.read_text(encoding="utf-8")
  assert re.findall(rf"(?:from|import) ({PACKAGE}[\w.]*)", text) == [
    f"{PACKAGE}.model.top_k"
  ]


@pytest.mark.parametrize("leaf", LEAF_ARROWS)
def test_leaves_import_only_what_they_may(leaf):
  path = ROOT / PACKAGE / f"{leaf}.py"
  assert imported(path) <= LEAF_ARROWS[leaf]


def test_every_room_is_covered():
  rooms = {
    p.parent.name
    for p in (ROOT / PACKAGE).glob("*/__init__.py")
    if p.parent.name != "__pycache__"
  }
  assert rooms == set(ARROWS)


def test_flags_import_nothing_of_the_project():
  for path in (ROOT / "flags").glob("*.py"):
    assert imported(path) <= {"flags"}


def test_data_prep_imports_data_and_flags_alone():
  allowed = LEAVES | {"data", "flags", "data_prep"}
  for path in (ROOT / "data_prep").glob("*.py"):
    assert imported(path) <= allowed, path.name


@pytest.mark.parametrize("folder", [PACKAGE, "data_prep", "flags"])
def test_nothing_private_of_tensorflow_or_keras(folder):
  for path in (ROOT / folder).rglob("*.py"):
    text = path.read_text(encoding="utf-8")
    assert "tensorflow.python" not in text, path
    assert "keras.src" not in text, path
