r"""Times decoding: this project's, upstream's and other peers'.

    python benchmarks/decode.py --upstream_python=up/bin/python \
      --peers_python=hf/bin/python --model_dir=model --text=val.en \
      --checkpoint=cp.ckpt --vocab_file=vocab.subtokens

Rows: `base`, the base model with random weights, 32 sentences of 32 tokens,
exactly 62 steps, beam 4; `text`, a trained model over a file, every sentence
stopping by itself, beam 5; `latency`, lines of 20 words of that file, one at a
time; `latency_base`, one sentence of 21 tokens, 26 steps of the base model.

Each contestant is a process of its own; they take turns, several rounds long,
so that what else the machine does hits all alike. Of each, the median time of
each round is taken, and the median of the rounds. Loading, tracing and a first
run are not timed. Peers whose Python is not named are left out, and those that
fail are said to; `peers/README.md` says how to install them. Nothing else
should run meanwhile. `text` and `latency` need a model directory, and upstream
the checkpoint it was imported from.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from contest import median_seconds, peak_megabytes, take_turns

HERE = pathlib.Path(__file__).resolve().parent
OURS = str(HERE / "measure_decoding.py")
UPSTREAM = str(HERE / "peers" / "upstream_decode.py")
HUGGING_FACE = str(HERE / "peers" / "hf_decode.py")
CTRANSLATE2 = str(HERE / "peers" / "ctranslate2_decode.py")
ROWS = ("base", "text", "latency", "latency_base")
BASELINE = "upstream fp32"

Commands = Iterator[tuple[str, list[str]]]


def base(arguments: argparse.Namespace) -> Commands:
  """Yields the contestants of many random sentences at once."""
  ours = [sys.executable, OURS]
  yield "ours fp32, 2 workers", [*ours, "--workers=2"]
  yield "ours fp32, 1 worker", [*ours, "--workers=1"]
  yield "ours bf16, 2 workers", [*ours, "--workers=2", "--dtype=bf16"]
  yield "ours fp32, static, XLA", [*ours, "--workers=1", "--padded"]
  yield "ours, SavedModel", [*ours, "--workers=2", "--saved_model=yes"]
  yield from with_ctranslate2(ours)
  if arguments.upstream_python:
    yield BASELINE, [arguments.upstream_python, UPSTREAM]
  if arguments.peers_python:
    for dtype in ("fp32", "bf16"):
      command = [arguments.peers_python, HUGGING_FACE, f"--dtype={dtype}"]
      yield f"HF Marian {dtype}", command
    for kind in ("float32", "int8"):
      for workers in (1, 2):
        yield (
          f"CTranslate2 {kind}, {workers} of {2 // workers}",
          [
            *(arguments.peers_python, CTRANSLATE2, f"--compute_type={kind}"),
            *(f"--workers={workers}", f"--threads={2 // workers}"),
          ],
        )


def with_ctranslate2(ours: list[str], label: str = "ours") -> Commands:
  """Yields this project's other engine."""
  for kind in ("float32", "int8"):
    yield (
      f"{label}, ctranslate2 {kind}",
      [*ours, "--workers=2", "--engine=ctranslate2", f"--quantization={kind}"],
    )


def trained(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
  """Returns our command and upstream's for a trained model's text."""
  text = [f"--text={arguments.text}", "--beam_size=5"]
  ours = [sys.executable, OURS, f"--model_dir={arguments.model_dir}", *text]
  upstream = [
    *(arguments.upstream_python, UPSTREAM, *text, "--extra=50"),
    *(f"--checkpoint={arguments.checkpoint}", *arguments.shape.split()),
    f"--vocab_file={arguments.vocab_file}",
  ]
  return ours, upstream


def text(arguments: argparse.Namespace, weights: str) -> Commands:
  """Yields the contestants of a file."""
  ours, upstream = trained(arguments)
  yield "ours fp32, 2 workers", [*ours, "--workers=2", "--patience=0"]
  # CTranslate2's own rule.
  patient, label = [*ours, "--patience=1"], "ours fp32, patience 1"
  yield f"{label}, 2 workers", [*patient, "--workers=2"]
  yield f"{label}, 1 worker", [*patient, "--workers=1"]
  bfloat16 = [*patient, "--workers=2", "--dtype=bf16"]
  yield "ours bf16, patience 1, 2 workers", bfloat16
  if arguments.saved_model:
    saved = f"--saved_model={arguments.saved_model}"
    yield "ours, SavedModel", [*ours, "--workers=2", saved]
  yield from with_ctranslate2(patient, "ours, patience 1")
  if arguments.upstream_python:
    yield BASELINE, upstream
  if arguments.peers_python:
    command = [*ours, f"--save_weights={weights}"]
    # If it fails, those that need the weights say so.
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    for kind in ("float32", "int8"):
      yield (
        f"CTranslate2 {kind}, 2 of 1",
        [
          *(arguments.peers_python, CTRANSLATE2, f"--weights={weights}"),
          *(f"--compute_type={kind}", "--beam_size=5"),
          *("--workers=2", "--threads=1"),
        ],
      )


def latency(arguments: argparse.Namespace) -> Commands:
  """Yields the contestants of a trained model's lines, one at a time."""
  ours, upstream = trained(arguments)
  yield "ours fp32", [*ours, "--words=20"]
  if arguments.upstream_python:
    yield BASELINE, [*upstream, "--words=20", "--repeats=2"]


def latency_base(arguments: argparse.Namespace) -> Commands:
  """Yields the contestants of one random sentence."""
  shape = ["--sentences=1", "--length=21", "--extra=5"]
  yield "ours fp32", [sys.executable, OURS, *shape]
  yield "ours fp32, static, XLA", [sys.executable, OURS, *shape, "--padded"]
  if arguments.upstream_python:
    yield BASELINE, [arguments.upstream_python, UPSTREAM, *shape, "--repeats=5"]
  if arguments.peers_python:
    for threads in (1, 2):
      yield (
        f"CTranslate2 float32, 1 of {threads}",
        [
          *(arguments.peers_python, CTRANSLATE2),
          *(*shape, f"--threads={threads}"),
        ],
      )


def table(row: str, rounds: dict[str, list[dict]]) -> Iterator[str]:
  """Yields the lines of a row's table."""
  medians = median_seconds(rounds)
  yield (
    f"{row:30} seconds  sentences/s  tokens/s  s/sentence  x upstream  peak MB"
  )
  for contestant, seconds in medians.items():
    name, found = contestant, rounds[contestant]
    sentences, tokens = (found[0][k] for k in ("sentences", "tokens"))
    ratio = ""
    if BASELINE in medians:
      theirs = medians[BASELINE] / rounds[BASELINE][0]["sentences"]
      ratio = f"{theirs * sentences / seconds:.2f}"
    computed = found[0].get("dtype")
    if computed and computed not in name:
      name = f"{name} ({computed})"
    yield (
      f"{name:30} {seconds:7.3f}  {sentences / seconds:11.1f}  "
      f"{tokens / seconds:8.0f}  {seconds / sentences:10.4f}  {ratio:>10}  "
      f"{peak_megabytes(found):7.0f}"
    )


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--rows", default=",".join(ROWS))
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--upstream_python", default="")
  parser.add_argument("--peers_python", default="")
  parser.add_argument("--model_dir", default="")
  parser.add_argument("--text", default="")
  parser.add_argument("--saved_model", default="", help="of --model_dir")
  parser.add_argument("--checkpoint", default="")
  parser.add_argument("--vocab_file", default="")
  parser.add_argument(
    "--shape",
    default="--vocab_size=8388 --hidden_size=128 --filter_size=256 "
    "--num_heads=4 --num_hidden_layers=4",
    help="of the checkpoint, for upstream",
  )
  arguments = parser.parse_args()
  rows = arguments.rows.split(",")
  if unknown := set(rows) - set(ROWS):
    parser.error(f"there is no row {', '.join(unknown)}")
  needed = {"model_dir", "text"}
  if arguments.upstream_python:
    needed |= {"checkpoint", "vocab_file"}
  missing = [name for name in sorted(needed) if not getattr(arguments, name)]
  if missing and {"text", "latency"} & set(rows):
    print(f"text, latency: left out; they need --{', --'.join(missing)}")
    rows = [row for row in rows if row not in ("text", "latency")]
  with tempfile.TemporaryDirectory() as directory:
    weights = os.path.join(directory, "weights.npz")
    for row in rows:
      commands = {
        "base": lambda: base(arguments),
        "text": lambda: text(arguments, weights),
        "latency": lambda: latency(arguments),
        "latency_base": lambda: latency_base(arguments),
      }[row]()
      contest = take_turns(dict(commands), arguments.rounds)
      lines = [*table(row, contest.found), *contest.failures()]
      print("\n".join(lines), flush=True)


if __name__ == "__main__":
  main()
