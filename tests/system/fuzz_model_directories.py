"""Edits a model directory and its data at random, and tries to use them.

python fuzz_model_directories.py MODEL DATA SCRATCH EDITS SEED

With `tests` on its path. Prints one JSON object: how often each outcome came,
what came that is neither a model nor a clear error, what was written elsewhere,
and the most memory that was taken, in bytes.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import sys

from absl import logging

from official_transformer.data.data_directory import DataDirectory
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.decoding.loading import load_model, open_model
from official_transformer.errors import InputError, RunError
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.training.checkpoints import clean_up
from official_transformer.training.model_setup import (
  ModelRequest,
  plan_directory,
)
from official_transformer.training.requested_batching import RequestedBatching

VALUES = [
  None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**30, 1.5, -0.5, 1e308,
  float("nan"), float("inf"), "", "x", "../outside", "/etc/passwd", "..",
  "../../../outside", "model.json", "a\0b", "\ud800", "9" * 5000, [], [1], {},
  {"a": 1},
]  # fmt: skip


def edit_json(path, rng):
  """Changes, drops or adds a value anywhere in a JSON file."""
  content = json.loads(path.read_text("utf-8"))
  where = content
  while True:
    key = rng.choice(list(where))
    inner = where[key]
    if not isinstance(inner, dict) or not inner or rng.random() < 0.2:
      break
    where = inner
  kind = rng.random()
  if kind < 0.15:
    del where[key]
  elif kind < 0.25:
    where[rng.choice(["more", "", "hidden_size", "file"])] = rng.choice(VALUES)
  else:
    where[key] = rng.choice(VALUES)
  with contextlib.suppress(UnicodeEncodeError):
    path.write_text(json.dumps(content), "utf-8")


def edit_bytes(path, rng):
  """Cuts a file off, or changes some bytes, or adds to it."""
  content = bytearray(path.read_bytes())
  kind = rng.randrange(6)
  if kind == 0:
    content = content[: rng.randrange(len(content) + 1)]
  elif kind == 1:
    for _ in range(rng.choice([1, 3, 50])):
      content[rng.randrange(len(content))] = rng.randrange(256)
  elif kind == 2:
    place = rng.randrange(len(content))
    content[place:place] = rng.randbytes(rng.choice([1, 8, 1000]))
  elif kind == 3:
    start = rng.randrange(len(content))
    del content[start : start + rng.choice([1, 8, 100])]
  elif kind == 4:
    content = bytearray(b"[" * 200_000)
  else:
    content = bytearray(rng.randbytes(rng.choice([0, 1, 100, 10_000])))
  path.write_bytes(bytes(content))


def edit_names(path, rng):
  """Takes a file away, puts a directory in its place, or moves it."""
  kind = rng.randrange(3)
  if kind == 0:
    path.unlink()
  elif kind == 1:
    path.unlink()
    path.mkdir()
  else:
    path.rename(path.with_name(rng.choice(["x", "step-1", "model.json.old"])))


def edit(root, rng):
  """Makes one edit; returns what it was."""
  files = sorted(p for p in root.rglob("*") if p.is_file())
  path = rng.choice(files)
  edits = [edit_bytes, edit_bytes, edit_names]
  if path.name in ("model.json", "data.json"):
    edits = [edit_json] * 8 + [edit_bytes]
  chosen = rng.choice(edits)
  chosen(path, rng)
  return f"{chosen.__name__} {path.relative_to(root)}"


def use(root):
  """Loads the model, reads the data, and starts another model from it."""
  model, data = str(root / "model"), str(root / "data")
  load_model(*open_model(model))
  cache = str(root / "model" / "data_index.npz")
  read_prepared_data(data, 400, with_dev=True, cache_file=cache)
  target = ModelDirectory(str(root / "new" / "target"))
  plan_directory(
    target,
    ModelRequest(
      RequestedParams(None, {}),
      RequestedBatching(),
      DataDirectory(data),
      init_checkpoint=model,
    ),
  ).carry_out()
  clean_up(ModelDirectory(model))


def most_memory() -> int:
  """Returns the most bytes that this process has had in memory.

  What getrusage tells includes the process that this one was forked from.
  """
  status = pathlib.Path("/proc/self/status").read_text("utf-8")
  (line,) = (s for s in status.split("\n") if s.startswith("VmHWM:"))
  return int(line.split()[1]) * 1024


def main(model, data, scratch, edits, seed):
  logging.set_verbosity(logging.FATAL)
  rng = random.Random(int(seed))
  outcomes = collections.Counter()
  surprises, strangers = [], []
  for number in range(int(edits)):
    scratch_root = pathlib.Path(scratch, str(number))
    root = scratch_root / "inside"
    for name, source in (("model", model), ("data", data)):
      shutil.copytree(
        source,
        root / name,
        ignore=shutil.ignore_patterns("logs", "translations"),
      )
    what = edit(root, rng)
    try:
      use(root)
      outcomes["used"] += 1
    except (InputError, RunError, OSError) as error:
      outcomes[type(error).__name__] += 1
      if not str(error) or "Traceback" in str(error):
        surprises.append([what, repr(error)[:300]])
    except Exception as error:
      surprises.append([what, repr(error)[:300]])
    if sorted(os.listdir(scratch_root)) != ["inside"]:
      strangers.append([what, sorted(os.listdir(scratch_root))])
    shutil.rmtree(scratch_root)
  print(
    json.dumps(
      {
        "outcomes": outcomes,
        "surprises": surprises,
        "strangers": strangers,
        "memory": most_memory(),
      }
    )
  )


if __name__ == "__main__":
  main(*sys.argv[1:])
