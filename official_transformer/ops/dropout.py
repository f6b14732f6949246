"""Dropout whose masks are a function of a seed and of the layer.

Keras' own layer has a hidden generator: replicas draw equal masks, and a
resumed run draws other masks than the interrupted one. Here, the caller gives
the seed:

    with dropout_seed(seed):  # int32 [2], e.g. made from the step number
      logits = model([inputs, targets], training=True)
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from official_transformer.ops.layer import ConfiguredLayer

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


def current_seed() -> tf.Tensor:
  """Returns the seed that decides masks here, int32 [2], or a new one."""
  seed = getattr(_current, "seed", None)
  if seed is None:
    seed = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
  return seed


# Most of the cost of dropout is drawing random bits: 8 of them decide about an
# element. A rate of 0.1 is 25.6 of 256: at each call, either 25 or 26, drawn so
# that every element is dropped with a probability of 0.1.
_LEVELS = 2**8
# Named, so that XLA draws the masks that TensorFlow's own kernels draw.
_GENERATOR = "philox"


def fold_in(seed: tf.Tensor, number: int | tf.Tensor) -> tf.Tensor:
  """Returns the seed int32 [2] that a seed and a number make."""
  return tf.random.fold_in(seed, number, alg=_GENERATOR)


class Dropout(ConfiguredLayer):
  """Zeroes a share of its input while training, and scales up the rest.

  Outside `dropout_seed`, each call draws a new mask.

  Attributes:
    rate: the share, in [0, 1).
    scale: factor of the kept elements, which preserves the mean.
  """

  def __init__(self, rate: float, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.rate = rate
    self.scale = 1.0 / (1.0 - rate)

  def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x` with its mask applied; `x` itself when not training."""
    if not training or self.rate == 0.0:
      return x
    keep = self._draw(tf.shape(x), tf.size(x))
    return tf.where(keep, x * self.scale, tf.zeros([], x.dtype))

  def unscaled(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `x` with its mask applied, but not scaled up.

    While training, the caller multiplies the result, or a product with it, by
    `scale`.
    """
    if training and self.rate:
      keep = self._draw(tf.shape(x), tf.size(x))
      x = tf.where(keep, x, tf.zeros([], x.dtype))
    return x

  def after_relu(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `relu(x)` with its mask applied, but not scaled up.

    While training, the caller multiplies the result, or a product with it, by
    `scale`. The gradient needs only the output: an element above zero there was
    above zero before, and was not dropped.
    """
    if not training or self.rate == 0.0:
      return tf.nn.relu(x)
    keep = self._draw(tf.shape(x), tf.size(x))

    @tf.custom_gradient
    def dropped_relu(x: tf.Tensor) -> Any:
      y = tf.where(keep, tf.nn.relu(x), tf.zeros([], x.dtype))
      return y, lambda up: tf.raw_ops.ReluGrad(gradients=up, features=y)

    return dropped_relu(x)

  def _draw(self, shape: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """Returns the mask of kept elements, bool, `size` elements in `shape`."""
    # The path names the layer the same way in every process and every build.
    layer_number = zlib.crc32(self.path.encode()) & 0x7FFFFFFF
    seed = fold_in(current_seed(), layer_number)
    # Four levels a word, and one word that decides about the level.
    words = _random_words((size + 3) // 4 + 1, seed)
    levels = tf.reshape(tf.bitcast(words, tf.uint8), [-1])
    level, part = divmod(self.rate * _LEVELS, 1.0)
    # In integers, so that XLA decides alike.
    most = tf.constant(int(part * 2**32), tf.uint32)
    above = tf.cast(words[-1] < most, tf.uint8)
    if level:
      # All 256 levels may be dropped, which is one more than 8 bits hold.
      keep = levels[:size] > tf.constant(int(level) - 1, tf.uint8) + above
    else:
      keep = levels[:size] >= above
    return tf.reshape(keep, shape)


def _random_words(number: int | tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
  """Returns uint32 [number], each of 32 random bits."""
  return tf.random.stateless_uniform(
    [number], seed, minval=None, maxval=None, dtype=tf.uint32, alg=_GENERATOR
  )
