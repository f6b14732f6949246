"""A model's weights, without a library that computes the model.

Shapes: D hidden size, F filter size, V vocabulary, P positions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  check_variables,
)
from official_transformer.model_params import TransformerParams

if TYPE_CHECKING:
  from official_transformer.model.transformer import Transformer


@dataclasses.dataclass(frozen=True)
class ModelWeights:
  """A model's parameters and variables.

  Attributes:
    params: hyper-parameters, and how to decode.
    arrays: real numbers by the paths of `Transformer.weights`.
    prefix: path of the checkpoint that they are from; empty if from none.
  """

  params: TransformerParams
  arrays: Mapping[str, np.ndarray]
  prefix: str = ""

  @classmethod
  def of(cls, model: ModelWeights | Transformer) -> ModelWeights:
    """Returns the weights that a model has now."""
    if isinstance(model, ModelWeights):
      return model
    arrays = {w.path: w.numpy() for w in model.weights}
    return cls(model.params, arrays)

  def check(self, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses weights that are not those of a model.

    Args:
      wanted: the shape of each of the model's variables, by its path.

    Raises:
      InputError: every difference is named.
    """
    shapes = {path: value.shape for path, value in self.arrays.items()}
    check_variables(self.prefix, WEIGHTS, shapes, wanted)

  def positions(self, side: str, length: int) -> np.ndarray:
    """Returns the position encoding, float32 [P, D]; fewer rows, if learnt.

    `model.variants.POSITIONS` has the same formulas for TensorFlow.

    Args:
      side: `source` or `target`.
      length: P.
    """
    kind, width = self.params.positions, self.params.hidden_size
    if kind == "learned":
      return self.arrays[f"transformer/{side}_positions/table"][:length]
    if kind == "sinusoid":
      increment = math.log(1e4) / (width // 2 - 1)
      steps = np.arange(width // 2, dtype=np.float32)
      rates = np.exp(steps * -np.float32(increment))
    else:
      exponents = np.arange(0, width, 2, dtype=np.float64) / width
      rates = (1e4**-exponents).astype(np.float32)
    angles = np.arange(length, dtype=np.float32)[:, None] * rates
    waves = np.stack([np.sin(angles), np.cos(angles)])
    order = (1, 2, 0) if kind == "interleaved" else (1, 0, 2)
    return waves.transpose(order).reshape(length, width)


def variable_shapes(params: TransformerParams) -> dict[str, tuple[int, ...]]:
  """Returns the shape of each of a model's variables, by its path.

  Norms are layer norms, before or after each sub-layer.
  """
  width, rows = params.hidden_size, params.vocab_size
  shapes: dict[str, tuple[int, ...]] = {"embedding/weights": (rows, width)}
  if params.source_rows:
    shapes["source_embedding/weights"] = (params.source_rows, width)
  if params.share_embeddings == "none":
    shapes["softmax/weights"] = (rows, width)
  if params.output_bias:
    shapes["output/bias"] = (rows,)
  if params.target_space_embedding:
    shapes["target_space_embedding"] = (width,)
  if params.positions == "learned":
    for side in ("source", "target"):
      shapes[f"{side}_positions/table"] = (params.max_positions, width)
  for stack, layers, attention in (
    ("encoder", params.encoder_layers, ("self",)),
    ("decoder", params.decoder_layers, ("self", "cross")),
  ):
    for number in range(layers):
      layer = f"{stack}_stack/layer_{number}"
      for kind in attention:
        shapes |= _attention(f"{layer}/{kind}_attention", params)
      shapes |= _network(f"{layer}/ffn", params)
    if params.norm == "pre":
      shapes |= _norm(f"{stack}_stack/output_norm", width)
  return {f"transformer/{path}": shape for path, shape in shapes.items()}


def _attention(
  path: str, params: TransformerParams
) -> dict[str, tuple[int, ...]]:
  shapes = _norm(f"{path}/layer_norm", params.hidden_size)
  for name in ("query", "key", "value", "output"):
    product = f"{path}/attention/{name}"
    shapes[f"{product}_kernel"] = (params.hidden_size, params.hidden_size)
    if params.attention_bias:
      shapes[f"{product}_bias"] = (params.hidden_size,)
  return shapes


def _network(
  path: str, params: TransformerParams
) -> dict[str, tuple[int, ...]]:
  width, filters = params.hidden_size, params.filter_size
  return {
    **_norm(f"{path}/layer_norm", width),
    f"{path}/network/filter_kernel": (width, filters),
    f"{path}/network/filter_bias": (filters,),
    f"{path}/network/output_kernel": (filters, width),
    f"{path}/network/output_bias": (width,),
  }


def _norm(path: str, width: int) -> dict[str, tuple[int, ...]]:
  return {f"{path}/gamma": (width,), f"{path}/beta": (width,)}
