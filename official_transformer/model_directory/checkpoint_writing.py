"""Writing checkpoints; `checkpoint_files` says what they contain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.model_directory.directory import (
  CHECKPOINTS,
  ModelDirectory,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import new_directory

# Types in which weights may be stored, by their `--dtype` names. Types of two
# bytes are read as float32.
STORAGE = {"fp32": tf.float32, "fp16": tf.float16, "bf16": tf.bfloat16}


def write_checkpoint(
  directory: ModelDirectory,
  step: int,
  tensors: Mapping[str, Any],
  kind: str = CHECKPOINTS,
  marks: Iterable[str] = (),
) -> str:
  """Writes a checkpoint into a directory of its own, whole or not at all.

  Args:
    directory: the model directory.
    step: step of the checkpoint; stored too.
    tensors: tensors by the name each is to be stored under.
    kind: `CHECKPOINTS`, `BEST` or `AVERAGE`.
    marks: names of empty files to put beside it.

  Returns:
    The checkpoint's directory.

  Raises:
    OSError: if the system refuses; earlier files are unchanged.
  """
  path = directory.checkpoint_directory(step, kind)
  with new_directory(path) as aside:
    write_bundle(
      directory.prefix_in(aside),
      {**tensors, "step": tf.constant(step, tf.int64)},
    )
    for name in marks:
      with file_system.open_file(os.path.join(aside, name), "wb"):
        pass
  return path


def write_only_checkpoint(
  directory: ModelDirectory, step: int, tensors: Mapping[str, Any], kind: str
) -> str:
  """Writes a checkpoint, then removes the others of its kind.

  Args:
    directory: the model directory.
    step: step of the checkpoint; stored too.
    tensors: tensors by the name each is to be stored under.
    kind: `BEST` or `AVERAGE`.

  Returns:
    The checkpoint's directory.

  Raises:
    OSError: if the system refuses; earlier files are unchanged.
  """
  path = write_checkpoint(directory, step, tensors, kind)
  for other in directory.checkpoint_steps(kind):
    if other != step:
      directory.remove_checkpoint(other, kind)
  return path


def write_bundle(prefix: str, tensors: Mapping[str, Any]) -> None:
  """Writes tensors as `prefix.index` and its data.

  A crash can leave an incomplete file; `write_checkpoint` does not.

  Args:
    prefix: DIRECTORY/NAME; the directory exists.
    tensors: tensors by the name each is to be stored under.

  Raises:
    OSError: if the system refuses.
  """
  try:
    tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=list(tensors),
      shape_and_slices=[""] * len(tensors),
      tensors=[tf.convert_to_tensor(t) for t in tensors.values()],
    )
  except tf.errors.OpError as error:  # A full disk, a permission.
    raise OSError(f"cannot write {prefix}: {error.message}") from None


def to_storage(tensors: Mapping[str, Any], storage: str) -> dict[str, Any]:
  """Rounds tensors to the type in which they are stored.

  Args:
    tensors: float32 arrays by name.
    storage: one of `STORAGE`.

  Raises:
    InputError: if a number is too large for it.
  """
  dtype = STORAGE[storage]
  stored = {name: tf.cast(value, dtype) for name, value in tensors.items()}
  for name, value in tensors.items():
    lost = np.isfinite(value) & ~tf.math.is_finite(stored[name]).numpy()
    if lost.any():
      raise InputError(
        f"--storage={storage}: {name} has numbers that are too large for it; "
        + ("bf16 or fp32 hold them" if storage == "fp16" else "fp32 holds them")
      )
  return stored
