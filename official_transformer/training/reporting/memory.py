"""How much memory a training step takes, before it is tried.

Shapes: B sentences, S source and T target length, D hidden size, F filter
size, N heads, V vocabulary.
"""

from __future__ import annotations

from official_transformer.model.cross_entropy import CHUNK_ELEMENTS
from official_transformer.model_params import TransformerParams

_FLOAT32 = 4
_MASK = 1


def estimate_step_bytes(
  params: TransformerParams,
  num_parameters: int,
  sentences: int,
  length: int,
  dtype: str = "fp32",
  accumulates: bool = False,
  with_metrics: bool = False,
) -> int:
  """Estimates what one replica's variables and one step's tensors take.

  What TensorFlow itself takes, some hundreds of megabytes, and what its
  allocator wastes are not counted.

  Args:
    params: the model's.
    num_parameters: numbers in its variables.
    sentences: B, of this replica.
    length: S and T.
    dtype: `fp32`, `bf16` or `fp16`.
    accumulates: whether gradients are summed over micro-batches.
    with_metrics: whether all logits are computed, to be measured.
  """
  # The weight, Adam's two moments, the gradient, the sum of gradients.
  per_parameter = (5 if accumulates else 4) * _FLOAT32
  variables = num_parameters * per_parameter
  # The table's gradient comes in three parts.
  variables += 2 * _FLOAT32 * params.vocab_size * params.hidden_size
  # Logits and probabilities of one chunk of positions; what two passes differ
  # by besides.
  passes, arrays = (2, 4) if params.r_drop_alpha else (1, 2)
  positions = min(
    passes * sentences * length, max(CHUNK_ELEMENTS // params.vocab_size, 1)
  )
  loss = arrays * _FLOAT32 * positions * params.vocab_size
  if with_metrics:
    loss += 3 * _FLOAT32 * sentences * length * params.vocab_size
  return (
    variables + loss + _activations(params, passes * sentences, length, dtype)
  )


def _activations(
  params: TransformerParams, sentences: int, length: int, dtype: str
) -> int:
  """Returns the bytes that the gradient keeps of the forward pass."""
  width = _FLOAT32 if dtype == "fp32" else 2
  hidden = params.hidden_size
  # A sub-layer keeps its input, normalised and not, and a mask.
  sub_layer = 2 * hidden * width + hidden * _MASK
  attention = 5 * hidden * width  # Query, key, value, mixed, and their sum.
  feed_forward = params.filter_size * width
  token = 5 * sub_layer + 3 * attention + 2 * feed_forward
  # Weights in float32, dropped and not, their mask, and in the dtype.
  weight = 2 * _FLOAT32 + _MASK + (width if width < _FLOAT32 else 0)
  weights = 3 * params.num_heads * length * length * weight
  layer = sentences * (length * token + weights)
  return params.num_hidden_layers * layer
