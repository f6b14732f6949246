"""Names of the variables of encoder and decoder layers, in parts."""

from __future__ import annotations

import re
from typing import NamedTuple

_PATH = re.compile(
  r"transformer/(encoder|decoder)_stack/layer_(\d+)/(\w+)/"
  r"(?:layer_norm/(gamma|beta)|\w+/(\w+)_(kernel|bias))"
)


class StackVariable(NamedTuple):
  """The parts of a variable's name.

  Attributes:
    stack: encoder or decoder.
    layer: number of the layer, from 0.
    sub_layer: self_attention, cross_attention or ffn.
    product: name of the projection, such as query; None in a layer norm.
    kind: kernel, bias, gamma or beta.
  """

  stack: str
  layer: int
  sub_layer: str
  product: str | None
  kind: str

  @classmethod
  def parse(cls, path: str) -> StackVariable | None:
    """Returns the parts of a name; None for variables outside of all layers.

    Args:
      path: such as `transformer/encoder_stack/layer_0/ffn/layer_norm/beta`.
    """
    match = _PATH.fullmatch(path)
    if match is None:
      return None
    stack, layer, sub_layer, norm_kind, product, kind = match.groups()
    return cls(stack, int(layer), sub_layer, product, norm_kind or kind)
