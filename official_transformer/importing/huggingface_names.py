"""Hugging Face's Marian and Pegasus: conditions, and names of variables.

Of a product, PyTorch's kernel is [out, in], and ours [in, out].
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.stack_variables import StackVariable
from official_transformer.model_params import TransformerParams

PEGASUS, MARIAN = "pegasus", "marian"
CLASSES = {
  PEGASUS: "PegasusForConditionalGeneration",
  MARIAN: "MarianMTModel",
}
SHARED = "model.shared.weight"
ENCODER_TABLE = "model.encoder.embed_tokens.weight"
DECODER_TABLE = "model.decoder.embed_tokens.weight"
SOFTMAX_TABLE = "lm_head.weight"
# Of the encoder, and of the decoder.
POSITION_TABLES = (
  "model.encoder.embed_positions.weight",
  "model.decoder.embed_positions.weight",
)
BIAS = "final_logits_bias"
# Key of config.json for values that `transformers` does not read.
OWN_PARAMS = "official_transformer_params"
RESIDUAL_SCALE = "official_transformer_residual_scale"
# Epsilon of layer norms in PyTorch, which Pegasus' class does not set.
TORCH_EPSILON = 1e-5
# The SentencePiece model that tokenizer.json was made of.
VOCABULARY = "spiece.model"
_SUB_LAYERS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "out"}
_NETWORK = {"filter": "fc1", "output": "fc2"}
_KINDS = {
  "kernel": "weight",
  "bias": "bias",
  "gamma": "weight",
  "beta": "bias",
}
_OUTPUT_NORM = re.compile(
  r"transformer/(encoder|decoder)_stack/output_norm/(gamma|beta)"
)
# What is added to the residual stream of a pre-norm model; and the norm whose
# output meets the embeddings once more, in the softmax.
_ADDED = re.compile(
  r"model\.(shared|\w+\.embed_\w+)\.weight|.+\.(out_proj|fc2)\.(weight|bias)"
)
_BEFORE_SOFTMAX = re.compile(r"model\.decoder\.layer_norm\.(weight|bias)")


def residual_scale(params: TransformerParams) -> float:
  """Returns how many times larger an exported residual stream is than ours.

  Layer norms divide the size out, except that their epsilon weighs less: with 4
  times as large a stream, PyTorch's 1e-5 is as 6.3e-7 would be, next to our
  1e-6. A power of two costs no bit.
  """
  times = math.sqrt(TORCH_EPSILON / params.layer_norm_epsilon)
  return 2.0 ** round(math.log2(times))


def with_residual_scale(
  tensors: Mapping[str, np.ndarray], scale: float
) -> dict[str, np.ndarray]:
  """Returns a Pegasus model that is the same but for the stream's size."""
  scaled = dict(tensors)
  for name, value in tensors.items():
    if _ADDED.fullmatch(name):
      scaled[name] = value * np.float32(scale)
    elif _BEFORE_SOFTMAX.fullmatch(name):
      scaled[name] = value / np.float32(scale)
  return scaled


def layer_name(path: str) -> str | None:
  """Returns the name of a stack's variable; None for other variables.

  Args:
    path: ours, such as `transformer/encoder_stack/layer_0/ffn/layer_norm/beta`.
  """
  if match := _OUTPUT_NORM.fullmatch(path):
    return f"model.{match[1]}.layer_norm.{_KINDS[match[2]]}"
  variable = StackVariable.parse(path)
  if variable is None:
    return None
  stack, number, sub_layer, product, kind = variable
  attention = _SUB_LAYERS.get(sub_layer)
  if product is None:
    name = f"{attention or 'final'}_layer_norm"
  elif attention:
    name = f"{attention}.{_PROJECTIONS[product]}_proj"
  else:
    name = _NETWORK[product]
  return f"model.{stack}.layers.{number}.{name}.{_KINDS[kind]}"


def turned(value: np.ndarray) -> np.ndarray:
  """Returns a stack's variable as the other side has it."""
  return np.ascontiguousarray(value.T)  # Of a vector, that is itself.


def architecture(params: TransformerParams) -> str:
  """Returns `PEGASUS` or `MARIAN`, whichever a model is.

  Marian's class computes its own positions, and stores none when it is saved: a
  post-norm model with others would be another one then.

  Raises:
    InputError: if it is neither.
  """
  problems = []
  if params.norm == "pre":
    if params.source_vocab_size or params.share_embeddings != "all":
      problems.append("source, target and softmax have more than one table")
    kind = PEGASUS
  else:
    if params.positions != "huggingface":
      problems.append(f"positions are {params.positions!r}, not Marian's")
    if params.start_symbol != "pad_row":
      problems.append("the decoder starts with a zero vector")
    if params.target_space_embedding:
      problems.append("there is a target space embedding")
    kind = MARIAN
  if params.norm not in ("pre", "post"):
    problems.append(f"norm is {params.norm!r}")
  if problems:
    raise InputError(
      f"transformers has no model that computes this one: norm="
      f"{params.norm} is {CLASSES[kind]}'s, but {'; '.join(problems)}. "
      "--export_format=saved_model or ctranslate2 takes it"
    )
  return kind
