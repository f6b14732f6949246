"""What an update costs, and what several devices make of it, reckoned.

    python benchmarks/scaling.py

Prints the tables of docs/scaling.md, which says where the figures of the
devices come from. `measure_scaling.py` measures what can be measured on one
machine.

Shapes: N tokens of either side in an update, D hidden size, F filter size,
V vocabulary.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

from official_transformer.model_params import PARAM_SETS, TransformerParams

FLOAT32_BYTES = 4
# Tokens of either side in an update of the paper's (section 5.1), in sentences
# of which most are shorter.
TOKENS = 25_000
LENGTH = 32
VOCAB_SIZE = 32_768
# The paper's numbers of updates (section 5.2).
UPDATES = {"base": 100_000, "big": 300_000}
# A backward pass has two products for each of the forward pass.
_PASSES = 3
_MULTIPLY_ADD = 2
# Nodes that compute something in TensorFlow's graph of a training step of six
# layers, and what the host takes to launch each: an assumption.
LAUNCHED = 4_600
LAUNCH_SECONDS = 5e-6


class Update(NamedTuple):
  """What one update takes, whoever shares it.

  Attributes:
    parameters: of the model.
    flop: operations of its matrix products, forward and backward.
    gradient_bytes: what all devices have to agree on, float32.
    adam_bytes: what the optimizer reads and writes.
  """

  parameters: int
  flop: float
  gradient_bytes: int
  adam_bytes: int


def count_parameters(params: TransformerParams) -> int:
  """Returns how many numbers a model of the official kind learns."""
  hidden, width = params.hidden_size, params.filter_size
  attention = 4 * hidden**2
  network = 2 * hidden * width + width + hidden
  norm = 2 * hidden
  encoder = attention + network + 2 * norm
  decoder = 2 * attention + network + 3 * norm
  table = params.vocab_size * hidden
  return (
    table
    + params.encoder_layers * encoder
    + params.decoder_layers * decoder
    + 2 * norm
  )


def count_flop(params: TransformerParams, tokens: int, length: int) -> float:
  """Returns the operations of an update's matrix products.

  Args:
    params: the model's.
    tokens: N, of either side.
    length: of the sentences, on which attention's products depend.
  """
  hidden = params.hidden_size
  attention = 4 * hidden**2 + 2 * length * hidden
  network = 2 * hidden * params.filter_size
  encoder = attention + network
  decoder = 2 * attention + network
  a_token = (
    params.encoder_layers * encoder
    + params.decoder_layers * decoder
    + params.vocab_size * hidden
  )
  return float(_PASSES * _MULTIPLY_ADD * tokens * a_token)


def update_of(
  params: TransformerParams, tokens: int = TOKENS, length: int = LENGTH
) -> Update:
  """Returns what one update of a model takes."""
  parameters = count_parameters(params)
  return Update(
    parameters,
    count_flop(params, tokens, length),
    FLOAT32_BYTES * parameters,
    # Weight, gradient and two moments are read, all but the gradient written.
    7 * FLOAT32_BYTES * parameters,
  )


@dataclasses.dataclass(frozen=True)
class Cluster:
  """Devices that share updates, some in each machine.

  What many lose over one is, in the manner of a ring, (n - 1) / n of two
  things: a share of the step, in which devices wait for whoever has most to do,
  and the bytes of all gradients, twice, at a rate.

  Attributes:
    name: of the device and its precision.
    flop_rate: operations a second that a device does of the model's.
    memory_rate: bytes a second between a device and its memory.
    waiting: that share of the step.
    rate: of the gradients' bytes.
    network_rate: the same into and out of a machine, at most.
    batch_tokens: of either side, that a device holds at a time.
    devices_a_machine: that need no network to agree.
  """

  name: str
  flop_rate: float
  memory_rate: float
  waiting: float
  rate: float
  network_rate: float = math.inf
  batch_tokens: int = 10**9
  devices_a_machine: int = 8

  def parts(self, update: Update, devices: int, tokens: int) -> Parts:
    """Returns where the time of an update goes.

    Args:
      update: of all devices together.
      devices: that share it evenly.
      tokens: N of the update.
    """
    products = update.flop / (devices * self.flop_rate)
    adam = update.adam_bytes / self.memory_rate
    batches = math.ceil(tokens / devices / self.batch_tokens)
    rate = self.rate
    if devices > self.devices_a_machine:
      rate = min(rate, self.network_rate)
    others = (devices - 1) / devices
    return Parts(
      products,
      adam,
      batches * LAUNCHED * LAUNCH_SECONDS,
      others * self.waiting * (products + adam),
      others * 2 * update.gradient_bytes / rate,
    )


class Parts(NamedTuple):
  """Where the seconds of an update go.

  Attributes:
    products: of matrices.
    adam: the optimizer's reading and writing.
    launching: of all operations, beside products and Adam.
    waiting: for whoever has most to do.
    summing: the gradients.
  """

  products: float
  adam: float
  launching: float
  waiting: float
  summing: float

  @property
  def alone(self) -> float:
    """What one device would take for its part."""
    return max(self.products + self.adam, self.launching)

  @property
  def seconds(self) -> float:
    """What all take."""
    return self.alone + self.waiting + self.summing

  @property
  def efficiency(self) -> float:
    """One device's time over that of many with as much to do each."""
    return self.alone / self.seconds


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
    device: that it has.
    memory_rate: the device's bytes a second.
    network_rate: bytes a second of such machines' network, to rent.
    price: of a device an hour, in dollars, to reckon with.
    runs: the two.
  """

  name: str
  device: str
  memory_rate: float
  network_rate: float
  price: float
  runs: tuple[Run, Run]

  def clusters(self) -> Iterator[tuple[Run, Cluster]]:
    """Yields each run, and a cluster whose eight devices do as they did."""
    first, second = self.runs
    # Two equations: lost = waiting * seconds + 2 * bytes / rate.
    waiting = (first.lost - second.lost) / (first.seconds - second.seconds)
    summing = second.lost - waiting * second.seconds
    for run in self.runs:
      update = update_of(big(), run.tokens)
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
    (
      Run("tf32", 10_240, 51_057, {4: 3.51, 8: 6.81}),
      Run("fp16", 10_240, 82_059, {4: 3.49, 8: 6.72}),
    ),
  ),
)
# Those in half precision that the later tables are of.
CHOSEN = ("DGX-1", "DGX A100")


def base() -> TransformerParams:
  """Returns the paper's base model."""
  return dataclasses.replace(PARAM_SETS["base"], vocab_size=VOCAB_SIZE)


def big() -> TransformerParams:
  """Returns the paper's big model."""
  return dataclasses.replace(PARAM_SETS["big"], vocab_size=VOCAB_SIZE)


MODELS = {"base": base, "big": big}


def chosen() -> Iterator[tuple[Machine, Cluster]]:
  """Yields the machines and their clusters in half precision."""
  for machine in MACHINES:
    if machine.name in CHOSEN:
      *_, (_, cluster) = machine.clusters()
      yield machine, cluster


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
    update = update_of(params())
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
      update = update_of(big(), run.tokens)
      foretold = []
      for devices, seen in run.speedups.items():
        if devices != 8:  # What it was fitted to.
          shared = update._replace(flop=devices * update.flop)
          # All of them are in one machine, which has no launching to hide.
          inside = dataclasses.replace(cluster, devices_a_machine=devices)
          parts = inside.parts(shared, devices, devices * run.tokens)
          parts = parts._replace(launching=0.0)
          reached = devices * parts.efficiency
          foretold.append(f"{devices}: {reached:.2f} ({seen:.2f})")
      rows.append(
        [
          f"{machine.name}, {run.precision}",
          f"{run.tokens:,}",
          f"{run.alone:,.0f}",
          f"{run.speedups[8]:.2f}",
          f"{cluster.flop_rate / 1e12:.0f}",
          f"{cluster.waiting:.0%}",
          f"{cluster.rate / 1e9:.0f}",
          ", ".join(foretold),
        ]
      )
  return rows


def part_rows() -> list[list[str]]:
  """Returns where the time of the paper's update goes."""
  rows = []
  for _, cluster in chosen():
    for name, params in MODELS.items():
      for devices in (8, 64):
        parts = cluster.parts(update_of(params()), devices, TOKENS)
        largest = max(parts)
        cells = [
          f"**{1000 * part:.1f}**" if part == largest else f"{1000 * part:.1f}"
          for part in parts
        ]
        rows.append([cluster.name, name, str(devices), *cells])
  return rows


def efficiency_rows() -> list[list[str]]:
  """Returns how much of eight and of 64 devices is used."""
  rows = []
  for _, cluster in chosen():
    for name, params in MODELS.items():
      cells = []
      for tokens in (TOKENS // 8, TOKENS):
        for devices in (8, 64):
          update = update_of(params(), devices * tokens)
          parts = cluster.parts(update, devices, devices * tokens)
          cells.append(f"{parts.efficiency:.0%}")
      rows.append([cluster.name, name, *cells])
  return rows


def wmt_rows() -> list[list[str]]:
  """Returns what the paper's updates take, on one device and on eight."""
  rows = []
  for machine, cluster in chosen():
    for name, params in MODELS.items():
      cells = []
      for devices in (1, 8):
        parts = cluster.parts(update_of(params()), devices, TOKENS)
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
      "speedups foretold (seen)",
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
    ["", "", "hours, 1 device", "", "hours, 8 devices", ""], wmt_rows()
  )


def main() -> None:
  """Runs the command."""
  print("\n".join(pages()))


if __name__ == "__main__":
  main()
