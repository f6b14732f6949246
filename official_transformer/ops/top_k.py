"""The most probable tokens, without sorting the vocabulary.

Shapes: R rows, V vocabulary, C chunk, k results; of a search, B batch and K
beam.
"""

from __future__ import annotations

import tensorflow as tf

# Widths of chunks worth having, the best first.
_WIDTHS = (64, *range(63, 31, -1), *range(65, 129))


def top_log_probabilities(
  logits: tf.Tensor, k: int, choices: int | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the k largest entries of `log_softmax(logits)`, and where they are.

  Equal logits come in the order of their ids. They are found in two stages: the
  k chunks of the vocabulary with the largest maxima contain the k largest
  logits.

  Args:
    logits: float32 [R, V].
    k: at most V.
    choices: only so many first entries may be returned; the others still count
      in the softmax. None is all.

  Returns:
    Log-probabilities, float32 [R, k], largest first; ids, int32 [R, k].
  """
  best, ids = _top_k(logits[:, :choices], k)
  # The logarithm of one probability gives the normaliser, and softmax is the
  # fastest way to it.
  probabilities = tf.nn.softmax(logits)
  first = tf.gather(probabilities, ids[:, :1], batch_dims=1)
  return best - best[:, :1] + tf.math.log(first), ids


def best_continuations(
  logits: tf.Tensor, log_probs: tf.Tensor, vocab_size: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the 2K most probable continuations of each sentence.

  Args:
    logits: float32 [B*K, V], maybe with further columns.
    log_probs: float32 [B, K], of the alive hypotheses.
    vocab_size: V.

  Returns:
    Log-probabilities, sorted, new tokens and parents, [B, 2K] each.
  """
  k = log_probs.shape[1]
  # No more than 2K of the 2K best of all can be of one beam.
  per_beam = min(2 * k, vocab_size)
  best, tokens = top_log_probabilities(logits, per_beam, vocab_size)
  best = tf.reshape(best, [-1, k, per_beam])
  best += log_probs[:, :, None]
  return best_of_beams(best, tf.reshape(tokens, [-1, k * per_beam]))


def best_of_beams(
  log_probs: tf.Tensor, tokens: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the 2K best of N continuations of each beam.

  Args:
    log_probs: float32 [B, K, N].
    tokens: int32 [B, K * N], their new tokens.

  Returns:
    As `best_continuations`.
  """
  k, per_beam = log_probs.shape[1:]
  best, positions = tf.math.top_k(
    tf.reshape(log_probs, [-1, k * per_beam]), k=2 * k
  )
  tokens = tf.gather(tokens, positions, batch_dims=1)
  return best, tokens, positions // per_beam


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
