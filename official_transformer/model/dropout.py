"""Dropout whose masks are a function of a seed and of the layer.

Keras' own layer keeps a hidden generator: replicas draw equal masks, and a
resumed run draws others than the run it goes on from. Here whoever runs the
model says which masks to draw:

    with dropout_seed(seed):  # int32 [2], e.g. made from the step number
      logits = model([inputs, targets], training=True)
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

# A thread each, because a strategy traces its replicas in threads.
_current = threading.local()


@contextlib.contextmanager
def dropout_seed(seed: tf.Tensor) -> Iterator[None]:
  """Makes `seed` decide the masks of every `Dropout` called inside.

  Args:
    seed: int32 [2]. Equal seeds give equal masks; each layer has its own.
  """
  outer = getattr(_current, "seed", None)
  _current.seed = seed
  try:
    yield
  finally:
    _current.seed = outer


class Dropout(keras.layers.Layer):
  """Zeroes a share of its input while training, and scales up the rest.

  Outside `dropout_seed`, masks are drawn anew at each call.

  Attributes:
    rate: the share, in [0, 1).
  """

  def __init__(self, rate: float, **kwargs: Any) -> None:
    super().__init__(autocast=False, **kwargs)
    self.rate = rate

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the layer has no variables."""

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x` with its mask applied; `x` itself when not training."""
    if not training or self.rate == 0.0:
      return x
    seed = getattr(_current, "seed", None)
    if seed is None:
      seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    # The path names the layer the same way in every process and every build.
    layer_number = zlib.crc32(self.path.encode()) & 0x7FFFFFFF
    seed = tf.random.fold_in(seed, layer_number)
    return tf.nn.experimental.stateless_dropout(x, self.rate, seed)
