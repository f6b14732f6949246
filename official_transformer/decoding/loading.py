"""Opening a model directory for whatever reads its newest checkpoint."""

from __future__ import annotations

import dataclasses
from typing import Any

from official_transformer.data.tokenizer import Tokenizer, load_tokenizer
from official_transformer.model.transformer import (
  Transformer,
  build_transformer,
)
from official_transformer.model.weights import WEIGHTS, restore_variables
from official_transformer.model_directory import (
  ModelDirectory,
  check_vocabulary,
)


def load_model(
  model_dir: str, **decoding: float | None
) -> tuple[Transformer, Tokenizer]:
  """Loads the newest checkpoint of a model directory, and its vocabulary.

  Args:
    model_dir: as training or import made it; nothing else is needed.
    **decoding: values of `DECODING_FIELDS` instead of the model's own; None
      changes nothing.

  Raises:
    InputError: where the directory holds no usable model.
  """
  directory = ModelDirectory(model_dir)
  stored = directory.read()
  changes: dict[str, Any] = {
    name: value for name, value in decoding.items() if value is not None
  }
  params = dataclasses.replace(stored.params, **changes)
  checkpoint = directory.latest_checkpoint()
  vocab_file = directory.join(stored.vocabulary["file"])
  tokenizer = load_tokenizer(vocab_file)
  check_vocabulary(vocab_file, tokenizer.vocab_size, stored, model_dir)
  transformer = build_transformer(params)
  restore_variables(checkpoint, WEIGHTS, transformer.weights)
  return transformer, tokenizer
