"""What an update costs, and what several devices make of it, reckoned.

    python benchmarks/scaling.py

Prints the tables of docs/scaling.md, which says where the figures of the
devices come from. `measure_scaling.py` measures what can be measured on one
machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cost_model import MODELS, TOKENS, Cluster, update_of

# The paper's numbers of updates (section 5.2).
UPDATES = {"base": 100_000, "big": 300_000}


class Run(NamedTuple):
  """Someone's measurement of big.

  Attributes:
    precision: what it computes in.
    tokens: the most of a side that a device has in an update, with padding.
    alone: tokens a second of one device.
    speedups: by the number of devices, each with as many tokens.
  """

  precision: str
  tokens: int
  alone: float
  speedups: dict[int, float]

  @property
  def seconds(self) -> float:
    """Of an update of one device."""
    return self.tokens / self.alone

  @property
  def lost(self) -> float:
    """What an update of eight devices takes longer, as of endlessly many."""
    return (8 / self.speedups[8] - 1) * self.seconds / (1 - 1 / 8)


class Machine(NamedTuple):
  """A machine that others have measured, in two precisions.

  Attributes:
    name: its own.
    device: their kind.
    memory_rate: the device's bytes a second.
    network_rate: bytes a second of such machines' network, to rent.
    price: of a device an hour, in dollars, to reckon with.
    devices: that it has.
    runs: the two.
  """

  name: str
  device: str
  memory_rate: float
  network_rate: float
  price: float
  devices: int
  runs: tuple[Run, Run]

  def clusters(self) -> Iterator[tuple[Run, Cluster]]:
    """Yields each run, and a cluster whose eight devices do as they did."""
    first, second = self.runs
    # Two equations: lost = waiting * seconds + 2 * bytes / rate.
    waiting = (first.lost - second.lost) / (first.seconds - second.seconds)
    summing = second.lost - waiting * second.seconds
    for run in self.runs:
      update = update_of(MODELS["big"], run.tokens)
      adam = update.adam_bytes / self.memory_rate
      yield (
        run,
        Cluster(
          f"{self.device}, {run.precision}",
          update.flop / (run.seconds - adam),
          self.memory_rate,
          waiting,
          2 * update.gradient_bytes / summing,
          self.network_rate,
          run.tokens,
          self.devices,
        ),
      )


# github.com/NVIDIA/DeepLearningExamples, PyTorch/Translation/Transformer,
# "Training performance results", of 2022: float32 gradients in any precision.
MACHINES = (
  Machine(
    "DGX-1",
    "V100",
    0.9e12,
    12.5e9,
    1.0,
    8,
    (
      Run("fp32", 2_560, 8_742, {4: 3.46, 8: 6.79}),
      Run("fp16", 5_120, 32_942, {4: 3.33, 8: 6.52}),
    ),
  ),
  Machine(
    "DGX-2",
    "V100, 32 GB",
    0.9e12,
    12.5e9,
    1.0,
    16,
    (
      Run("fp32", 5_120, 9_827, {4: 3.58, 8: 7.01, 16: 13.87}),
      Run("fp16", 10_240, 39_911, {4: 3.45, 8: 6.71, 16: 12.96}),
    ),
  ),
  Machine(
    "DGX A100",
    "A100",
    1.555e12,
    50e9,
    2.0,
    8,
    (
      Run("tf32", 10_240, 51_057, {4: 3.51, 8: 6.81}),
      Run("fp16", 10_240, 82_059, {4: 3.49, 8: 6.72}),
    ),
  ),
)
# Those in half precision that the later tables are of.
CHOSEN = ("DGX-1", "DGX A100")


def chosen() -> Iterator[tuple[Machine, Cluster, str]]:
  """Yields machines, their clusters in half precision, and models for each."""
  for machine in MACHINES:
    if machine.name in CHOSEN:
      *_, (_, cluster) = machine.clusters()
      for name in MODELS:
        yield machine, cluster, name


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
  """Yields the lines of a Markdown table."""
  yield f"| {' | '.join(head)} |"
  yield f"| {' | '.join('---' for _ in head)} |"
  for row in rows:
    yield f"| {' | '.join(row)} |"


def update_rows() -> list[list[str]]:
  """Returns what an update of each model takes."""
  rows = []
  for name, params in MODELS.items():
    update = update_of(params)
    rows.append(
      [
        name,
        f"{update.parameters / 1e6:.1f} M",
        f"{update.flop / 1e12:.1f} TFLOP",
        f"{update.gradient_bytes / 1e6:.0f} MB",
        f"{update.adam_bytes / 1e6:,.0f} MB",
      ]
    )
  return rows


def device_rows() -> list[list[str]]:
  """Returns what the measurements of others say of their devices."""
  rows = []
  for machine in MACHINES:
    for run, cluster in machine.clusters():
      predicted = []
      for devices, seen in run.speedups.items():
        if devices != 8:  # What it was fitted to.
          update = update_of(MODELS["big"], devices * run.tokens)
          reached = devices * cluster.parts(update, devices).efficiency
          predicted.append(f"{devices}: {reached:.2f} ({seen:.2f})")
      rows.append(
        [
          f"{machine.name}, {run.precision}",
          f"{run.tokens:,}",
          f"{run.alone:,.0f}",
          f"{run.speedups[8]:.2f}",
          f"{cluster.flop_rate / 1e12:.0f}",
          f"{cluster.waiting:.0%}",
          f"{cluster.rate / 1e9:.0f}",
          ", ".join(predicted),
        ]
      )
  return rows


def part_rows() -> list[list[str]]:
  """Returns where the time of the paper's update goes."""
  rows = []
  for _, cluster, name in chosen():
    for devices in (8, 64):
      parts = cluster.parts(update_of(MODELS[name]), devices)
      largest = max(parts)
      cells = [
        f"**{1000 * part:.1f}**" if part == largest else f"{1000 * part:.1f}"
        for part in parts
      ]
      rows.append([cluster.name, name, str(devices), *cells])
  return rows


def efficiencies(cluster: Cluster, name: str, tokens: int) -> Iterator[str]:
  """Yields how much of eight and of 64 devices is used.

  Args:
    cluster: they are of.
    name: the model's.
    tokens: of either side that each has in an update.
  """
  for devices in (8, 64):
    update = update_of(MODELS[name], devices * tokens)
    yield f"{cluster.parts(update, devices).efficiency:.0%}"


def efficiency_rows() -> list[list[str]]:
  """Returns how much of many devices is used, with few tokens and with many."""
  return [
    [
      *(cluster.name, name),
      *efficiencies(cluster, name, TOKENS // 8),
      *efficiencies(cluster, name, TOKENS),
    ]
    for _, cluster, name in chosen()
  ]


def wmt_rows() -> list[list[str]]:
  """Returns what the paper's updates take, on one device and on eight."""
  rows = []
  for machine, cluster, name in chosen():
    cells = []
    for devices in (1, 8):
      parts = cluster.parts(update_of(MODELS[name]), devices)
      hours = UPDATES[name] * parts.seconds / 3600
      cells += [f"{hours:.1f}", f"${devices * hours * machine.price:.0f}"]
    rows.append([cluster.name, name, *cells])
  return rows


def pages() -> Iterator[str]:
  """Yields the lines of all tables."""
  yield from table(
    ["", "parameters", "products", "gradient", "Adam reads and writes"],
    update_rows(),
  )
  yield ""
  yield from table(
    [
      "big on",
      "tokens a device",
      "tokens/s of one",
      "speedup of eight",
      "TFLOP/s",
      "waiting",
      "GB/s",
      "speedups predicted (observed)",
    ],
    device_rows(),
  )
  yield ""
  yield from table(
    [
      "ms",
      "model",
      "devices",
      "products",
      "Adam",
      "launching",
      "waiting",
      "summing",
    ],
    part_rows(),
  )
  yield ""
  yield from table(
    ["", "", "8, 3,125 each", "64, 3,125 each", "8, 25,000", "64, 25,000"],
    efficiency_rows(),
  )
  yield ""
  yield from table(
    ["", "", "hours, 1 device", "cost", "hours, 8 devices", "cost in all"],
    wmt_rows(),
  )


def main() -> None:
  """Runs the command."""
  print("\n".join(pages()))


if __name__ == "__main__":
  main()
