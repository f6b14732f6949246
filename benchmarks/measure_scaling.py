"""What two processes lose by training one model, and what explains it.

    python benchmarks/measure_scaling.py --rounds=2

Every round trains models of several sizes on synthetic batches of several sizes
by `transformer_main`, two processes with a core each: first each its own model
at the same time, then one model by both, over loopback. What a joint step takes
longer is what agreeing costs. As in `scaling.py`, a share of the step and
a rate of the gradients' bytes are fitted to some of the cases, and predict the
others. Linux alone. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
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
from cost_model import Cluster, update_of
from scaling import efficiencies, table

from official_transformer.model_params import PARAM_SETS, TransformerParams

COMMAND = (sys.executable, "-m", "official_transformer.transformer_main")
STEPS, WARM_UP, LOGGED = 25, 10, 5
SECONDS = 900


class Case(NamedTuple):
  """A model of two layers, a filter four times as wide, and its batches.

  Attributes:
    hidden: its hidden size.
    tokens: of either side that each process has in a step.
  """

  hidden: int
  tokens: int

  def params(self, vocab_size: int) -> TransformerParams:
    """Returns the model's parameters."""
    return dataclasses.replace(
      PARAM_SETS["tiny"],
      vocab_size=vocab_size,
      hidden_size=self.hidden,
      num_hidden_layers=2,
      filter_size=4 * self.hidden,
    )


FITTED = (Case(128, 1024), Case(256, 512), Case(256, 2048), Case(384, 512))
PREDICTED = (Case(128, 2048), Case(384, 1024), Case(512, 512), Case(512, 1024))


class Found(NamedTuple):
  """What a case takes.

  Attributes:
    flop: of the products of a process' step.
    gradient_bytes: of float32 gradients.
    apart: seconds of a step of two models trained apart.
    joined: seconds of a step of one model trained by both.
  """

  flop: float
  gradient_bytes: int
  apart: float
  joined: float

  @property
  def lost(self) -> float:
    """What an update of both takes longer."""
    return self.joined - self.apart


def make_data(directory: pathlib.Path) -> int:
  """Makes a data directory, for its vocabulary; returns the size of that."""
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
  described = (directory / "data" / "data.json").read_text("utf-8")
  return int(json.loads(described)["vocabulary"]["size"])


def free_ports(number: int) -> list[int]:
  """Returns ports that nobody listens at."""
  sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
  ports = [each.getsockname()[1] for each in sockets]
  for each in sockets:
    each.close()
  return ports


def run_both(
  directory: pathlib.Path, flags: list[str], ports: list[int] | None
) -> str:
  """Runs the command in two processes at once; returns what the first says.

  Args:
    directory: gets the models and what is said.
    flags: of both.
    ports: for one model of both; None for a model each.

  Raises:
    RuntimeError: if one fails.
  """
  cores = sorted(os.sched_getaffinity(0))
  running: list[subprocess.Popen] = []
  try:
    for index in range(2):
      environment = dict(os.environ)
      if ports:
        cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
        task = {"type": "worker", "index": index}
        environment["TF_CONFIG"] = json.dumps(
          {"cluster": cluster, "task": task}
        )
      # One after another, in the same directory, would go on.
      name = f"both-{ports[0]}" if ports else tempfile.mkdtemp(dir=directory)
      core = str(cores[index % len(cores)])
      with (directory / f"{index}.log").open("wb") as stream:
        running.append(
          subprocess.Popen(
            [
              *("taskset", "-c", core, *COMMAND, *flags),
              f"--model_dir={directory / name}",
            ],
            env=environment,
            stdout=stream,
            stderr=stream,
          )
        )
    for index, process in enumerate(running):
      if process.wait(SECONDS):
        said = (directory / f"{index}.log").read_text("utf-8")
        raise RuntimeError(f"process {index} failed:\n{said}")
  finally:
    for process in running:
      process.kill()
      process.wait()
  return (directory / "0.log").read_text("utf-8")


def train(
  directory: pathlib.Path,
  params: TransformerParams,
  tokens: int,
  joined: bool,
) -> float:
  """Trains in two processes at once; returns the median seconds of a step.

  Args:
    directory: has the data.
    params: the models'.
    tokens: of either side that each process has in a step.
    joined: train one model instead of two.
  """
  flags = [
    *("--mode=train", "--use_synthetic_data", "--noenable_checkpointing"),
    *(f"--data_dir={directory}/data", "--param_set=tiny"),
    f"--params_override=hidden_size={params.hidden_size},"
    f"num_hidden_layers={params.num_hidden_layers},"
    f"filter_size={params.filter_size}",
    *(f"--train_steps={STEPS}", f"--log_steps={LOGGED}"),
    f"--batch_size={tokens * (2 if joined else 1)}",
    "--use_ctl",  # As joined ones do.
  ]
  if joined:
    flags.append("--distribution_strategy=multi_worker_mirrored")
  said = run_both(directory, flags, free_ports(2) if joined else None)
  whole = re.search(r"(\d+) steps, (\d+) source and target tokens", said)
  if not whole:
    raise RuntimeError(f"no report in:\n{said}")
  rates = [
    float(rate)
    for step, rate in re.findall(r"step (\d+) of .* tokens/s (\d+)", said)
    if int(step) > WARM_UP
  ]
  return int(whole[2]) / int(whole[1]) / statistics.median(rates)


def measure(rounds: int) -> dict[Case, Found]:
  """Returns what each case takes, medians of the rounds."""
  cases = (*FITTED, *PREDICTED)
  apart: dict[Case, list[float]] = {case: [] for case in cases}
  joined: dict[Case, list[float]] = {case: [] for case in cases}
  with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    vocab_size = make_data(directory)
    for _ in range(rounds):
      for case in cases:
        params = case.params(vocab_size)
        apart[case].append(train(directory, params, case.tokens, False))
        joined[case].append(train(directory, params, case.tokens, True))
  found = {}
  for case in cases:
    update = update_of(case.params(vocab_size), case.tokens)
    seconds = statistics.median(apart[case]), statistics.median(joined[case])
    found[case] = Found(update.flop, update.gradient_bytes, *seconds)
  return found


def fit(found: dict[Case, Found]) -> tuple[float, float]:
  """Returns a share of the step and a rate of bytes, by least squares.

  Of two devices, half of the share and of twice the bytes is lost.

  Raises:
    ValueError: if more bytes seem to take no longer, as on a busy machine.
  """
  known = [found[case] for case in FITTED]
  columns = [[one.apart / 2, one.gradient_bytes] for one in known]
  (waiting, a_byte), *_ = np.linalg.lstsq(
    np.array(columns), np.array([one.lost for one in known]), rcond=None
  )
  if a_byte <= 0:
    raise ValueError(
      "more bytes took no longer: the machine does other work; measure anew"
    )
  return float(waiting), float(1 / a_byte)


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--rounds", type=int, default=2)
  found = measure(parser.parse_args().rounds)
  waiting, rate = fit(found)
  rows = []
  for case, one in found.items():
    explained = waiting * one.apart / 2 + one.gradient_bytes / rate
    rows.append(
      [
        str(case.hidden),
        f"{case.tokens:,}",
        f"{one.gradient_bytes / 1e6:.1f}",
        f"{one.apart:.3f}",
        f"{one.joined:.3f}",
        f"{1000 * one.lost:.0f}",
        f"{1000 * explained:.0f}{', predicted' if case in PREDICTED else ''}",
      ]
    )
  head = ["hidden", "tokens a process", "gradient, MB", "apart, s", "joined, s"]
  print("\n".join(table([*head, "lost, ms", "explained, ms"], rows)))
  print(f"{waiting:.1%} of the step and {rate / 1e9:.2f} GB/s\n")
  largest = found[PREDICTED[-1]]
  flop_rate = largest.flop / largest.apart
  cluster = Cluster("", flop_rate, math.inf, waiting, rate)
  rows = [
    [f"{tokens:,} tokens a process", *efficiencies(cluster, "base", tokens)]
    for tokens in (1024, 8192)
  ]
  print("\n".join(table(["base", "8", "64"], rows)))


if __name__ == "__main__":
  main()
