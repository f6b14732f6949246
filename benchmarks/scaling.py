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
# Names in TensorFlow's graph of one training step of base, and what the host
# takes for each that is not compiled into another: an assumption.
GRAPH_OPERATIONS = 7_300
SECONDS_AN_OPERATION = 5e-6


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
  """Machines of eight devices each.

  Attributes:
    name: of the device and its precision.
    flop_rate: operations a second that a device has been seen to do of the big
      model's, alone.
    reduce_rate: bytes a second at which its machine's eight seem to sum their
      gradients, if nothing of it were hidden behind the backward pass.
    network_rate: bytes a second into and out of a machine.
  """

  name: str
  flop_rate: float
  reduce_rate: float
  network_rate: float
  devices_a_machine: int = 8

  def reduce_seconds(self, update: Update, devices: int) -> float:
    """Returns how long devices take to sum their gradients in a ring."""
    if devices == 1:
      return 0.0
    rate = self.reduce_rate
    if devices > self.devices_a_machine:
      rate = min(rate, self.network_rate)
    return 2 * (devices - 1) / devices * update.gradient_bytes / rate

  def seconds(self, update: Update, devices: int, floor: float = 0.0) -> float:
    """Returns how long an update takes.

    Args:
      update: shared evenly.
      devices: that share it.
      floor: seconds that the host takes to launch a step's operations.
    """
    products = update.flop / (devices * self.flop_rate)
    return max(products, floor) + self.reduce_seconds(update, devices)

  def efficiency(self, update: Update, devices: int) -> float:
    """Returns one device's time over that of many, each with as much to do.

    Args:
      update: of one device's tokens.
      devices: how many, whose updates are that many times as large.
    """
    alone = self.seconds(update, 1)
    return alone / (alone + self.reduce_seconds(update, devices))


class Observation(NamedTuple):
  """Someone's measurement of the big model, in fairseq by NVIDIA.

  Attributes:
    name: the device and its precision.
    tokens: a device's share of an update, of the target side.
    alone: tokens a second of one device.
    speedup: of eight, each with as many tokens.
    gradient_bytes: of a number.
    network_rate: bytes a second of such machines' networks.
  """

  name: str
  tokens: int
  alone: float
  speedup: float
  gradient_bytes: int
  network_rate: float

  @property
  def lost_seconds(self) -> float:
    """What an update of eight devices takes longer than one of one."""
    return self.tokens / self.alone * (8 / self.speedup - 1)

  def cluster(self) -> Cluster:
    """Returns the device with rates that explain the measurement."""
    update = update_of(big(), self.tokens)
    sent = 2 * 7 / 8 * self.gradient_bytes * update.parameters
    return Cluster(
      self.name,
      update.flop / self.tokens * self.alone,
      sent / self.lost_seconds,
      self.network_rate,
    )


# github.com/NVIDIA/DeepLearningExamples, PyTorch/Translation/Transformer,
# "Training performance results"; networks of 100 and 400 Gb/s, as machines to
# rent have with these devices.
OBSERVATIONS = (
  Observation("V100, fp32", 2_560, 8_742, 6.79, 4, 12.5e9),
  Observation("V100, fp16", 5_120, 32_942, 6.52, 2, 12.5e9),
  Observation("A100, fp16", 10_240, 82_059, 6.72, 2, 50e9),
)


def base() -> TransformerParams:
  """Returns the paper's base model."""
  return dataclasses.replace(PARAM_SETS["base"], vocab_size=VOCAB_SIZE)


def big() -> TransformerParams:
  """Returns the paper's big model."""
  return dataclasses.replace(PARAM_SETS["big"], vocab_size=VOCAB_SIZE)


MODELS = {"base": base, "big": big}


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
        f"{update.adam_bytes / 1e6:.0f} MB",
      ]
    )
  return rows


def device_rows() -> list[list[str]]:
  """Returns what the measurements of others say of their devices."""
  rows = []
  for seen in OBSERVATIONS:
    cluster = seen.cluster()
    rows.append(
      [
        seen.name,
        f"{seen.tokens:,}",
        f"{seen.alone:,.0f}",
        f"{seen.speedup:.2f}",
        f"{cluster.flop_rate / 1e12:.0f}",
        f"{1000 * seen.lost_seconds:.0f} ms",
        f"{cluster.reduce_rate / 1e9:.0f}",
      ]
    )
  return rows


def efficiency_rows() -> list[list[str]]:
  """Returns how much of eight and of 64 devices is used."""
  rows = []
  for seen in OBSERVATIONS:
    cluster = seen.cluster()
    for name, params in MODELS.items():
      cells = [
        f"{cluster.efficiency(update_of(params(), tokens), devices):.0%}"
        for tokens in (TOKENS // 8, TOKENS)
        for devices in (8, 64)
      ]
      rows.append([seen.name, name, *cells])
  return rows


def wmt_rows() -> list[list[str]]:
  """Returns how long the paper's updates take, on one device and on eight."""
  rows = []
  floor = GRAPH_OPERATIONS * SECONDS_AN_OPERATION
  for seen in OBSERVATIONS:
    cluster = seen.cluster()
    for name, params in MODELS.items():
      update = update_of(params())
      cells = []
      for devices in (1, 8):
        hours = UPDATES[name] * cluster.seconds(update, devices) / 3600
        slow = UPDATES[name] * cluster.seconds(update, devices, floor) / 3600
        cells.append(
          f"{hours:.1f}"
          if hours > 0.99 * slow
          else f"{hours:.1f} to {slow:.1f}"
        )
        cells.append(f"{devices * slow:.0f}")
      rows.append([seen.name, name, *cells])
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
      "big",
      "tokens a device",
      "tokens/s of one",
      "speedup of eight",
      "TFLOP/s of one",
      "lost an update",
      "GB/s",
    ],
    device_rows(),
  )
  yield ""
  yield from table(
    ["", "", "8, 3,125 each", "64, 3,125 each", "8, 25,000", "64, 25,000"],
    efficiency_rows(),
  )
  yield ""
  yield from table(
    ["", "", "hours, 1 device", "device hours", "hours, 8", "device hours"],
    wmt_rows(),
  )


def main() -> None:
  """Runs the command."""
  print("\n".join(pages()))


if __name__ == "__main__":
  main()
