"""Marian's own files: their models, and the names of variables.

Marian (Junczys-Dowmunt et al. 2018) has its kernels as [in, out], like this
project. Hugging Face's files of Marian models are another format, see
`marian.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.stack_variables import StackVariable
from official_transformer.model_params import TransformerParams

# The configuration, in YAML, among the arrays.
CONFIG = "special:model.yml"
TABLE = "Wemb"
BIAS = "decoder_ff_logit_out_b"
# Key of an export's configuration that Marian does not read.
OWN_PARAMS = "official-transformer-params"
MODEL, VOCABULARY = "model.npz", "vocab.spm"
# Configuration of all models of this architecture.
ARCHITECTURE = {
  "type": "transformer",
  "tied-embeddings-all": True,
  "transformer-preprocess": "",
  "transformer-postprocess": "dan",
  "transformer-postprocess-emb": "d",
  "transformer-postprocess-top": "",
  "transformer-decoder-autoreg": "self-attention",
  "transformer-train-position-embeddings": False,
  "transformer-ffn-depth": 2,
  "transformer-no-projection": False,
  "transformer-tied-layers": [],
}
# The bias of a logit that is never to win. float16 holds it exactly; rounded to
# bfloat16 it is the other.
NEVER = -1e4
_NEVER_ROUNDED = -9984.0
# Widths of products in 8 bits are multiples of this.
BLOCK = 64
# A larger epsilon of layer norms would be felt where Marian has 1e-6.
_MOST_EPSILON = 1e-5
_SUB_LAYERS = {
  "self_attention": "self",
  "cross_attention": "context",
  "ffn": "ffn",
}
_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
_NETWORK = {"filter": "1", "output": "2"}
_KINDS = {"kernel": "W", "bias": "b", "gamma": "scale", "beta": "bias"}


def name_of(path: str) -> str | None:
  """Returns Marian's name of a stack's variable; None for other variables.

  Args:
    path: ours, such as `transformer/encoder_stack/layer_0/ffn/layer_norm/beta`.
  """
  variable = StackVariable.parse(path)
  if variable is None:
    return None
  stack, number, sub_layer, product, kind = variable
  layer = f"{stack}_l{number + 1}_{_SUB_LAYERS[sub_layer]}"
  if product is None:
    owner = "ffn" if sub_layer == "ffn" else "Wo"
    return f"{layer}_{owner}_ln_{_KINDS[kind]}"
  letters = _NETWORK if sub_layer == "ffn" else _PROJECTIONS
  return f"{layer}_{_KINDS[kind]}{letters[product]}"


def forbids(bias: np.ndarray) -> np.ndarray:
  """Returns which logits a bias never lets win, bool in its shape."""
  return np.isin(bias, (NEVER, _NEVER_ROUNDED))


def without_never(bias: np.ndarray) -> np.ndarray:
  """Returns a bias as it was before it forbade tokens, float32.

  That of a token that may not be chosen is lost: it is 0.
  """
  bias = np.asarray(bias, np.float32)
  return np.where(forbids(bias), np.float32(0), bias)


def check_params(params: TransformerParams) -> None:
  """Refuses a model that Marian does not compute.

  Raises:
    InputError: with the reason, and the kind of model to train instead.
  """
  problems = []
  if params.norm != "post":
    problems.append(
      f"norm={params.norm}: Marian leaves a norm before a sub-layer out of "
      "keys and values when it translates"
    )
  if params.positions != "sinusoid":
    problems.append(f"positions={params.positions}: Marian has sinusoid")
  if params.source_vocab_size or params.share_embeddings != "all":
    problems.append("source, target and softmax have more than one table")
  if params.start_symbol != "zero":
    problems.append(
      f"start_symbol={params.start_symbol}: Marian starts with a zero vector"
    )
  if not params.scale_embeddings:
    problems.append("embeddings are not scaled")
  if params.target_space_embedding:
    problems.append("there is a target space embedding")
  if params.layer_norm_epsilon > _MOST_EPSILON:
    problems.append(
      f"layer_norm_epsilon={params.layer_norm_epsilon}: Marian has 1e-6"
    )
  if problems:
    raise InputError(
      f"Marian does not compute this model: {'; '.join(problems)}. "
      "--param_set=student trains one that it does, from this one's "
      "translations of the training text, see docs/deploying.md"
    )


def check_widths(params: TransformerParams) -> None:
  """Refuses a model that Bergamot cannot multiply in 8 bits.

  Raises:
    InputError: if so; it names the possible widths.
  """
  problems = [
    f"{name}={getattr(params, name)}"
    for name in ("hidden_size", "filter_size")
    if getattr(params, name) % BLOCK
  ]
  if problems:
    raise InputError(
      f"{', '.join(problems)}: Bergamot multiplies matrices in blocks of "
      f"{BLOCK}: train a model of a multiple of that, such as "
      "--param_set=student"
    )


def config_of(params: TransformerParams) -> dict[str, Any]:
  """Returns a model's configuration for Marian.

  Args:
    params: hyper-parameters of a model that `check_params` accepts.
  """
  return {
    **ARCHITECTURE,
    "version": "v1.12.0",
    "dim-vocabs": [params.vocab_size, params.vocab_size],
    "dim-emb": params.hidden_size,
    "enc-depth": params.encoder_layers,
    "dec-depth": params.decoder_layers,
    "transformer-heads": params.num_heads,
    "transformer-dim-ffn": params.filter_size,
    "transformer-decoder-dim-ffn": params.filter_size,
    "transformer-decoder-ffn-depth": 2,
    "transformer-ffn-activation": params.activation,
    "transformer-no-bias": False,
    "transformer-pool": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dim-emb": 0,
    "right-left": False,
    "skip": False,
    "ulr": False,
  }
