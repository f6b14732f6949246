"""Reading a checkpoint's variables by their paths.

A checkpoint is a TensorFlow tensor bundle of plain names: `weights/PATH` for
each of the model's variables, `optimizer/PATH` for each of the optimizer's,
and the scalars `step` and `seed`. Keys are variable paths, not an object
graph: Keras 3 layers kept in lists are invisible to `tf.train.Checkpoint`,
which would store and restore nothing for them, in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from official_transformer.errors import InputError

WEIGHTS = "weights"
OPTIMIZER = "optimizer"

# TensorFlow's readers raise the builtin that is nearest to their own error.
_READ_ERRORS = (tf.errors.OpError, LookupError, ValueError, RuntimeError)


def bundle_key(group: str, variable: Any) -> str:
  """Returns the name under which a variable of `group` is stored."""
  return f"{group}/{variable.path}"


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, Any]:
  """Reads some of a checkpoint's tensors.

  Args:
    prefix: its path without `.index`.
    names: as they are stored.

  Returns:
    NumPy arrays by name.

  Raises:
    InputError: where the checkpoint is missing or damaged.
  """
  try:
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in names}
  except _READ_ERRORS as error:
    raise InputError(_damaged(prefix, error)) from None


def _stored_shapes(prefix: str) -> dict[str, tuple[int, ...]]:
  """Returns the shape of each of a checkpoint's tensors."""
  try:
    return {n: tuple(shape) for n, shape in tf.train.list_variables(prefix)}
  except _READ_ERRORS as error:
    raise InputError(_damaged(prefix, error)) from None


def _damaged(prefix: str, error: Exception) -> str:
  return (
    f"the checkpoint {prefix} is missing or damaged ({error}); remove its "
    "directory to go on from the one before it"
  )


def restore_variables(
  prefix: str, group: str, variables: Iterable[keras.Variable]
) -> None:
  """Assigns stored values to variables, all or none.

  Args:
    prefix: the checkpoint's path without `.index`.
    group: `WEIGHTS` or `OPTIMIZER`.
    variables: exactly those the checkpoint holds in that group.

  Raises:
    InputError: where the checkpoint is unreadable, or lists of variables or
      shapes differ; every difference is named.
  """
  stored = {
    name: shape
    for name, shape in _stored_shapes(prefix).items()
    if name.startswith(group + "/")
  }
  wanted = {bundle_key(group, v): v for v in variables}
  problems = [f"missing: {name}" for name in sorted(wanted.keys() - stored)]
  problems += [f"unknown: {name}" for name in sorted(stored.keys() - wanted)]
  problems += [
    f"shape of {name}: stored {stored[name]}, needed {tuple(v.shape)}"
    for name, v in wanted.items()
    if name in stored and stored[name] != tuple(v.shape)
  ]
  if problems:
    raise InputError(
      f"the checkpoint {prefix} does not fit this model; was it trained with "
      "other parameters?\n  " + "\n  ".join(problems)
    )
  values = read_tensors(prefix, wanted)
  for name, variable in wanted.items():
    variable.assign(values[name])
