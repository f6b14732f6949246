r"""Measures the memory of models that take each other's place.

    python benchmarks/reloads.py --model_dir=models/en_de

Prints the resident set, in MB, after each `Translator.load` of one process that
translates a line by each and drops it; and of a service after each time that it
has reloaded its model and answered by it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from running_server import Server, running_server

LINE = "A dog runs along the beach."
# Of a process that loads, translates and drops.
LOADS = """
import gc, sys
from official_transformer.hardware.startup import start_tensorflow
start_tensorflow()
from official_transformer.decoding.translator import Translator
for _ in range(int(sys.argv[2])):
  Translator.load(sys.argv[1]).translate([sys.argv[3]])
  gc.collect()
  with open("/proc/self/statm") as stream:
    print(int(stream.read().split()[1]), flush=True)
"""


def megabytes(pages: int) -> float:
  """Returns a number of pages in MB."""
  return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def loaded(model_dir: str, rounds: int) -> list[float]:
  """Returns the resident set after each load."""
  done = subprocess.run(
    [sys.executable, "-c", LOADS, model_dir, str(rounds), LINE],
    check=True,
    capture_output=True,
    text=True,
  )
  return [megabytes(int(pages)) for pages in done.stdout.split()]


def reloads_of(server: Server) -> int:
  """Returns how often the service has loaded another model."""
  found = re.search(
    r"^translation_model_reloads (\d+)", server.get("/metrics"), re.MULTILINE
  )
  assert found
  return int(found[1])


def reloaded(model_dir: str, rounds: int) -> list[float]:
  """Returns the resident set of a service after each reload."""
  found = []
  with tempfile.TemporaryDirectory() as place:
    copy = pathlib.Path(place) / "model"
    shutil.copytree(model_dir, copy)
    files = [
      path
      for kind in ("checkpoints", "average")
      for path in (copy / kind).glob("step-*/*")
    ]
    with running_server(copy, pathlib.Path(place), "--reload_secs=0.5") as s:
      s.translate(LINE)
      for done in range(rounds):
        for path in files:
          path.touch()
        while reloads_of(s) == done:
          time.sleep(0.1)
        s.translate(LINE)
        statm = pathlib.Path(f"/proc/{s.process.pid}/statm").read_text()
        found.append(megabytes(int(statm.split()[1])))
  return found


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--rounds", type=int, default=30)
  arguments = parser.parse_args()
  for name, measure in (
    ("Translator.load", loaded),
    ("service", reloaded),
  ):
    sizes = measure(arguments.model_dir, arguments.rounds)
    growth = max(sizes[3:]) / sizes[2] - 1 if len(sizes) > 3 else 0.0
    print(
      f"{name}: {' '.join(f'{size:.0f}' for size in sizes)} MB; "
      f"at most {growth:+.1%} after the third"
    )


if __name__ == "__main__":
  main()
