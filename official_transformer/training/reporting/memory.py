"""An estimate of a training step's memory, before the first step.

A trial on a CPU that lacks the memory would end the process without a word.

Shapes: B sentences, S source and T target length, D hidden size, F filter
size, N heads, V vocabulary.
"""

from __future__ import annotations

from official_transformer.model_params import TransformerParams
from official_transformer.ops.cross_entropy import CHUNK_ELEMENTS
from official_transformer.training.settings import (
  Execution,
  TrainingSettings,
)

_FLOAT32 = 4
_MASK = 1


def estimate_step_bytes(
  params: TransformerParams,
  settings: TrainingSettings,
  num_parameters: int,
  num_frozen: int,
  sentences: int,
  length: int,
) -> int:
  """Estimates the bytes of a replica's variables and a step's tensors.

  Memory of TensorFlow itself, some hundreds of megabytes, and losses of its
  allocator are not counted.

  Args:
    params: parameters of the model.
    settings: settings of the run.
    num_parameters: numbers in the variables that are trained.
    num_frozen: numbers in the others.
    sentences: B, of this replica.
    length: S and T.
  """
  # The weight, Adam's two moments, the gradient; the sum of gradients; the
  # average.
  copies = (
    4 + (settings.batching.accumulate_steps > 1) + bool(settings.average_decay)
  )
  variables = (num_parameters * copies + num_frozen) * _FLOAT32
  # The table's gradient comes in three parts.
  variables += 2 * _FLOAT32 * params.vocab_size * params.hidden_size
  # Logits and probabilities of one chunk of positions.
  positions = min(
    sentences * length, max(CHUNK_ELEMENTS // params.vocab_size, 1)
  )
  loss = 2 * _FLOAT32 * positions * params.vocab_size
  # All logits, to be measured.
  if settings.enable_metrics_in_training:
    loss += 3 * _FLOAT32 * sentences * length * params.vocab_size
  return (
    variables
    + loss
    + _activations(params, sentences, length, settings.execution)
  )


def _activations(
  params: TransformerParams, sentences: int, length: int, execution: Execution
) -> int:
  """Returns the bytes that the gradient keeps of the forward pass."""
  width = _FLOAT32 if execution.dtype == "fp32" else 2
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
  layers = params.encoder_layers + params.decoder_layers
  if execution.recompute:  # All layers' inputs, one layer's rest.
    return layers * sentences * length * hidden * width + layer
  # `layer` is an encoder and a decoder layer together, of about equal size.
  return layers * layer // 2
