r"""Times training steps: this project's, upstream's and other peers'.

    python benchmarks/train.py --upstream_python=up/bin/python \
      --hf_python=hf/bin/python --data_dir=data

Each contestant is a process of its own; they take turns, several rounds long,
so that what else the machine does hits all alike. Of each, the median step of
each round is taken, and the median of the rounds; the ratio is that of medians
to upstream's. Peers whose Python is not named are left out; `peers/README.md`
says how to install them. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator

from contest import median_seconds, peak_megabytes, take_turns

HERE = pathlib.Path(__file__).resolve().parent
OURS = str(HERE / "measure_training.py")
UPSTREAM = str(HERE / "peers" / "upstream_train.py")
HUGGING_FACE = str(HERE / "peers" / "hf_train.py")

# Flags of each row, and source and target tokens of its step.
ROWS = {
  "base": (
    [
      *("--vocab_size=32768", "--sentences=64", "--length=32"),
      *("--steps=5", "--warmup=2"),
    ],
    4096,
  ),
  "big": (
    [
      *("--hidden_size=1024", "--filter_size=4096", "--num_heads=16"),
      *("--vocab_size=32768", "--sentences=128", "--length=32"),
    ],
    8192,
  ),
  "small": (
    [
      *("--hidden_size=256", "--filter_size=1024", "--num_heads=4"),
      *("--num_hidden_layers=2", "--vocab_size=8000"),
      *("--sentences=128", "--length=32"),
    ],
    8192,
  ),
  # Batches as they come from each one's own pipeline.
  "multi30k": (
    [
      *("--hidden_size=128", "--filter_size=512", "--num_heads=4"),
      *("--num_hidden_layers=4", "--vocab_size=8000", "--batch_size=4096"),
      *("--steps=40", "--warmup=8"),
    ],
    None,
  ),
}


def contestants(
  row: str, arguments: argparse.Namespace
) -> Iterator[tuple[str, list[str]]]:
  """Yields names and commands."""
  flags = list(ROWS[row][0])
  if row == "multi30k":
    flags.append(f"--data_dir={arguments.data_dir}")
  for dtype in arguments.dtypes.split(","):
    yield f"ours {dtype}", [sys.executable, OURS, *flags, f"--dtype={dtype}"]
  yield "ours fp32 recomputed", [sys.executable, OURS, *flags, "--recompute"]
  if row != "multi30k":
    yield "ours fp32 XLA", [sys.executable, OURS, *flags, "--xla"]
  if arguments.upstream_python:
    command = [arguments.upstream_python, UPSTREAM, *flags]
    yield "upstream fp32", command
    if row != "multi30k":
      yield "upstream fp32 XLA", [*command, "--xla"]
  if arguments.hf_python and row != "multi30k":
    for dtype in arguments.dtypes.split(","):
      command = [arguments.hf_python, HUGGING_FACE, *flags]
      yield f"HF Marian {dtype}", [*command, f"--dtype={dtype}"]


def table(row: str, rounds: dict[str, list[dict]]) -> Iterator[str]:
  """Yields the lines of a row's table."""
  tokens = ROWS[row][1]
  medians = median_seconds(rounds)
  base = medians.get("upstream fp32")
  yield f"{row:20} s/step   tokens/s  x upstream  peak MB (GPU)"
  for name, seconds in medians.items():
    speed = f"{tokens / seconds:8.0f}" if tokens else " " * 8
    ratio = f"{base / seconds:10.2f}" if base else " " * 10
    peak = peak_megabytes(rounds[name])
    device = ""
    if "gpu_peak_kib" in rounds[name][0]:
      device = f" ({peak_megabytes(rounds[name], 'gpu_peak_kib'):.0f})"
    yield f"{name:20} {seconds:6.3f}   {speed}  {ratio}  {peak:8.0f}{device}"


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--rows", default="base,small,multi30k")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--dtypes", default="fp32,bf16")
  parser.add_argument("--upstream_python", default="")
  parser.add_argument("--hf_python", default="")
  parser.add_argument("--data_dir", default="")
  arguments = parser.parse_args()
  for row in arguments.rows.split(","):
    if row == "multi30k" and not arguments.data_dir:
      print(f"{row}: left out; it needs --data_dir, as prepare_data makes it")
      continue
    commands = dict(contestants(row, arguments))
    contest = take_turns(commands, arguments.rounds)
    lines = [*table(row, contest.found), *contest.failures()]
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
  main()
