"""What all tests share."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import dataclasses
from collections.abc import Iterator

import pytest
from absl import flags

from official_transformer.commands.transformer_flags import (
  define_transformer_flags,
)
from official_transformer.model_params import TransformerParams


@pytest.fixture
def params() -> TransformerParams:
  """A model of two small layers over a vocabulary of 20."""
  return TransformerParams(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=2,
    num_heads=2,
    filter_size=32,
    default_batch_size=256,
    learning_rate_warmup_steps=10,
    extra_decode_length=5,
  )


@pytest.fixture
def undropped(params: TransformerParams) -> TransformerParams:
  """The same without dropout."""
  return dataclasses.replace(
    params,
    layer_postprocess_dropout=0.0,
    attention_dropout=0.0,
    relu_dropout=0.0,
  )


@pytest.fixture(scope="session")
def defined_flags() -> flags.FlagValues:
  """Absl's flags with those of transformer_main; defined once a process."""
  define_transformer_flags()
  return flags.FLAGS


@pytest.fixture
def transformer_flags(
  defined_flags: flags.FlagValues,
) -> Iterator[flags.FlagValues]:
  """The same for one test, which may parse a command line."""
  yield defined_flags
  for name in defined_flags:
    defined_flags[name].unparse()
