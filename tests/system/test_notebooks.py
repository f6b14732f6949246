"""The notebooks run, with their corpora and trainings cut short."""

import os
import pathlib
import re
import sys

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.mark.parametrize("name", ["first_half_hour", "own_corpus"])
def test_a_notebook_runs(name, monkeypatch):
  monkeypatch.setenv("TRAIN_STEPS", "6")
  # The commands of this environment, as after `source setup_environment.sh`.
  commands = str(pathlib.Path(sys.executable).parent)
  monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
  notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
  stored = [cell for cell in notebook.cells if cell.cell_type == "code"]
  assert all(cell.execution_count for cell in stored), "run it, and store it"
  for cell in stored:
    cell.source = re.sub(r"--train_size=\d+", "--train_size=1200", cell.source)
    cell.source = re.sub(r"--test_size=\d+", "--test_size=20", cell.source)
  client = nbclient.NotebookClient(
    notebook,
    timeout=600,
    kernel_name="python3",
    resources={"metadata": {"path": str(FOLDER)}},
  )
  client.execute()  # Raises if a cell does.
