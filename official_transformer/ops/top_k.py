"""The most probable tokens, without sorting the vocabulary.

Shapes: R rows, V vocabulary, C chunk, k results.
"""

from __future__ import annotations

import tensorflow as tf

# Widths of chunks worth having, the best first.
_WIDTHS = (64, *range(63, 31, -1), *range(65, 129))


def top_log_probabilities(
  logits: tf.Tensor, k: int, choices: int | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the k largest entries of `log_softmax(logits)`, and where they are.

  Equal ones come in the order of their ids. What is looked for is found in two
  stages: the k chunks of the vocabulary with the largest maxima hold the k
  largest logits.

  Args:
    logits: float32 [R, V].
    k: at most V.
    choices: how many of the first entries there are to choose from; the others
      have their share of the probability, and no more. None is all.

  Returns:
    Log-probabilities, float32 [R, k], largest first; ids, int32 [R, k].
  """
  best, ids = _top_k(logits[:, :choices], k)
  # The logarithm of one probability gives the normaliser, and softmax is the
  # fastest way to it.
  probabilities = tf.nn.softmax(logits)
  first = tf.gather(probabilities, ids[:, :1], batch_dims=1)
  return best - best[:, :1] + tf.math.log(first), ids


def _top_k(logits: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the k largest of [R, V] and their positions, [R, k] each."""
  size = logits.shape[1]
  width = _chunk_width(size)
  if size < 4 * width * k:
    return tf.math.top_k(logits, k)
  if size % width:
    logits = tf.pad(
      logits, [[0, 0], [0, -size % width]], constant_values=float("-inf")
    )
  chunks = tf.reshape(logits, [-1, logits.shape[1] // width, width])
  _, chosen = tf.math.top_k(tf.reduce_max(chunks, axis=2), k)
  # In the order of the vocabulary, so that the first of equals stays first.
  chosen = tf.sort(chosen)
  candidates = tf.gather(chunks, chosen, batch_dims=1)  # [R, k, C]
  best, places = tf.math.top_k(tf.reshape(candidates, [-1, k * width]), k)
  chunk = tf.gather(chosen, places // width, batch_dims=1)
  return best, chunk * width + places % width


def _chunk_width(size: int) -> int:
  """Returns a width that divides V, so that nothing is copied, or the best."""
  return next((w for w in _WIDTHS if size % w == 0), _WIDTHS[0])
