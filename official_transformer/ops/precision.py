"""Keras' dtype policies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras

from official_transformer.errors import InputError

# Keras' policies for each `--dtype`, in training and without it.
DTYPE_POLICIES = {
  "fp32": "float32",
  "bf16": "mixed_bfloat16",
  "fp16": "mixed_float16",
}
INFERENCE_POLICIES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@contextlib.contextmanager
def default_policy(policy: keras.DTypePolicy) -> Iterator[None]:
  """Gives the layers made inside a Keras policy."""
  outer = keras.config.dtype_policy()
  keras.config.set_dtype_policy(policy)
  try:
    yield
  finally:
    keras.config.set_dtype_policy(outer)


def keras_policy(dtype: str, is_train: bool) -> str:
  """Returns the name of Keras' policy for a model.

  Args:
    dtype: a key of `DTYPE_POLICIES`. With `bf16` and `fp16` all is computed
      in that type but softmax, layer norms and loss.
    is_train: whether it may be trained: variables are float32 then, else they
      are of `dtype` too but for the layer norms'.

  Raises:
    InputError: if there is no such type, or if Keras runs on another backend
      than TensorFlow.
  """
  if dtype not in DTYPE_POLICIES:
    names = ", ".join(DTYPE_POLICIES)
    raise InputError(f"dtype is {dtype!r}, must be one of {names}")
  if keras.backend.backend() != "tensorflow":
    raise InputError(
      f"Keras is set to the {keras.backend.backend()} backend; set "
      "KERAS_BACKEND=tensorflow in the environment"
    )
  return (DTYPE_POLICIES if is_train else INFERENCE_POLICIES)[dtype]
