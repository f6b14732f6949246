"""Which package of the project may import which.

docs/architecture.md draws them.
"""

import ast
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = "official_transformer"

# What every package may import: modules that belong to none, and files.
LEAVES = {"errors", "hardware", "model_params", "storage"}
# What each package may import besides leaves and itself; from the top down.
MAY_IMPORT = {
  "commands": {
    "data",
    "decoding",
    "documents",
    "evaluation",
    "exporting",
    "model",
    "model_directory",
    "plotting",
    "search",
    "serving",
    "text",
    "training",
  },
  "serving": {"decoding", "search"},
  "training": {"data", "model", "model_directory", "ops", "text"},
  "documents": {"decoding", "text"},
  "evaluation": {"data", "decoding", "model_directory", "text"},
  "exporting": {
    "decoding",
    "importing",
    "model",
    "model_directory",
    "search",
    "text",
  },
  "importing": {"model", "model_directory", "text"},
  "decoding": {"model", "model_directory", "ops", "search", "text"},
  "model_directory": {"data", "text"},
  "plotting": set(),
  "model": {"hardware", "ops", "search"},
  "search": {"ops"},
  "ops": {"hardware"},
  "data": {"text"},
  "text": set(),
  "storage": set(),
  "hardware": set(),
}
# What data_prep may import of `commands`: what all command lines share.
SHARED_BY_COMMANDS = {
  "beam_pipeline",
  "flag_records",
  "flags_core",
  "log_options",
  "shared_options",
}
# The entry points: flags in, one command run.
ENTRY_POINTS = {
  "transformer_main": {"commands"},
  "translate": {"commands", "decoding"},
  "compute_bleu": {"commands", "evaluation", "text"},
  "translation_report": {"commands"},
  "import_checkpoint": {"commands", "importing", "text"},
  "translation_server": {"commands"},
}
LEAVES_MAY_IMPORT = {
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
# Some modules import less than their package may.
STRICTER = {
  "hardware/processor.py": set(),
  "ops/top_k.py": set(),
  "evaluation/bleu.py": set(),
  "evaluation/comet.py": {"errors", "text"},
  "evaluation/scores.py": {"evaluation"},
  "evaluation/metrics.py": {"errors", "evaluation"},
  "evaluation/significance.py": {"evaluation"},
  "commands/scoring.py": {"commands", "errors", "evaluation"},
  "text/text_files.py": {"errors", "storage", "text"},
  "text/identity.py": {"errors", "storage"},
  "importing/formats.py": set(),
  "training/step/optimizer.py": {"model_params"},
  "search/beam_search.py": {"ops", "search"},
  "search/state.py": set(),
  "search/rules.py": set(),
  "search/options.py": {"errors"},
  "serving/settings.py": {"errors"},
  "serving/supervisor.py": {"errors", "serving"},
  "exporting/read_back.py": set(),
  "exporting/formats.py": {
    "decoding",
    "errors",
    "importing",
    "model_params",
    "text",
  },
  "importing/huggingface_names.py": {"errors", "importing", "model_params"},
  "importing/stack_variables.py": set(),
  "decoding/engines.py": {"decoding", "errors", "model_params"},
}


def imported_names(path: pathlib.Path) -> list[list[str]]:
  """Returns the parts of each name that a file imports."""
  names = []
  for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
    if isinstance(node, ast.Import):
      names += [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path}: relative import"
      names += [f"{node.module}.{alias.name}" for alias in node.names]
  return [name.split(".") for name in names]


def imported(path: pathlib.Path) -> set[str]:
  """Returns the packages and leaves of this project that a file imports."""
  found = set()
  for parts in imported_names(path):
    if parts[0] == PACKAGE and len(parts) > 1:
      found.add(parts[1])
    elif parts[0] in ("flags", "data_prep"):
      found.add(parts[0])
  return found - {"__version__"}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_what_they_may(package):
  files = sorted((ROOT / PACKAGE / package).rglob("*.py"))
  assert len(files) > 2
  lowest = ("storage",)
  for path in files:
    name = str(path.relative_to(ROOT / PACKAGE))
    # The paper stands by itself.
    paper = ("model", "ops", "search")
    leaves = {"errors", "model_params"} if package in paper else LEAVES
    leaves = {"errors"} if package == "hardware" else leaves
    leaves = {"errors", "hardware"} if package in lowest else leaves
    allowed = STRICTER.get(name, MAY_IMPORT[package] | leaves | {package})
    assert imported(path) <= allowed, name


def test_no_import_runs_upwards():
  """Each package imports those below it alone: there is no circle."""
  packages = list(MAY_IMPORT)
  for number, package in enumerate(packages):
    assert MAY_IMPORT[package] <= set(packages[number + 1 :]), package


def test_files_import_each_other_in_no_circle():
  """Neither when they are loaded, nor later, nor for types alone."""
  paths = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for folder in (PACKAGE, "data_prep")
    for path in (ROOT / folder).rglob("*.py")
  }
  graph = {
    name: {
      ".".join(parts[:length])
      for parts in imported_names(path)
      for length in range(1, len(parts) + 1)
    }
    & paths.keys()
    for name, path in paths.items()
  }
  assert sum(map(len, graph.values())) > 500
  graphlib.TopologicalSorter(graph).prepare()  # It raises CycleError.


@pytest.mark.parametrize("module", [*ENTRY_POINTS, *LEAVES_MAY_IMPORT])
def test_entry_points_and_leaves_import_only_what_they_may(module):
  path = ROOT / PACKAGE / f"{module}.py"
  allowed = LEAVES_MAY_IMPORT.get(module)
  if allowed is None:
    allowed = ENTRY_POINTS[module] | LEAVES
  assert imported(path) <= allowed


def test_every_package_and_every_module_at_the_root_is_covered():
  root = ROOT / PACKAGE
  assert {p.parent.name for p in root.glob("*/__init__.py")} == set(MAY_IMPORT)
  modules = {path.stem for path in root.glob("*.py")} - {"__init__"}
  assert modules == ENTRY_POINTS.keys() | LEAVES_MAY_IMPORT.keys()
  assert len(modules) <= 9


def test_upstreams_name_of_the_flags_is_that_alone():
  for path in (ROOT / "flags").glob("*.py"):
    assert imported(path) <= {"commands"}


def test_data_prep_imports_data_text_and_what_commands_share():
  allowed = LEAVES | {"commands", "data", "data_prep", "text"}
  for path in (ROOT / "data_prep").rglob("*.py"):
    assert imported(path) <= allowed, path.name
    for package, *names in imported_names(path):
      if package == PACKAGE and names[:1] == ["commands"]:
        assert names[1] in SHARED_BY_COMMANDS, path.name


@pytest.mark.parametrize("folder", [PACKAGE, "data_prep", "flags"])
def test_nothing_private_of_tensorflow_or_keras(folder):
  for path in (ROOT / folder).rglob("*.py"):
    text = path.read_text(encoding="utf-8")
    assert "tensorflow.python" not in text, path
    assert "keras.src" not in text, path


@pytest.mark.parametrize("folder", [PACKAGE, "data_prep", "flags"])
def test_functions_and_classes_stay_livable(folder):
  """At most 60 lines and 8 parameters a function, 250 lines a class.

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
      elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
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
        assert len(names) <= 8 or name in UPSTREAMS_CALLS, where
