r"""Watches the memory of `--mode=predict` over a long file.

    python benchmarks/decode_memory.py --model_dir=model --text=val.en \
      --lines=1000000

Writes a file of short lines, the first four words of each line of a text over
and over, each with a number of its own, has it translated, and prints the
process' resident memory at every tenth of the way. Fails where it has grown by
more than a tenth between the first and the last.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator


def resident_megabytes(pid: int) -> float:
  """Returns a process' resident memory; nan where Linux does not tell.

  So it is of a process that has just ended.
  """
  for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
    if line.startswith("VmRSS:"):
      return int(line.split()[1]) / 1024
  return float("nan")


def write_source(text: str, path: str, lines: int) -> None:
  """Writes so many lines of four words and a number."""
  whole = pathlib.Path(text).read_text(encoding="utf-8").split("\n")
  short = itertools.cycle([" ".join(line.split()[:4]) for line in whole])
  with open(path, "w", encoding="utf-8") as stream:
    for number, line in zip(range(lines), short, strict=False):
      stream.write(f"{line} {number}\n")


class LineCounter:
  """Counts the lines of a file that grows."""

  def __init__(self, path: str) -> None:
    self.path = path
    self.lines = 0
    self._place = 0

  def count(self) -> int:
    """Returns the number of whole lines by now."""
    if os.path.exists(self.path):
      with open(self.path, "rb") as stream:
        stream.seek(self._place)
        while block := stream.read(1 << 20):
          self.lines += block.count(b"\n")
          self._place += len(block)
    return self.lines


def watch(
  process: subprocess.Popen, out: str, interval: int, start: float
) -> Iterator[tuple[int, float]]:
  """Yields lines written and memory until a process ends; prints some."""
  counter, mark = LineCounter(out + ".incomplete"), interval
  while process.poll() is None:
    sample = counter.count(), resident_megabytes(process.pid)
    if not math.isnan(sample[1]):
      yield sample
    if sample[0] >= mark:
      seconds = time.perf_counter() - start
      print(f"{sample[0]:9} lines {seconds:8.1f} s {sample[1]:8.1f} MB")
      sys.stdout.flush()
      mark += interval
    time.sleep(0.05)


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--text", required=True)
  parser.add_argument("--lines", type=int, default=1_000_000)
  arguments = parser.parse_args()
  with tempfile.TemporaryDirectory() as directory:
    source, out = (os.path.join(directory, n) for n in ("in", "out"))
    write_source(arguments.text, source, arguments.lines)
    start = time.perf_counter()
    command = [
      *(sys.executable, "-m", "official_transformer.transformer_main"),
      *("--mode=predict", f"--model_dir={arguments.model_dir}"),
      *(f"--file={source}", f"--file_out={out}", "--beam_size=2"),
      "--extra_decode_length=2",
    ]
    log = pathlib.Path(directory, "log")
    with log.open("wb") as stream:
      process = subprocess.Popen(command, stderr=stream)
      samples = list(watch(process, out, arguments.lines // 10, start))
    if process.returncode:
      sys.exit(log.read_text(encoding="utf-8")[-2000:])
    lines = LineCounter(out).count()
    print(f"{lines:9} lines written, {time.perf_counter() - start:.1f} s")
    if lines != arguments.lines:
      sys.exit("lines are missing")
    late = [memory for count, memory in samples if count >= lines // 10]
    if not late:
      sys.exit("nothing was measured")
    first, last = late[0], late[-1]
    print(f"memory at the end / after a tenth: {last / first:.3f}")
    if last > 1.1 * first:
      sys.exit("memory has grown by more than a tenth")


if __name__ == "__main__":
  main()
