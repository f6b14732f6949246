"""A trained model as CTranslate2 has it.

CTranslate2 (Klein et al. 2020) has Transformers with either norm, with
embeddings tied or not, and a place for every weight here. Three differences
remain: kernels are transposed; query, key and value are one matrix; its own
position encoding begins with position 1, so that ours is written as a table.

Shapes: D hidden size, V vocabulary, P positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from official_transformer.decoding.model_weights import (
  ModelWeights,
  variable_shapes,
)
from official_transformer.errors import InputError
from official_transformer.model_params import (
  EOS_ID,
  PAD_ID,
  TransformerParams,
)
from official_transformer.text.tokenizer import Tokenizer
from official_transformer.text.vocabulary_files import Tokenizers

ACTIVATIONS = {
  "relu": common_spec.Activation.RELU,
  "gelu": common_spec.Activation.GELU,
  "swish": common_spec.Activation.SWISH,
}

# The bias of a logit that is never to win, within 16 bits.
_NEVER = -6e4

# An array by a variable's path.
Weights = Mapping[str, np.ndarray]


def write_ctranslate2_model(
  model: ModelWeights,
  entries: tuple[Sequence[str], Sequence[str]],
  directory: str,
  quantization: str,
  positions: int,
) -> None:
  """Writes a directory that `ctranslate2.Translator` opens.

  Args:
    model: parameters and weights.
    entries: result of `both_entries`.
    directory: exists, and is empty.
    quantization: how weights are kept; one of `engines.QUANTIZATIONS`.
    positions: P, the most tokens of a source or a translation.
  """
  params = model.params
  if params.norm not in ("pre", "post") or params.activation not in ACTIVATIONS:
    raise InputError(
      f"CTranslate2 has no norm {params.norm!r} with activation "
      f"{params.activation!r}; TensorFlow computes it"
    )
  model.check(variable_shapes(params))
  spec = _specification(model, positions)
  sources, targets = entries
  spec.register_source_vocabulary(sources)
  spec.register_target_vocabulary(targets)
  spec.config.add_source_eos = True
  spec.config.eos_token = targets[EOS_ID]
  spec.config.bos_token = targets[PAD_ID]
  spec.config.decoder_start_token = targets[PAD_ID]
  # It must be one that there is, and subtokens know none: never asked for.
  spec.config.unk_token = targets[PAD_ID]
  spec.config.layer_norm_epsilon = params.layer_norm_epsilon
  spec.validate()
  if quantization == "bfloat16":
    _round_to_bfloat16(spec)
  spec.optimize(None if quantization == "float32" else quantization)
  spec.save(directory)


def both_entries(
  tokenizers: Tokenizers, params: TransformerParams
) -> tuple[list[str], list[str]]:
  """Returns a name for each id of the source, and of the target."""
  entries = unique_entries(tokenizers.target, params.vocab_size)
  if not params.source_vocab_size:
    return entries, entries
  sources = unique_entries(tokenizers.source, params.source_vocab_size)
  # CTranslate2 knows one name of each.
  for i in (PAD_ID, EOS_ID):
    name = entries[i]
    if name in sources:
      sources[sources.index(name)] = sources[i]
    sources[i] = name
  return sources, entries


def unique_entries(tokenizer: Tokenizer, rows: int) -> list[str]:
  """Returns a name for each id, all different.

  A subtoken file may contain an entry twice, of which the last is used, and an
  imported table may have rows beyond the vocabulary. Both get names of their
  own, which no text is cut into.

  Args:
    tokenizer: tokenizer of the vocabulary.
    rows: rows of its embedding table.
  """
  known = tokenizer.vocab_size
  entries = [tokenizer.pieces([i])[0] for i in range(known)]
  entries += [f"<no entry {i}>" for i in range(known, rows)]
  last = {entry: i for i, entry in enumerate(entries)}
  taken = set(last)
  for i, entry in enumerate(entries):
    if last[entry] != i:
      while entry in taken:
        entry = f"<{entry} {i}>"
      taken.add(entry)
      entries[i] = entry
  return entries


def _specification(model: ModelWeights, positions: int) -> Any:
  """Returns the model with all its weights."""
  params, weights = model.params, model.arrays
  spec = transformer_spec.TransformerSpec.from_config(
    num_layers=(params.encoder_layers, params.decoder_layers),
    num_heads=params.num_heads,
    pre_norm=params.norm == "pre",
    activation=ACTIVATIONS[params.activation],
  )
  source_encoding, encoding = (
    model.positions(side, positions) for side in ("source", "target")
  )
  table = weights["transformer/embedding/weights"]
  if params.target_space_embedding:
    # It is added to every source token, as the encoding is.
    source_encoding = (
      source_encoding + weights["transformer/target_space_embedding"]
    )
  spec.encoder.position_encodings.encodings = source_encoding
  spec.decoder.position_encodings.encodings = encoding
  # Copies: CTranslate2 rounds tables in place.
  spec.encoder.embeddings[0].weight = weights.get(
    "transformer/source_embedding/weights", table
  ).copy()
  spec.decoder.embeddings.weight = table.copy()
  spec.decoder.projection.weight = weights.get(
    "transformer/softmax/weights", table
  ).copy()
  if params.output_bias or params.suppress_pad:
    spec.decoder.projection.bias = _softmax_bias(weights, params)
  spec.decoder.start_from_zero_embedding = params.start_symbol == "zero"
  for stack, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
    stack.scale_embeddings = params.scale_embeddings
    path = f"transformer/{name}_stack"
    if params.norm == "pre":
      _set_norm(stack.layer_norm, weights, f"{path}/output_norm")
    for number, layer in enumerate(stack.layer):
      _set_layer(layer, weights, f"{path}/layer_{number}", name == "decoder")
  return spec


def _softmax_bias(weights: Weights, params: TransformerParams) -> np.ndarray:
  """Returns the logits' bias; it excludes PAD if `suppress_pad` is set."""
  bias = np.zeros([params.vocab_size], np.float32)
  if params.output_bias:
    bias += weights["transformer/output/bias"]
  if params.suppress_pad:
    bias[PAD_ID] = _NEVER
  return bias


def _set_layer(layer: Any, weights: Weights, path: str, decoder: bool) -> None:
  """Fills a layer of the encoder or the decoder."""
  _set_attention(
    layer.self_attention,
    weights,
    f"{path}/self_attention",
    [("query", "key", "value"), ("output",)],
  )
  if decoder:
    _set_attention(
      layer.attention,
      weights,
      f"{path}/cross_attention",
      [("query",), ("key", "value"), ("output",)],
    )
  network = f"{path}/ffn/network"
  _set_norm(layer.ffn.layer_norm, weights, f"{path}/ffn/layer_norm")
  for linear, name in (
    (layer.ffn.linear_0, "filter"),
    (layer.ffn.linear_1, "output"),
  ):
    _set_kernels(linear, weights, [f"{network}/{name}_kernel"])


def _set_attention(
  spec: Any, weights: Weights, path: str, products: Sequence[Sequence[str]]
) -> None:
  """Fills attention, each of its products made of one kernel or several."""
  _set_norm(spec.layer_norm, weights, f"{path}/layer_norm")
  for linear, names in zip(spec.linear, products, strict=True):
    _set_kernels(
      linear, weights, [f"{path}/attention/{name}_kernel" for name in names]
    )


def _set_norm(spec: Any, weights: Weights, path: str) -> None:
  """Fills a layer norm."""
  spec.gamma, spec.beta = weights[f"{path}/gamma"], weights[f"{path}/beta"]


def _set_kernels(spec: Any, weights: Weights, paths: Sequence[str]) -> None:
  """Fills a product with kernels side by side, of [in, out] as [out, in]."""
  kernels = [weights[path] for path in paths]
  spec.weight = np.ascontiguousarray(np.concatenate(kernels, axis=1).T)
  biases = [path.replace("_kernel", "_bias") for path in paths]
  if biases[0] in weights:
    spec.bias = np.concatenate([weights[path] for path in biases])


def _round_to_bfloat16(spec: Any) -> None:
  """Rounds all weights, which CTranslate2 itself leaves to PyTorch."""
  # It comes with TensorFlow.
  from ml_dtypes import bfloat16

  def round_one(owner: Any, name: str, value: Any) -> None:
    if getattr(value, "dtype", None) == "float32" and not value.is_scalar():
      array = value.numpy().astype(bfloat16)
      rounded = ctranslate2.specs.model_spec.NumpyVariable(array)
      setattr(owner, name.rsplit("/", 1)[-1], rounded)

  ctranslate2.specs.model_spec.visit_spec(spec, round_one)
