"""Hostile model directories and hostile lines, each in a process of its own.

More of them: see the scripts' own documentation.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HERE = pathlib.Path(__file__).parent
GIGABYTE = 2**30


def run(script, *arguments):
  done = subprocess.run(
    [sys.executable, HERE / script, *map(str, arguments)],
    capture_output=True,
    text=True,
    check=False,
    env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    timeout=1200,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return json.loads(done.stdout.splitlines()[-1])


def test_edited_model_directories_load_or_say_what_is_wrong(
  demo_model, demo_data, tmp_path
):
  found = run(
    "fuzz_model_directories.py", demo_model, demo_data, tmp_path / "s", 150, 3
  )
  assert found["surprises"] == []
  assert found["strangers"] == []
  assert found["memory"] < 2 * GIGABYTE
  assert sum(found["outcomes"].values()) == 150
  assert found["outcomes"]["InputError"] > 20


def test_hostile_lines_come_out_one_for_one(demo_model, demo_data, tmp_path):
  (vocabulary,) = demo_data.glob("vocab.*")
  found = run(
    *("fuzz_lines.py", demo_model, vocabulary, tmp_path / "s"),
    *(300, 2000, 1.5, 1),
  )
  assert found["problems"] == []
  assert found["lines"] == 300
  assert found["kept"] > 50 and found["dropped"] > 10
