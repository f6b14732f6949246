"""A forward pass by NumPy of models in other projects' files.

It reads an export as a stranger would, and computes as `transformers` or Marian
does: that proves an export where neither is installed.

Shapes: S source length, T target length, D hidden size, V vocabulary.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from official_transformer.importing.huggingface_names import TORCH_EPSILON

# Of layer norms.
_MARIAN_EPSILON = 1e-6
# Parts of a layer by Marian's names, and by Hugging Face's.
_MARIAN_PARTS = {
  "self": "self_attn",
  "context": "encoder_attn",
  "ffn_1": "fc1",
  "ffn_2": "fc2",
  "W": "weight",
  "b": "bias",
  "scale": "weight",
  "bias": "bias",
}
_MARIAN_LAYER = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(.+)")
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
  "relu": lambda x: np.maximum(x, 0),
  "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
  "silu": lambda x: x / (1 + np.exp(-x)),
  "swish": lambda x: x / (1 + np.exp(-x)),
}


def _erf(x: np.ndarray) -> np.ndarray:
  return np.vectorize(math.erf, otypes=[np.float32])(x)


class NumpyModel:
  """A Pegasus or Marian model, by Hugging Face's names.

  Arrays of Marian's own files are renamed first.
  """

  def __init__(
    self,
    config: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    epsilon: float,
  ) -> None:
    """Initializes it.

    Args:
      config: content of Hugging Face's config.json.
      tensors: tensors by Hugging Face's names.
      epsilon: epsilon of layer norms.
    """
    self._config = config
    self._tensors = tensors
    self._epsilon = epsilon
    self._activation = _ACTIVATIONS[config["activation_function"]]
    self._is_pre_norm = config["normalize_before"]

  @classmethod
  def of_huggingface(cls, directory: str) -> NumpyModel:
    """Reads config.json and model.safetensors."""
    from safetensors.numpy import load_file

    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
      config = json.load(file)
    tensors = load_file(os.path.join(directory, "model.safetensors"))
    return cls(config, tensors, TORCH_EPSILON)

  @classmethod
  def of_marian(
    cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
  ) -> NumpyModel:
    """Makes a model of Marian's own files.

    Args:
      config: content of special:model.yml.
      arrays: arrays by Marian's names.
    """
    table = arrays["Wemb"]
    rows, width = table.shape
    tensors = {
      # A zero vector, which the decoder starts with.
      "model.shared.weight": np.pad(table, [(0, 1), (0, 0)]),
      "final_logits_bias": np.pad(
        arrays["decoder_ff_logit_out_b"],
        [(0, 0), (0, 1)],
        constant_values=-np.inf,
      ),
    }
    for name, array in arrays.items():
      if match := _MARIAN_LAYER.fullmatch(name):
        is_kernel = match[4][0] == "W" and len(match[4]) == 2
        tensors[_from_marian(*match.groups())] = (
          array.T if is_kernel else array.reshape(-1)
        )
    heads = config["transformer-heads"]
    return cls(
      {
        "activation_function": config["transformer-ffn-activation"],
        "normalize_before": False,
        "add_final_layer_norm": False,
        "decoder_start_token_id": rows,
        "scale_embedding": True,
        "d_model": width,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_layers": config["enc-depth"],
        "decoder_layers": config["dec-depth"],
        # Hugging Face's configuration lacks this key, because its positions
        # have a fixed formula.
        "timescales": width // 2 - 1,
      },
      tensors,
      _MARIAN_EPSILON,
    )

  def token_log_probabilities(
    self, source: Sequence[int], target: Sequence[int]
  ) -> np.ndarray:
    """Returns the logarithms of the probabilities of a translation's tokens.

    Args:
      source: ids, ending in EOS.
      target: ids, ending in EOS.

    Returns:
      [T].
    """
    start = self._config["decoder_start_token_id"]
    memory = self._stack("encoder", list(source), None)
    found = self._stack("decoder", [start, *target[:-1]], memory)
    tables = ("lm_head.weight", *self._tables("decoder"))
    table = next(self._tensors[n] for n in tables if n in self._tensors)
    logits = found @ table.T + self._tensors["final_logits_bias"]
    logits = logits.astype(np.float64)
    logits -= logits.max(1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    return logits[np.arange(len(target)), list(target)]

  def _tables(self, side: str) -> tuple[str, str]:
    return f"model.{side}.embed_tokens.weight", "model.shared.weight"

  def _stack(
    self, side: str, ids: list[int], memory: np.ndarray | None
  ) -> np.ndarray:
    """Returns a stack's output for ids: [S, D] or [T, D]."""
    config = self._config
    tables = self._tables(side)
    x = next(self._tensors[n] for n in tables if n in self._tensors)[ids]
    if config["scale_embedding"]:
      x = x * math.sqrt(config["d_model"])
    x = x + self._positions(side, len(ids))
    attend = functools.partial(self._attend, config[f"{side}_attention_heads"])
    for number in range(config[f"{side}_layers"]):
      layer = f"model.{side}.layers.{number}"
      own = functools.partial(attend, f"{layer}.self_attn", side == "decoder")
      x = self._residual(f"{layer}.self_attn_layer_norm", x, own)
      if memory is not None:
        other = functools.partial(
          attend, f"{layer}.encoder_attn", False, memory=memory
        )
        x = self._residual(f"{layer}.encoder_attn_layer_norm", x, other)
      network = functools.partial(self._feed_forward, layer)
      x = self._residual(f"{layer}.final_layer_norm", x, network)
    if config["add_final_layer_norm"]:
      x = self._norm(f"model.{side}.layer_norm", x)
    return x

  def _positions(self, side: str, length: int) -> np.ndarray:
    """Returns position encodings, stored ones or Marian's, [S, D]."""
    stored = f"model.{side}.embed_positions.weight"
    if stored in self._tensors:
      return self._tensors[stored][:length]
    width = self._config["d_model"]
    half = np.arange(width // 2 + width % 2)
    # Marian's own formula has the last wavelength at 10000 exactly.
    timescales = self._config.get("timescales", width / 2)
    angles = np.arange(length)[:, None] / np.power(10000, half / timescales)
    found = np.concatenate(
      [np.sin(angles), np.cos(angles[:, : width // 2])], axis=1
    )
    return found.astype(np.float32)

  def _residual(
    self,
    norm: str,
    x: np.ndarray,
    sub_layer: Callable[[np.ndarray], np.ndarray],
  ) -> np.ndarray:
    """Returns a sub-layer's output, added and normalised."""
    if self._is_pre_norm:
      return x + sub_layer(self._norm(norm, x))
    return self._norm(norm, x + sub_layer(x))

  def _attend(
    self,
    heads: int,
    name: str,
    is_causal: bool,
    x: np.ndarray,
    memory: np.ndarray | None = None,
  ) -> np.ndarray:
    """Returns attention of x, [T, D], to memory, [S, D], or to itself."""
    memory = x if memory is None else memory
    query, key, value = (
      self._linear(f"{name}.{part}_proj", y)
      .reshape(len(y), heads, -1)
      .transpose(1, 0, 2)
      for part, y in (("q", x), ("k", memory), ("v", memory))
    )
    weights = query / math.sqrt(query.shape[-1]) @ key.transpose(0, 2, 1)
    if is_causal:
      weights += np.triu(np.full([len(x)] * 2, -np.inf, np.float32), 1)
    weights = np.exp(weights - weights.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = (weights @ value).transpose(1, 0, 2).reshape(len(x), -1)
    return self._linear(f"{name}.out_proj", found)

  def _feed_forward(self, layer: str, x: np.ndarray) -> np.ndarray:
    hidden = self._activation(self._linear(f"{layer}.fc1", x))
    return self._linear(f"{layer}.fc2", hidden)

  def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
    return x @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]

  def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self._epsilon)
    return x * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]


def _from_marian(side: str, number: str, part: str, rest: str) -> str:
  """Returns Hugging Face's name of an array in a layer.

  Args:
    side: `encoder` or `decoder`.
    number: number of the layer, from 1.
    part: `self`, `context` or `ffn`.
    rest: rest of the name, such as `Wq` or `Wo_ln_scale`.
  """
  layer = f"model.{side}.layers.{int(number) - 1}"
  own = _MARIAN_PARTS.get(part)
  if "_ln_" in rest:
    kind = _MARIAN_PARTS[rest.rpartition("_")[2]]
    return f"{layer}.{own or 'final'}_layer_norm.{kind}"
  kind = _MARIAN_PARTS[rest[0]]
  if own is None:
    return f"{layer}.{_MARIAN_PARTS[f'ffn_{rest[1]}']}.{kind}"
  projection = "out" if rest[1] == "o" else rest[1]
  return f"{layer}.{own}.{projection}_proj.{kind}"
