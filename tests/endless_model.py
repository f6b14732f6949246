"""A copy of a model whose translations never end by themselves."""

from __future__ import annotations

import numpy as np

from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  read_tensors,
  stored_shapes,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import EOS_ID

_TABLE = f"{WEIGHTS}/transformer/embedding/weights"


def make_endless(model_dir: str) -> None:
  """Makes EOS the least likely token of a model's newest checkpoint.

  With a row of zeros its logit is always 0. The other rows come in pairs of
  opposite sign, so that half of their logits are above that.

  Args:
    model_dir: of a model with one table; a checkpoint is added.
  """
  directory = ModelDirectory(model_dir)
  prefix = directory.latest_checkpoint()
  tensors = read_tensors(prefix, stored_shapes(prefix, WEIGHTS))
  table = tensors[_TABLE]
  rest = table[EOS_ID + 1 :]
  half = len(rest) // 2
  rest[half : 2 * half] = -rest[:half]
  table[EOS_ID] = 0.0
  tensors[_TABLE] = np.ascontiguousarray(table)
  step = directory.checkpoint_steps()[-1] + 1
  write_checkpoint(directory, step, {**tensors, "step": step})
