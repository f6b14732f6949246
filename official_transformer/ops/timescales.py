"""The frequencies of position encodings, and encodings without TensorFlow.

Shapes: D hidden size, L length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from official_transformer.model_params import TransformerParams


def inverse_timescales(
  hidden_size: int, min_timescale: float = 1.0, max_timescale: float = 1.0e4
) -> np.ndarray:
  """Returns the official model's angles of one position, float32 [D / 2].

  Timescales form a geometric progression, both ends included.
  """
  number = hidden_size // 2
  increment = math.log(max_timescale / min_timescale) / (number - 1)
  steps = np.arange(number, dtype=np.float32) * -np.float32(increment)
  return min_timescale * np.exp(steps)


def paper_timescales(hidden_size: int) -> np.ndarray:
  """Returns the paper's angles of one position (3.5), float32 [D / 2]."""
  exponents = np.arange(0, hidden_size, 2, dtype=np.float64) / hidden_size
  return (10000.0**-exponents).astype(np.float32)


def position_table(
  params: TransformerParams,
  weights: Mapping[str, np.ndarray],
  side: str,
  length: int,
) -> np.ndarray:
  """Returns a model's position encoding, float32 [L, D]; fewer, if learnt.

  Args:
    params: hyper-parameters of the model.
    weights: the model's variables by their paths.
    side: `source` or `target`.
    length: L.
  """
  if params.positions == "learned":
    return weights[f"transformer/{side}_positions/table"][:length]
  is_official = params.positions == "sinusoid"
  scales = inverse_timescales if is_official else paper_timescales
  positions = np.arange(length, dtype=np.float32)
  angles = positions[:, None] * scales(params.hidden_size)
  waves = np.stack([np.sin(angles), np.cos(angles)])
  if params.positions == "interleaved":
    return waves.transpose(1, 2, 0).reshape(length, -1)
  return waves.transpose(1, 0, 2).reshape(length, -1)
