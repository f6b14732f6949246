r"""Times the preparation of data, upstream's beside it.

    python benchmarks/preparation.py --source=train.en --target=train.de \
      --pairs=2000000 --scratch=scratch --upstream_python=up/bin/python

writes a corpus of so many pairs to the scratch directory: the text given, again
and again, with words replaced by others of the same text, as a seed decides.
Then everybody makes records of it, in turns, each with the vocabularies that
are made first, apart. Times are from start to end of each command but for
upstream's, whose import of TensorFlow is left out. Memory is that of all
processes together, shared pages counted once.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import itertools
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from typing import NamedTuple

from official_transformer.text.packed_ids import pack_lines
from official_transformer.text.subtokenizer import Subtokenizer

HERE = pathlib.Path(__file__).resolve().parent
PREPARE = (sys.executable, "-m", "data_prep.prepare_data")
ENCODED = 200_000  # Pairs.
REPLACED = 0.15  # Of all words.


def read(path: str) -> list[list[str]]:
  """Returns the words of each line."""
  opened = gzip.open if path.endswith(".gz") else open
  with opened(path, "rt", encoding="utf-8", newline="\n") as stream:
    return [line.split() for line in stream]


def write_corpus(
  source: str, target: str, pairs: int, directory: pathlib.Path
) -> tuple[pathlib.Path, pathlib.Path]:
  """Writes a large corpus, unless it is there; returns its two files."""
  paths = directory / f"{pairs}.source", directory / f"{pairs}.target"
  if all(path.exists() for path in paths):
    return paths
  rng = random.Random(1)
  for path, lines in zip(paths, map(read, (source, target)), strict=True):
    words = [word for line in lines for word in line]
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
      for number in range(pairs):
        line = list(lines[number % len(lines)])
        if number >= len(lines):
          for place in range(len(line)):
            if rng.random() < REPLACED:
              line[place] = words[int(rng.random() * len(words))]
        stream.write(" ".join(line) + "\n")
    pathlib.Path(f"{path}.new").rename(path)
  return paths


class Measured(NamedTuple):
  """What a command took."""

  seconds: float
  peak_megabytes: float


def memory_of(pid: int) -> float:
  """Returns the megabytes of a process and its children, shared ones once."""
  total = 0.0
  for process in (pid, *descendants(pid)):
    try:
      rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
      continue  # It has just ended.
    for line in rollup.split("\n"):
      if line.startswith("Pss:"):
        total += int(line.split()[1]) / 1024
  return total


def descendants(pid: int) -> list[int]:
  """Returns the processes that a process has started."""
  found = []
  try:
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
      children = (task / "children").read_text().split()
      for child in map(int, children):
        found += [child, *descendants(child)]
  except OSError:
    pass
  return found


def run(command: list[str]) -> Measured:
  """Runs a command; watches its memory."""
  began = time.perf_counter()
  process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
  peak = 0.0

  def watch() -> None:
    nonlocal peak
    while process.poll() is None:
      peak = max(peak, memory_of(process.pid))
      time.sleep(0.5)

  watcher = threading.Thread(target=watch)
  watcher.start()
  said = process.communicate()[1]
  watcher.join()
  if process.returncode:
    raise SystemExit(f"{' '.join(command)}\n{said}")
  return Measured(time.perf_counter() - began, peak)


def upstream(python: str, *flags: str) -> dict:
  """Runs upstream's script; returns what it prints."""
  done = subprocess.run(
    [python, str(HERE / "peers" / "upstream_data.py"), *flags],
    check=True,
    capture_output=True,
    text=True,
  )
  return json.loads(done.stdout.strip().split("\n")[-1])


def make_vocabularies(
  arguments: argparse.Namespace, files: list[str], directory: pathlib.Path
) -> dict[str, str]:
  """Returns the vocabularies by their kinds; prints what they took."""
  made = {}
  for kind, suffix in (("sentencepiece", ".model"), ("subtoken", ".subtokens")):
    # Of little text: it is the vocabulary that is timed.
    data_dir = directory / f"vocabulary-{kind}"
    shutil.rmtree(data_dir, ignore_errors=True)
    found = run(
      [
        *PREPARE,
        *(f"--data_dir={data_dir}", *files, f"--vocab_type={kind}"),
        f"--vocab_size={arguments.vocab_size}",
      ]
    )
    print(
      f"{'vocabulary and data, ' + kind:36} {found.seconds:8.1f} s "
      f"{found.peak_megabytes:8.0f} MB",
      flush=True,
    )
    path = data_dir / f"vocab.{arguments.vocab_size}{suffix}"
    made[kind] = str(shutil.copy(path, directory))
    shutil.rmtree(data_dir)
  return made


def compare_building(
  arguments: argparse.Namespace, source: pathlib.Path, target: pathlib.Path
) -> None:
  """Prints what a vocabulary of subtokens takes, and whether both are equal."""
  files = [str(source), str(target)]
  size = arguments.vocab_size
  ours = arguments.scratch / "ours.subtokens"
  theirs = arguments.scratch / "upstream.subtokens"
  theirs.unlink(missing_ok=True)  # It would be read.
  began = time.perf_counter()
  Subtokenizer.build(files, size).save(str(ours))
  seconds = time.perf_counter() - began
  printed = upstream(
    arguments.upstream_python,
    *(f"--source={source}", f"--target={target}", f"--build={size}"),
    *(f"--vocab_file={theirs}", f"--data_dir={arguments.scratch / 'upstream'}"),
  )
  equal = "equal" if ours.read_bytes() == theirs.read_bytes() else "NOT EQUAL"
  print(
    f"subtoken vocabulary alone: {seconds:.1f} s, upstream "
    f"{printed['seconds']:.1f} s, {printed['seconds'] / seconds:.1f} x; "
    f"{equal}",
    flush=True,
  )


def compare_encoding(
  arguments: argparse.Namespace,
  source: pathlib.Path,
  target: pathlib.Path,
  vocab_file: str,
) -> None:
  """Prints what cutting lines into subtokens takes in one process."""
  lines: list[str] = []
  for path in (source, target):
    with open(path, encoding="utf-8") as stream:
      lines += [line.strip() for line in itertools.islice(stream, ENCODED)]
  tokenizer = Subtokenizer(vocab_file)
  gc.disable()  # As the workers do.
  began = time.perf_counter()
  packed = tokenizer.pack_lines(lines)
  packing = time.perf_counter() - began
  gc.enable()
  tokenizer = Subtokenizer(vocab_file)
  began = time.perf_counter()
  ids = [tokenizer.encode(line, add_eos=True) for line in lines]
  seconds = time.perf_counter() - began
  assert packed == pack_lines(ids)
  printed = upstream(
    arguments.upstream_python,
    *(f"--source={source}", f"--target={target}", f"--encode={ENCODED}"),
    *(f"--vocab_file={vocab_file}", f"--data_dir={arguments.scratch}"),
  )
  ours = hashlib.sha256(repr(ids).encode()).hexdigest()
  equal = "equal" if ours == printed["sha256"] else "NOT EQUAL"
  theirs = printed["seconds"]
  print(
    f"subtokens alone, {ENCODED} pairs: "
    f"{ENCODED / seconds:.0f} pairs/s as ids, "
    f"{ENCODED / packing:.0f} for records, upstream {ENCODED / theirs:.0f}: "
    f"{theirs / seconds:.1f} and {theirs / packing:.1f} x; ids {equal}",
    flush=True,
  )


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", required=True)
  parser.add_argument("--target", required=True)
  parser.add_argument("--pairs", type=int, default=2_000_000)
  parser.add_argument("--scratch", type=pathlib.Path, required=True)
  parser.add_argument("--vocab_size", type=int, default=8000)
  parser.add_argument("--upstream_python")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--workers", type=int, default=0)
  arguments = parser.parse_args()
  arguments.scratch.mkdir(parents=True, exist_ok=True)
  source, target = write_corpus(
    arguments.source, arguments.target, arguments.pairs, arguments.scratch
  )
  files = [f"--train_source={source}", f"--train_target={target}"]
  made = make_vocabularies(arguments, files, arguments.scratch)
  if arguments.upstream_python:
    compare_building(arguments, source, target)
    compare_encoding(arguments, source, target, made["subtoken"])
  rates: dict[str, list[float]] = {}
  peaks: dict[str, float] = {}
  workers = [f"--workers={arguments.workers}"] if arguments.workers else []
  for _ in range(arguments.rounds):
    for kind, vocab_file in made.items():
      data_dir = arguments.scratch / kind
      found = run(
        [
          *PREPARE,
          *(f"--data_dir={data_dir}", *files, *workers),
          f"--vocab_file={vocab_file}",
        ]
      )
      rates.setdefault(kind, []).append(arguments.pairs / found.seconds)
      peaks[kind] = max(peaks.get(kind, 0), found.peak_megabytes)
    if arguments.upstream_python:
      printed = upstream(
        arguments.upstream_python,
        f"--source={source}",
        f"--target={target}",
        f"--vocab_file={made['subtoken']}",
        f"--data_dir={arguments.scratch / 'upstream'}",
      )
      rates.setdefault("upstream", []).append(
        arguments.pairs / printed["seconds"]
      )
      peaks["upstream"] = printed["peak_kib"] / 1024
    for name, each in rates.items():
      middle = statistics.median(each)
      times = ""
      if "upstream" in rates:
        times = f"{middle / statistics.median(rates['upstream']):6.2f} x"
      print(
        f"{name:16} {middle:10.0f} pairs/s {times} {peaks[name]:8.0f} MB",
        flush=True,
      )


if __name__ == "__main__":
  main()
