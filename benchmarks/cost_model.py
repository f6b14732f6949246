"""What an update of the model takes, and what devices that share it lose.

`scaling.py` reckons with it, and `measure_scaling.py` fits it.

Shapes: N tokens of either side in an update, D hidden size, F filter size,
V vocabulary.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from official_transformer.model_params import PARAM_SETS, TransformerParams

FLOAT32_BYTES = 4
# Tokens of either side in an update of the paper's (section 5.1), in sentences
# of which most are shorter.
TOKENS = 25_000
LENGTH = 32
VOCAB_SIZE = 32_768
# The paper's models.
MODELS = {
  name: dataclasses.replace(PARAM_SETS[name], vocab_size=VOCAB_SIZE)
  for name in ("base", "big")
}
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
    tokens: N.
    parameters: of the model.
    flop: operations of its matrix products, forward and backward.
    gradient_bytes: what all devices have to agree on, float32.
    adam_bytes: what the optimizer reads and writes.
  """

  tokens: int
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
    tokens,
    parameters,
    count_flop(params, tokens, length),
    FLOAT32_BYTES * parameters,
    # Weight, gradient and two moments are read, all but the gradient written.
    7 * FLOAT32_BYTES * parameters,
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

  def parts(self, update: Update, devices: int) -> Parts:
    """Returns where the time of an update goes.

    Args:
      update: of all devices together.
      devices: that share it evenly.
    """
    products = update.flop / (devices * self.flop_rate)
    adam = update.adam_bytes / self.memory_rate
    batches = math.ceil(update.tokens / devices / self.batch_tokens)
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
