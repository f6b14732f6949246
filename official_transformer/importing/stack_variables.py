"""Names of the variables of encoder and decoder layers, in parts."""

from __future__ import annotations

import re
from typing import NamedTuple

_PATH = re.compile(
  r"transformer/(encoder|decoder)_stack/layer_(\d+)/(\w+)/(\w+)/"
  r"(?:(\w+)_)?(kernel|bias|gamma|beta)"
)


class StackVariable(NamedTuple):
  """The parts of a variable's name.

  Attributes:
    stack: encoder or decoder.
    layer: number of the layer, from 0.
    sub_layer: self_attention, cross_attention or ffn.
    part: layer_norm, or the layer inside of its wrapper.
    product: such as query, or None for the variables of a layer norm.
    kind: kernel, bias, gamma or beta.
  """

  stack: str
  layer: int
  sub_layer: str
  part: str
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
    stack, layer, *others = match.groups()
    return cls(stack, int(layer), *others)
