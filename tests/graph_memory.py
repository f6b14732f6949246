"""What TensorFlow keeps of each test's graphs is let go: a pytest plugin."""

import ctypes
import gc
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def forgotten_graphs() -> Iterator[None]:
  """Forgets the custom gradients of a test's graphs when it has run.

  TensorFlow registers each `tf.custom_gradient` of a graph for as long as the
  process lives, and with it the graph and its weights. A training traces some
  20 of them, and a process of the tests traces hundreds of trainings.
  """
  yield
  if "tensorflow" not in sys.modules:
    return
  from tensorflow.python.framework import ops

  registered = ops.gradient_registry._registry
  names = [name for name in registered if name.startswith("CustomGradient-")]
  for name in names:
    del registered[name]
  if names:
    gc.collect()
    if sys.platform == "linux":
      # What has been freed goes back to the system, for the other processes.
      ctypes.CDLL(None).malloc_trim(0)
