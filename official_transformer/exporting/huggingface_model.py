"""A trained model as Hugging Face's `transformers` has it.

Pegasus (Zhang et al. 2020) is the pre-norm Transformer of this project: a norm
before each sub-layer and one after each stack, one table for embeddings and
softmax, scaled embeddings. Its biases that our model lacks are zeros. Its
position encodings are stored, so that they can be ours. Marian is post-norm and
computes its own positions: models that were imported from Marian's class are
exported to it again.

Shapes: V vocabulary, D hidden size, P positions.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import numpy as np

from official_transformer.importing.huggingface_names import (
  BIAS,
  CLASSES,
  DECODER_TABLE,
  ENCODER_TABLE,
  OWN_PARAMS,
  PEGASUS,
  POSITION_TABLES,
  RESIDUAL_SCALE,
  SHARED,
  SOFTMAX_TABLE,
  architecture,
  layer_name,
  residual_scale,
  turned,
  with_residual_scale,
)
from official_transformer.importing.marian_names import NEVER
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import (
  EOS_ID,
  PAD_ID,
  TransformerParams,
)

# The most tokens of a line and of a translation.
POSITIONS = 1024
# Of Marian's class; it computes as many as are asked for.
MARIAN_POSITIONS = 512
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}

# An array by its name.
Tensors = dict[str, np.ndarray]


def write_model(transformer: Transformer, directory: str) -> None:
  """Writes config.json and model.safetensors.

  Args:
    transformer: with float32 weights.
    directory: exists.
  """
  from safetensors.numpy import save_file

  config = _config(transformer.params)
  tensors = _tensors(transformer, config)
  save_file(
    tensors,
    os.path.join(directory, "model.safetensors"),
    metadata={"format": "pt"},
  )
  write_json(os.path.join(directory, "config.json"), config)


def write_json(path: str, content: Any) -> None:
  """Writes a JSON file."""
  with open(path, "w", encoding="utf-8") as stream:
    json.dump(content, stream, indent=2, ensure_ascii=False)
    stream.write("\n")


def start_id(params: TransformerParams) -> int:
  """Returns the id that the decoder starts with.

  A zero vector is a row of its own, behind the vocabulary.
  """
  return params.vocab_size if params.start_symbol == "zero" else PAD_ID


def _config(params: TransformerParams) -> dict[str, Any]:
  """Returns the content of config.json."""
  kind = architecture(params)
  start = start_id(params)
  sides: dict[str, Any] = {}
  for side in ("encoder", "decoder"):
    sides |= {
      f"{side}_layers": getattr(params, f"{side}_layers"),
      f"{side}_attention_heads": params.num_heads,
      f"{side}_ffn_dim": params.filter_size,
      f"{side}_layerdrop": 0.0,
    }
  config = {
    "architectures": [CLASSES[kind]],
    "model_type": kind,
    "dtype": "float32",
    "d_model": params.hidden_size,
    "num_hidden_layers": params.encoder_layers,
    **sides,
    "activation_function": _ACTIVATIONS[params.activation],
    "dropout": params.layer_postprocess_dropout,
    "attention_dropout": params.attention_dropout,
    "activation_dropout": params.relu_dropout,
    "init_std": 0.02,
    "scale_embedding": params.scale_embeddings,
    "is_encoder_decoder": True,
    "use_cache": True,
    # The start token is the padding token, too: training must not predict it,
    # and ignores only padding among the labels.
    "pad_token_id": start,
    "eos_token_id": EOS_ID,
    "bos_token_id": start,
    "decoder_start_token_id": start,
    "forced_eos_token_id": None,
    # `import_checkpoint --format=pegasus_hf` reads them.
    OWN_PARAMS: dataclasses.asdict(params),
  }
  if kind == PEGASUS:
    return config | {
      RESIDUAL_SCALE: residual_scale(params),
      "vocab_size": max(params.vocab_size, start + 1),
      "max_position_embeddings": longest(params),
      "normalize_before": True,
      "add_final_layer_norm": True,
      "tie_word_embeddings": True,
    }
  is_one = not params.source_vocab_size and params.share_embeddings == "all"
  return config | {
    "vocab_size": params.source_vocab_size or params.vocab_size,
    "decoder_vocab_size": params.vocab_size,
    "share_encoder_decoder_embeddings": is_one,
    "tie_word_embeddings": params.share_embeddings != "none",
    "max_position_embeddings": longest(params),
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
  }


def longest(params: TransformerParams) -> int:
  """Returns P."""
  if params.norm == "post":
    return MARIAN_POSITIONS
  return params.max_positions if params.positions == "learned" else POSITIONS


def _tensors(transformer: Transformer, config: dict[str, Any]) -> Tensors:
  """Returns all weights by their names."""
  weights = {w.path: w.numpy() for w in transformer.weights}
  tensors = _layers(weights)
  tensors |= _tables(weights, transformer.params, config["vocab_size"])
  tensors[BIAS] = _logits_bias(weights, transformer.params, config)
  if config["model_type"] == PEGASUS:
    tensors |= _encodings(transformer, weights)
    return with_residual_scale(tensors, config[RESIDUAL_SCALE])
  return tensors


def _layers(weights: Tensors) -> Tensors:
  """Returns the weights of both stacks, with biases for all products."""
  tensors = {}
  for path, value in weights.items():
    name = layer_name(path)
    if name is None:
      continue
    tensors[name] = turned(value)
    if value.ndim == 2:
      bias = name.removesuffix("weight") + "bias"
      tensors.setdefault(bias, np.zeros(value.shape[1:], np.float32))
  return tensors


def _tables(weights: Tensors, params: TransformerParams, rows: int) -> Tensors:
  """Returns embeddings and softmax; rows beyond the vocabulary are zeros."""
  table = weights["transformer/embedding/weights"]
  own = weights.get("transformer/source_embedding/weights")
  if own is None:
    tensors = {SHARED: np.pad(table, [(0, rows - len(table)), (0, 0)])}
  else:
    tensors = {ENCODER_TABLE: own, DECODER_TABLE: table}
  if params.share_embeddings == "none":
    tensors[SOFTMAX_TABLE] = weights["transformer/softmax/weights"]
  return tensors


def _logits_bias(
  weights: Tensors, params: TransformerParams, config: dict[str, Any]
) -> np.ndarray:
  """Returns the logits' bias, [1, V], which keeps some from being chosen.

  The bias of a token that no translation contains is lost.
  """
  rows = config.get("decoder_vocab_size", config["vocab_size"])
  bias = np.zeros([1, rows], np.float32)
  if params.output_bias:
    bias[0, : params.vocab_size] += weights["transformer/output/bias"]
  bias[0, list(params.hidden_tokens)] = NEVER
  bias[0, params.vocab_size :] = NEVER
  return bias


def _encodings(transformer: Transformer, weights: Tensors) -> Tensors:
  """Returns the position encodings, [P, D] for each side."""
  number = longest(transformer.params)
  source = transformer.positions.source(number).numpy()
  if transformer.params.target_space_embedding:
    # It is added to every source token, as the encoding is.
    source = source + weights["transformer/target_space_embedding"]
  target = transformer.positions.target(number).numpy()
  return dict(zip(POSITION_TABLES, (source, target), strict=True))
