"""What numbers are computed in, as Keras calls it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras

# Keras' names for what `--dtype` chooses, in training and without it.
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
