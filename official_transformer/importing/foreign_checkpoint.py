"""Reading checkpoints of all kinds that TensorFlow has written.

Other than this project's own, they may be in several files, hold variables in
slices, or be of TensorFlow's first format: its own reader knows them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from official_transformer.model_directory.checkpoint_files import (
  DamagedCheckpointError,
  check_weights,
  widened,
)

# TensorFlow's readers raise the builtin that is nearest to their own error.
_READ_ERRORS = (tf.errors.OpError, LookupError, ValueError, RuntimeError)


def stored_shapes(prefix: str) -> dict[str, tuple[int, ...]]:
  """Returns the shape of each of a checkpoint's tensors, by name.

  Args:
    prefix: path of the checkpoint without `.index`.

  Raises:
    DamagedCheckpointError: if it cannot be read.
  """
  with _reader(prefix) as reader:
    shapes = reader.get_variable_to_shape_map()
    return {name: tuple(shapes[name]) for name in sorted(shapes)}


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, Any]:
  """Reads some tensors; see `checkpoint_files.read_tensors`."""
  with _reader(prefix) as reader:
    return {name: widened(reader.get_tensor(name)) for name in names}


def read_weights(prefix: str, names: Iterable[str]) -> dict[str, Any]:
  """Reads finite numbers; see `checkpoint_files.read_weights`."""
  tensors = read_tensors(prefix, names)
  check_weights(prefix, tensors)
  return tensors


@contextlib.contextmanager
def _reader(prefix: str) -> Iterator[Any]:
  """Opens a checkpoint; errors of reading become DamagedCheckpointError."""
  try:
    # `tf.train.load_checkpoint` takes a prefix for a directory where names
    # that begin alike look like one.
    yield tf.compat.v1.train.NewCheckpointReader(prefix)
  except _READ_ERRORS as error:
    reason = str(error).split("\n")[0]
    raise DamagedCheckpointError(
      f"the checkpoint {prefix} is missing or damaged ({reason})"
    ) from None
