"""What two processes lose by training one model, and a line through it.

    python benchmarks/measure_scaling.py --rounds=3

Every round trains models of several sizes by `transformer_main` on synthetic
batches, two processes with a core each: first each its own model, at the same
time, then one model by both, over loopback. What a joint step takes longer is
what their agreement costs; a line through all sizes but one gives its bytes a
second and its fixed part, and foretells the one left out. Linux alone: the
cores are given by `taskset`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np

COMMAND = (sys.executable, "-m", "official_transformer.transformer_main")
TOKENS = 1_024
STEPS, WARM_UP, LOGGED = 30, 10, 5
# Hidden sizes, of two layers and a filter four times as wide; the third is
# foretold.
HIDDEN = (128, 256, 384, 512)
FORETOLD = 384


class Found(NamedTuple):
  """Of one size of a model.

  Attributes:
    gradient_bytes: of its float32 gradients.
    apart: seconds of a step of two models trained apart.
    joined: seconds of a step of one model trained by both.
  """

  gradient_bytes: int
  apart: float
  joined: float

  @property
  def lost(self) -> float:
    """What an update of both takes longer."""
    return self.joined - self.apart


def make_data(directory: pathlib.Path) -> None:
  """Makes a data directory, which synthetic batches take a vocabulary of."""
  module = [sys.executable, "-m"]
  for command in (
    [*module, "data_prep.demo_corpus", f"--output_dir={directory}"],
    [
      *(*module, "data_prep.prepare_data", f"--data_dir={directory}/data"),
      *(f"--train_source={directory}/train.en", "--vocab_size=1000"),
      f"--train_target={directory}/train.de",
    ],
  ):
    subprocess.run(command, check=True, capture_output=True)


def train(
  directory: pathlib.Path, hidden: int, joined: bool
) -> tuple[int, float]:
  """Trains in two processes at once.

  Args:
    directory: has the data, and gets what is said.
    hidden: the models' hidden size.
    joined: train one model instead of two.

  Returns:
    The model's parameters, and the median seconds of a step.
  """
  ports = free_ports(2)
  flags = [
    *("--mode=train", "--use_synthetic_data", "--noenable_checkpointing"),
    *(f"--data_dir={directory}/data", "--param_set=tiny"),
    f"--params_override=hidden_size={hidden},filter_size={4 * hidden},"
    "num_hidden_layers=2,num_heads=4",
    *(f"--train_steps={STEPS}", f"--log_steps={LOGGED}"),
    f"--batch_size={TOKENS * (2 if joined else 1)}",
  ]
  if joined:
    flags.append("--distribution_strategy=multi_worker_mirrored")
  running = []
  for index in range(2):
    environment = dict(os.environ)
    if joined:
      cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
      task = {"type": "worker", "index": index}
      environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    model = directory / f"model-{ports[0 if joined else index]}"
    log = directory / f"{index}.log"
    with log.open("wb") as stream:
      command = ["taskset", "-c", str(index), *COMMAND, *flags]
      running.append(
        subprocess.Popen(
          [*command, f"--model_dir={model}"],
          env=environment,
          stdout=stream,
          stderr=stream,
        )
      )
  for process in running:
    assert process.wait() == 0, (directory / "0.log").read_text("utf-8")
  said = (directory / "0.log").read_text("utf-8")
  parameters = re.search(r"([\d,]+) trainable parameters", said)
  assert parameters
  rates = [
    float(rate)
    for step, rate in re.findall(r"step (\d+) of .* tokens/s (\d+)", said)
    if int(step) > WARM_UP
  ]
  whole = re.search(r"(\d+) steps, (\d+) source and target tokens", said)
  assert whole
  tokens = int(whole[2]) / int(whole[1])
  return int(parameters[1].replace(",", "")), tokens / statistics.median(rates)


def free_ports(number: int) -> list[int]:
  """Returns ports that nobody listens at."""
  sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
  ports = [each.getsockname()[1] for each in sockets]
  for each in sockets:
    each.close()
  return ports


def measure(rounds: int) -> dict[int, Found]:
  """Returns what each size takes, medians of the rounds."""
  apart: dict[int, list[float]] = {hidden: [] for hidden in HIDDEN}
  joined: dict[int, list[float]] = {hidden: [] for hidden in HIDDEN}
  parameters = {}
  with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    make_data(directory)
    for _ in range(rounds):
      for hidden in HIDDEN:
        parameters[hidden], seconds = train(directory, hidden, False)
        apart[hidden].append(seconds)
        joined[hidden].append(train(directory, hidden, True)[1])
  return {
    hidden: Found(
      4 * parameters[hidden],
      statistics.median(apart[hidden]),
      statistics.median(joined[hidden]),
    )
    for hidden in HIDDEN
  }


def fit(found: dict[int, Found]) -> tuple[float, float]:
  """Returns seconds a byte and fixed seconds of what is lost, by least squares.

  Raises:
    ValueError: if more bytes seem to take no longer, as on a busy machine.
  """
  known = [one for hidden, one in found.items() if hidden != FORETOLD]
  slope, fixed = np.polyfit(
    [one.gradient_bytes for one in known], [one.lost for one in known], 1
  )
  if slope <= 0:
    raise ValueError(
      "more bytes took no longer: the machine does other work; measure anew"
    )
  return float(slope), float(fixed)


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--rounds", type=int, default=3)
  found = measure(parser.parse_args().rounds)
  print("| hidden | gradient MB | apart, s | joined, s | lost, ms | line, ms |")
  print("| --- | --- | --- | --- | --- | --- |")
  slope, fixed = fit(found)
  for hidden, one in found.items():
    foretold = 1000 * (fixed + slope * one.gradient_bytes)
    mark = ", foretold" if hidden == FORETOLD else ""
    print(
      f"| {hidden} | {one.gradient_bytes / 1e6:.1f} | {one.apart:.3f} "
      f"| {one.joined:.3f} | {1000 * one.lost:.0f} | {foretold:.0f}{mark} |"
    )
  # In a ring of two each sends its gradients once.
  print(f"{1e-9 / slope:.2f} GB/s, and {1000 * fixed:.0f} ms an update")


if __name__ == "__main__":
  main()
