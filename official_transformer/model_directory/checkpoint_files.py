"""Reading a checkpoint's variables by their paths; `checkpoint_writing` writes.

A checkpoint is a TensorFlow tensor bundle of plain names: `weights/PATH` for
each of the model's variables, `optimizer/PATH` for each of the optimizer's,
and the scalars `step` and `seed`. Keys are variable paths, not an object
graph: Keras 3 layers kept in lists are invisible to `tf.train.Checkpoint`,
which would store and restore nothing for them, in silence.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from official_transformer.errors import InputError
from official_transformer.model_directory.description import DESCRIPTION_FILE
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import TransformerParams
from official_transformer.storage import file_system
from official_transformer.storage.tensor_bundle import (
  DamagedBundleError,
  TensorBundle,
)

WEIGHTS = "weights"
OPTIMIZER = "optimizer"
LOSS_SCALE = "loss_scale"
MOVING_AVERAGE = "moving_average"
_OF_WEIGHTS = (WEIGHTS, MOVING_AVERAGE)
# Of which checkpoints an average is the mean, int64 [N].
AVERAGED_STEPS = "averaged_steps"
_TABLE = "transformer/embedding/weights"
_SOURCE_TABLE = "transformer/source_embedding/weights"
_LAYER = re.compile(r"/decoder_stack/layer_(\d+)/")

# Of NumPy's data types: booleans, whole and real numbers.
_REAL_KINDS = "biuf"


def bundle_key(group: str, variable: Any) -> str:
  """Returns the name under which a variable of `group` is stored."""
  return f"{group}/{variable.path}"


class DamagedCheckpointError(InputError):
  """A checkpoint that cannot be read."""


def check_bundle(prefix: str) -> None:
  """Reads all numbers of a checkpoint, checksums included, and drops them.

  Raises:
    DamagedCheckpointError: if it cannot be read, or weights are not finite.
  """
  with _opened(prefix) as bundle:
    for name in bundle.shapes:
      value = bundle.read(name)
      if name.partition("/")[0] in _OF_WEIGHTS:
        check_weights(prefix, {name: value})


def first_readable(
  directory: ModelDirectory,
  steps: Iterable[int],
  kind: str,
  read: Callable[[str], object] = check_bundle,
) -> tuple[int, list[DamagedCheckpointError]]:
  """Reads the first of some checkpoints that can be read.

  Args:
    directory: the model directory.
    steps: steps of the checkpoints to try, in turn; at least one.
    kind: `CHECKPOINTS`, `BEST` or `AVERAGE`.
    read: reads a checkpoint, given its path without `.index`.

  Returns:
    Its step, and the errors of those that were tried before it.

  Raises:
    DamagedCheckpointError: if none can be read; the error is that of the first.
  """
  errors: list[DamagedCheckpointError] = []
  for step in steps:
    try:
      read(directory.checkpoint_prefix(step, kind))
      return step, errors
    except DamagedCheckpointError as error:
      errors.append(error)
  raise errors[0]


def check_sizes(prefix: str, params: TransformerParams) -> None:
  """Refuses a checkpoint of another size, before a model is built for it.

  Args:
    prefix: path of the checkpoint without `.index`.
    params: parameters of model.json.

  Raises:
    DamagedCheckpointError: if it cannot be read, or its data are smaller than
      its index says.
    InputError: if its sizes are others.
  """
  shapes = stored_shapes(prefix, WEIGHTS)
  stored = sum(
    file_system.size(os.path.join(os.path.dirname(prefix), name))
    for name in file_system.names_in(os.path.dirname(prefix))
  )
  # No number takes less than a byte.
  if stored < sum(math.prod(shape) for shape in shapes.values()):
    raise DamagedCheckpointError(
      f"the checkpoint {prefix} is missing or damaged (its data lack a part)"
    )
  layers = {m[1] for name in shapes if (m := _LAYER.search(name))}
  widths = {s[-1] for n, s in shapes.items() if n.endswith("/filter_bias")}
  source_rows, width = params.source_rows, params.hidden_size
  expected = (
    ("rows and columns of the table",
     shapes.get(f"{WEIGHTS}/{_TABLE}"), (params.vocab_size, width)),
    ("rows and columns of the source's table",
     shapes.get(f"{WEIGHTS}/{_SOURCE_TABLE}"),
     (source_rows, width) if source_rows else None),
    ("layers", len(layers), params.decoder_layers),
    ("filter_size", widths, {params.filter_size}),
  )  # fmt: skip
  problems = [
    f"{what}: {found} stored, {said} in {DESCRIPTION_FILE}"
    for what, found, said in expected
    if found != said
  ]
  if problems:
    raise InputError(
      f"the checkpoint {prefix} does not fit this model: {'; '.join(problems)}"
    )


def best_weights_group(prefix: str) -> str:
  """Returns which of a checkpoint's groups to decode with.

  It is the moving average of the weights if there is one.

  Args:
    prefix: path of the checkpoint without `.index`.

  Raises:
    DamagedCheckpointError: if it cannot be read.
  """
  return MOVING_AVERAGE if stored_shapes(prefix, MOVING_AVERAGE) else WEIGHTS


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, Any]:
  """Reads some of a checkpoint's tensors.

  Args:
    prefix: path of the checkpoint without `.index`.
    names: as they are stored.

  Returns:
    NumPy arrays by name; of numbers of two bytes, in float32.

  Raises:
    DamagedCheckpointError: if it cannot be read.
  """
  with _opened(prefix) as bundle:
    return {name: widened(bundle.read(name)) for name in names}


def read_weights(prefix: str, names: Iterable[str]) -> dict[str, Any]:
  """Reads some of a checkpoint's tensors, which are to be finite numbers.

  Args:
    prefix: path of the checkpoint without `.index`.
    names: as they are stored.

  Returns:
    As `read_tensors`.

  Raises:
    DamagedCheckpointError: if it cannot be read, or holds anything else.
  """
  tensors = read_tensors(prefix, names)
  check_weights(prefix, tensors)
  return tensors


def check_weights(prefix: str, tensors: Mapping[str, Any]) -> None:
  """Raises a `DamagedCheckpointError` if stored arrays are no weights."""
  for name, value in tensors.items():
    if problem := problem_of_weights(value):
      raise DamagedCheckpointError(
        f"the checkpoint {prefix} cannot be used: {name} {problem}. If a run "
        "that diverged has saved it, use an earlier one"
      )


def problem_of_weights(value: Any) -> str | None:
  """Returns why an array is no weights, if so: "holds ..."."""
  array = np.asarray(widened(value))
  if not np.issubdtype(array.dtype, np.floating):
    return f"holds no real numbers, but {array.dtype}"
  with np.errstate(over="ignore"):  # Of float64, which weights are not.
    array = array.astype(np.float32, copy=False)
  wrong = array.size - np.count_nonzero(np.isfinite(array))
  if wrong:
    return f"holds {wrong} numbers that are not finite"
  return None


def read_integers(prefix: str, name: str) -> tuple[int, ...]:
  """Reads one of a checkpoint's tensors, of whole numbers in a row, or one.

  Args:
    prefix: path of the checkpoint without `.index`.
    name: stored name.

  Raises:
    DamagedCheckpointError: if it cannot be read, or is something else.
  """
  value = np.asarray(read_tensors(prefix, [name])[name])
  is_right = np.issubdtype(value.dtype, np.integer) and value.ndim < 2
  if not is_right or not value.size or (value < 0).any():
    raise DamagedCheckpointError(
      f"the checkpoint {prefix} is damaged ({name} is no number of steps)"
    )
  return tuple(map(int, value.reshape([-1])))


def widened(array: Any) -> Any:
  """Converts float16 and bfloat16 to float32, and no other type."""
  kind = getattr(array, "dtype", None)
  # NumPy knows bfloat16 by name alone.
  is_half = kind == np.float16 or getattr(kind, "name", "") == "bfloat16"
  return array.astype(np.float32) if is_half else array


def stored_shapes(
  prefix: str, group: str | None = None
) -> dict[str, tuple[int, ...]]:
  """Returns the shape of each of a checkpoint's tensors, by name.

  Args:
    prefix: path of the checkpoint without `.index`.
    group: `WEIGHTS` or `OPTIMIZER`, for that group's alone.

  Raises:
    DamagedCheckpointError: if it cannot be read.
  """
  with _opened(prefix) as bundle:
    return {
      name: shape
      for name, shape in bundle.shapes.items()
      if group is None or name.startswith(f"{group}/")
    }


def mean_weights(prefixes: Sequence[str]) -> dict[str, Any]:
  """Returns the mean of the weights of several checkpoints, by name.

  They are summed in float64, one checkpoint in memory at a time.

  Args:
    prefixes: paths without `.index`, of checkpoints of one model.

  Raises:
    DamagedCheckpointError: if one cannot be read.
    InputError: if they are not of one model.
  """
  shapes = stored_shapes(prefixes[0], WEIGHTS)
  sums = {name: np.zeros(shape) for name, shape in shapes.items()}
  dtypes = {}
  for prefix in prefixes:
    if stored_shapes(prefix, WEIGHTS) != shapes:
      raise InputError(
        f"{prefix} has not the variables of {prefixes[0]}: they are of "
        "different models"
      )
    for name, value in read_weights(prefix, shapes).items():
      sums[name] += value
      dtypes[name] = value.dtype
  return {
    name: (total / len(prefixes)).astype(dtypes[name])
    for name, total in sums.items()
  }


@contextlib.contextmanager
def _opened(prefix: str) -> Iterator[TensorBundle]:
  """Opens a checkpoint; errors of reading become DamagedCheckpointError."""
  try:
    with TensorBundle(prefix) as bundle:
      yield bundle
  except (DamagedBundleError, OSError) as error:
    raise DamagedCheckpointError(
      f"the checkpoint {prefix} is missing or damaged ({error})"
    ) from None


def restore_variables(
  prefix: str, group: str, variables: Iterable[Any]
) -> None:
  """Assigns stored values to variables, all or none.

  Args:
    prefix: the checkpoint's path without `.index`.
    group: `WEIGHTS` or `OPTIMIZER`.
    variables: exactly the variables of that group in the checkpoint.

  Raises:
    DamagedCheckpointError: if it cannot be read.
    InputError: if lists of variables or shapes differ; every difference is
      named.
  """
  wanted = {bundle_key(group, v): v for v in variables}
  check_variables(
    prefix,
    group,
    stored_shapes(prefix, group),
    {name: v.shape for name, v in wanted.items()},
  )
  # Other values of a run, such as the number of steps, are no weights.
  read = read_weights if group in _OF_WEIGHTS else read_tensors
  values = read(prefix, wanted)
  for name, value in values.items():
    if np.asarray(value).dtype.kind not in _REAL_KINDS:
      raise DamagedCheckpointError(
        f"the checkpoint {prefix} is damaged ({name} holds no numbers, but "
        f"{np.asarray(value).dtype})"
      )
  for name, variable in wanted.items():
    variable.assign(values[name])


def check_variables(
  prefix: str,
  group: str,
  stored: Mapping[str, Sequence[int]],
  wanted: Mapping[str, Sequence[int]],
) -> None:
  """Refuses a checkpoint that has other variables than a model.

  Args:
    prefix: the checkpoint's path without `.index`.
    group: `WEIGHTS` or `OPTIMIZER`.
    stored: shapes in the checkpoint, by name.
    wanted: shapes in the model, by name.

  Raises:
    InputError: if names or shapes differ; every difference is named.
  """
  problems = [f"missing: {name}" for name in sorted(wanted.keys() - stored)]
  problems += [f"unknown: {name}" for name in sorted(stored.keys() - wanted)]
  problems += [
    f"shape of {name}: stored {tuple(stored[name])}, needed {tuple(shape)}"
    for name, shape in wanted.items()
    if name in stored and tuple(stored[name]) != tuple(shape)
  ]
  if problems:
    raise InputError(
      f"the checkpoint {prefix} does not fit this model; was it trained with "
      "other parameters"
      + (", or another --freeze" if group == OPTIMIZER else "")
      + "?\n  "
      + "\n  ".join(problems)
    )
