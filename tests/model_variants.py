"""One model of each variant, small and of random weights, biases too."""

import dataclasses
import itertools

import numpy as np

from official_transformer.model.building import build_transformer
from official_transformer.model_params import (
  NOTEBOOK,
  PAPER_BASE,
  TransformerParams,
)

SIZES = {
  "vocab_size": 23,
  "hidden_size": 16,
  "num_heads": 2,
  "filter_size": 24,
  "num_hidden_layers": 2,
}
SMALL = TransformerParams(
  **SIZES, max_positions=40, beam_size=3, extra_decode_length=6
)
VARIANTS = {
  "official": {},
  "post": {"norm": "post", "layer_norm_epsilon": 1e-5},
  "interleaved": {"positions": "interleaved"},
  "huggingface": {"positions": "huggingface"},
  "learned": {"positions": "learned"},
  "attention_bias": {"attention_bias": True},
  "gelu": {"activation": "gelu"},
  "swish": {"activation": "swish"},
  "decoder_tables": {"share_embeddings": "decoder"},
  "no_shared_tables": {"share_embeddings": "none"},
  "two_vocabularies": {"source_vocab_size": 19, "share_embeddings": "none"},
  "unscaled": {"scale_embeddings": False},
  "output_bias": {"output_bias": True},
  "deep_encoder": {"num_encoder_layers": 3, "num_decoder_layers": 1},
  "pad_row": {"start_symbol": "pad_row"},
  "marian_model": {
    "norm": "post",
    "positions": "huggingface",
    "attention_bias": True,
    "activation": "swish",
    "output_bias": True,
    "suppress_pad": True,
    "start_symbol": "pad_row",
    "layer_norm_epsilon": 1e-5,
  },
  "notebook": {**dataclasses.asdict(NOTEBOOK), **SIZES, "max_positions": 40},
  "paper_base": {**dataclasses.asdict(PAPER_BASE), **SIZES},
}
# Models of several variants at once, small ones: each value of each choice
# below, and seven in eight of the pairs of two choices' values. A search found
# the rows; `test_variants.py` counts what they cover.
CHOICES = {
  "norm": ("pre", "post"),
  "positions": ("sinusoid", "interleaved", "huggingface", "learned"),
  "attention_bias": (False, True),
  "activation": ("relu", "gelu", "swish"),
  "tables": ("all", "decoder", "none", "two"),
  "scale_embeddings": (True, False),
  "output_bias": (False, True),
  "num_encoder_layers": (1, 2),
  "start_symbol": ("zero", "pad_row"),
  "suppress_pad": (False, True),
}
_ROWS = (
  ("pre", "interleaved", True, "swish", "none", False, False, 2, "zero", True),
  (
    "post",
    "interleaved",
    False,
    "relu",
    "all",
    True,
    True,
    1,
    "pad_row",
    False,
  ),
  (
    "post",
    "huggingface",
    False,
    "gelu",
    "decoder",
    False,
    False,
    1,
    "zero",
    False,
  ),
  ("pre", "sinusoid", True, "relu", "decoder", True, True, 2, "pad_row", True),
  ("pre", "learned", False, "swish", "two", False, True, 1, "pad_row", True),
  ("post", "learned", True, "gelu", "two", True, True, 2, "zero", False),
  ("pre", "huggingface", True, "gelu", "all", True, False, 2, "pad_row", True),
  ("post", "sinusoid", False, "relu", "none", False, False, 1, "zero", False),
)
_TABLES = {
  "all": {},
  "decoder": {"share_embeddings": "decoder"},
  "none": {"share_embeddings": "none"},
  "two": {"share_embeddings": "none", "source_vocab_size": 19},
}


def _combined(row):
  """Returns the changed fields of a row of `_ROWS`."""
  fields = dict(zip(CHOICES, row, strict=True))
  return {**_TABLES[fields.pop("tables")], **fields, "num_decoder_layers": 1}


COMBINED = {f"combined_{n}": _combined(row) for n, row in enumerate(_ROWS)}
SOURCE = np.array([[5, 7, 9, 3, 1], [4, 8, 1, 0, 0], [2, 1, 0, 0, 0]], np.int32)
TARGET = np.array([[6, 3, 2, 8, 1], [9, 9, 4, 1, 0], [7, 1, 0, 0, 0]], np.int32)


def pairs_covered():
  """Returns the share of pairs of two choices' values that rows have."""
  wanted = {
    ((a, x), (b, y))
    for a, b in itertools.combinations(CHOICES, 2)
    for x, y in itertools.product(CHOICES[a], CHOICES[b])
  }
  found = {
    pair
    for row in _ROWS
    for pair in itertools.combinations(zip(CHOICES, row, strict=True), 2)
  }
  return len(found & wanted) / len(wanted)


def make(name, **changes):
  """Returns a model whose every variable is random, biases too."""
  variant = {**VARIANTS, **COMBINED}[name]
  params = dataclasses.replace(SMALL, **{**variant, **changes})
  model = build_transformer(params)
  rng = np.random.default_rng(5)
  for variable in model.weights:
    shift = 1.0 if variable.path.endswith("gamma") else 0.0
    noise = rng.normal(scale=0.2, size=variable.shape)
    variable.assign((noise + shift).astype("float32"))
  return model
