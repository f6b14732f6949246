"""Importing Hugging Face's Marian models, such as those of OPUS-MT.

They are post-norm, with biases in attention and of the logits, Swish, and a
decoder that starts from PAD (Junczys-Dowmunt et al. 2018; Tiedemann and
Thottingal 2020).

Shapes: V vocabulary, D hidden size.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.formats import MARIAN_HF
from official_transformer.importing.huggingface_files import (
  check_values,
  read_json,
  read_tensors,
  stacks_of,
)
from official_transformer.importing.huggingface_names import (
  BIAS,
  DECODER_TABLE,
  ENCODER_TABLE,
  SHARED,
  SOFTMAX_TABLE,
)
from official_transformer.importing.marian_names import forbids, without_never
from official_transformer.importing.marian_vocabulary import (
  MarianVocabulary,
  read_vocabulary,
)
from official_transformer.importing.model_writing import (
  check_overrides,
  new_directory,
  summary,
  write_model,
)
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.description import Origin
from official_transformer.model_params import UNK_ID, TransformerParams
from official_transformer.storage import file_system
from official_transformer.storage.typed_json import DAMAGE, read_record
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)

# Required values of config.json; missing keys are accepted.
_NEEDED = {
  "model_type": "marian",
  "normalize_before": False,
  "add_final_layer_norm": False,
  "normalize_embedding": False,
  "static_position_embeddings": True,
}
_ACTIVATIONS = {
  "swish": "swish",
  "silu": "swish",
  "relu": "relu",
  "gelu": "gelu",
}
_TABLES = (SHARED, ENCODER_TABLE, DECODER_TABLE, SOFTMAX_TABLE)
_LAYER = r"model\.(encoder|decoder)\.layers\.(\d+)\."


def import_marian(
  directory: str, model_dir: str, overrides: Mapping[str, Any]
) -> str:
  """Writes a model directory with the weights of a Marian model.

  Args:
    directory: with config.json, model.safetensors, source.spm, target.spm and
      vocab.json.
    model_dir: the model directory to make.
    overrides: parameters by field, such as `beam_size`.

  Returns:
    One line that describes the imported model.

  Raises:
    InputError: if the files are missing, or of another kind of model.
  """
  check_overrides(overrides)
  target = new_directory(model_dir)
  config = _read_config(directory)
  source = read_vocabulary(directory, "source")
  written = read_vocabulary(directory, "target")
  tensors = read_tensors(directory)
  _check_sizes(config, tensors, directory)
  params = _params(config, tensors, (source, written), overrides)
  transformer = build_transformer(params)
  values = _assemble(
    tensors, params, (source, written), [v.path for v in transformer.weights]
  )
  check_values(values, transformer, tensors, directory)
  with tempfile.TemporaryDirectory() as scratch:
    files = VocabFiles(
      *(os.path.join(scratch, f"{s}.model") for s in ("source", "target"))
    )
    for path, vocabulary in zip(files, (source, written), strict=True):
      with open(path, "wb") as stream:
        stream.write(vocabulary.model)
    origin = Origin(MARIAN_HF, file_system.absolute(directory), None)
    write_model(target, transformer, values, load_vocabularies(files), origin)
  return summary(values, params, model_dir)


@dataclasses.dataclass(frozen=True)
class _Config:
  """The fields read from config.json and generation_config.json."""

  d_model: int
  encoder_layers: int
  decoder_layers: int
  encoder_attention_heads: int
  decoder_attention_heads: int
  encoder_ffn_dim: int
  decoder_ffn_dim: int
  activation_function: str = "gelu"
  dropout: float = 0.1
  attention_dropout: float = 0.0
  activation_dropout: float = 0.0
  scale_embedding: bool = False
  num_beams: int = 4


def _read_config(directory: str) -> _Config:
  """Reads the two files that describe a model.

  Raises:
    InputError: if they are missing, or of another kind of model.
  """
  path = os.path.join(directory, "config.json")
  config = read_json(path)
  generation = os.path.join(directory, "generation_config.json")
  search = read_json(generation) if file_system.exists(generation) else {}
  names = [field.name for field in dataclasses.fields(_Config)]
  try:
    beams = {k: search[k] for k in ("num_beams",) if search.get(k) is not None}
    given = {k: config[k] for k in names if config.get(k) is not None}
    found = read_record(_Config, {**given, **beams})
  except DAMAGE as error:
    raise InputError(
      f"{path} or generation_config.json beside it is of no model that is "
      f"known here: {error}"
    ) from None
  problems = [
    f"{name} is {config[name]!r:.50}, must be {value!r}"
    for name, value in _NEEDED.items()
    if config.get(name, value) != value
  ]
  for name in ("attention_heads", "ffn_dim"):
    sides = {
      getattr(found, f"{side}_{name}") for side in ("encoder", "decoder")
    }
    if len(sides) > 1:
      problems.append(f"encoder and decoder differ in {name}: {sides}")
  if found.activation_function not in _ACTIVATIONS:
    problems.append(f"activation_function is {found.activation_function!r:.50}")
  if problems:
    raise InputError(
      f"{path} is of no model that is known here: {'; '.join(problems)}"
    )
  return found


def _check_sizes(
  config: _Config, tensors: Mapping[str, np.ndarray], directory: str
) -> None:
  """Refuses weights of other sizes, before a model is built for them."""
  layers = {"encoder": 0, "decoder": 0}
  for name in tensors:
    if match := re.match(_LAYER, name):
      layers[match[1]] = max(layers[match[1]], int(match[2][:9]) + 1)
  widths = {tensors[name].shape[1:] for name in _TABLES if name in tensors}
  filters = tensors.get("model.encoder.layers.0.fc1.weight", np.zeros([0]))
  expected = (
    ("layers of the encoder", layers["encoder"], config.encoder_layers),
    ("layers of the decoder", layers["decoder"], config.decoder_layers),
    ("width of the tables", widths, {(config.d_model,)}),
    ("encoder_ffn_dim", filters.shape[:1], (config.encoder_ffn_dim,)),
  )
  problems = [
    f"{what}: {found} stored, {said} in config.json"
    for what, found, said in expected
    if found != said
  ]
  problems += [
    f"{name} has {tensor.ndim} dimensions"
    for name, tensor in tensors.items()
    if tensor.ndim not in (1, 2)
  ]
  if problems:
    raise InputError(
      f"{directory} does not make one model:\n  " + "\n  ".join(problems)
    )


def _params(
  config: _Config,
  tensors: Mapping[str, np.ndarray],
  vocabularies: tuple[MarianVocabulary, MarianVocabulary],
  overrides: Mapping[str, Any],
) -> TransformerParams:
  """Returns the parameters that a configuration describes."""
  source, target = (len(v.pieces) for v in vocabularies)
  one_table = ENCODER_TABLE not in tensors
  share = "all" if one_table else "decoder"
  if SOFTMAX_TABLE in tensors:
    share = "none"
  values = {
    "vocab_size": target,
    "source_vocab_size": 0 if source == target else source,
    "hidden_size": config.d_model,
    "num_hidden_layers": config.encoder_layers,
    "num_decoder_layers": config.decoder_layers,
    "num_heads": config.encoder_attention_heads,
    "filter_size": config.encoder_ffn_dim,
    "layer_postprocess_dropout": config.dropout,
    "attention_dropout": config.attention_dropout,
    "relu_dropout": config.activation_dropout,
    "beam_size": config.num_beams,
    # Marian divides by the length, which this comes nearest to.
    "alpha": 1.0,
    "start_symbol": "pad_row",
    "norm": "post",
    "layer_norm_epsilon": 1e-5,
    "positions": "huggingface",
    "attention_bias": True,
    "activation": _ACTIVATIONS[config.activation_function],
    "share_embeddings": share,
    "scale_embeddings": config.scale_embedding,
    "output_bias": True,
    "suppress_pad": True,
  }
  if BIAS in tensors:
    unknown = tensors[BIAS].reshape(-1)[vocabularies[1].order[UNK_ID]]
    values["suppress_unk"] = bool(forbids(unknown))
  return TransformerParams(**{**values, **overrides})


def _assemble(
  tensors: Mapping[str, np.ndarray],
  params: TransformerParams,
  vocabularies: tuple[MarianVocabulary, MarianVocabulary],
  paths: Iterable[str],
) -> dict[str, np.ndarray]:
  """Returns the weights by our paths, in our shapes and order."""
  source, target = vocabularies
  values = stacks_of(tensors, paths)
  tables = {
    "embedding/weights": (
      (DECODER_TABLE, SHARED),
      target,
    ),
    "source_embedding/weights": (
      (ENCODER_TABLE,),
      source,
    ),
    "softmax/weights": ((SOFTMAX_TABLE,), target),
    "output/bias": ((BIAS,), target),
  }
  for path, (names, vocabulary) in tables.items():
    found = next((tensors[n] for n in names if n in tensors), None)
    if found is not None:
      # Biases are [1, V].
      rows = (
        without_never(found.reshape(-1)) if path == "output/bias" else found
      )
      if len(rows) >= len(vocabulary.order):
        values[f"transformer/{path}"] = rows[vocabulary.order]
  if params.share_embeddings == "all":
    values.pop("transformer/source_embedding/weights", None)
  return values
