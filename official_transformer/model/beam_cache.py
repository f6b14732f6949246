"""Keys and values of all beams, written once and never moved.

Beams are reordered at every step. Instead of moving their keys and values, each
position keeps the keys and values that all beams wrote there, and each
hypothesis remembers which beam wrote each of its positions: its `origin_beams`.
With few beams, attention reads the positions of all beams of a sentence and
hides those of other hypotheses: that adds arithmetic, little beside the
products with kernels, and saves much more memory traffic. The arithmetic grows
with the square of the beams; with many beams, each hypothesis' history is
copied together.

Shapes: B sentences, K beam, R = B * K hypotheses, T positions of capacity,
N heads, H head size.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model.model_utils import NEGATIVE_BIAS

# The capacity grows by this number of positions or by a quarter, whichever is
# more: growing copies the cache, and attention also covers unused positions,
# with weight zero.
CAPACITY_STEP = 16
NO_BEAM = -1
# With more beams than this, each hypothesis' history is copied together.
MAX_SHARED_BEAMS = 16


class BeamCache(NamedTuple):
  """Keys and values of one layer for the beams of each sentence.

  Attributes:
    keys: [B, N, T, K, H].
    values: [B, N, T, K, H].
  """

  keys: tf.Tensor
  values: tf.Tensor


class BeamHistory(NamedTuple):
  """The positions of each hypothesis in the caches of all layers.

  Attributes:
    bias: float32, hides all but a hypothesis' own positions: [B, 1, K, T * K]
      if all beams of a sentence are attended to; [R, 1, 1, T], which hides
      positions not yet written, if each history is copied together.
    rows: int32 [R, N, T], the rows to copy of a cache in the layout [B * N * T
      * K, H]; None copies nothing.
  """

  bias: tf.Tensor
  rows: tf.Tensor | None


def empty_cache(
  batch: int | tf.Tensor,
  num_heads: int,
  length: int,
  beam_size: int,
  head_size: int,
  dtype: tf.DType,
) -> tf.Tensor:
  """Returns an empty cache of keys or values, zeros [B, N, T, K, H]."""
  return tf.zeros([batch, num_heads, length, beam_size, head_size], dtype)


def ensure_capacity(
  caches: list[BeamCache], origin_beams: tf.Tensor, index: tf.Tensor
) -> tuple[list[BeamCache], tf.Tensor]:
  """Extends the caches so that they have room for position `index`.

  Args:
    caches: caches of all layers.
    origin_beams: int32 [R, T].
    index: int32 [], at most T.

  Returns:
    Caches and origin beams of at least `index + 1` positions.
  """
  length = tf.shape(origin_beams)[1]
  added = tf.maximum(CAPACITY_STEP, length // 4)

  def larger() -> tuple[list[BeamCache], tf.Tensor]:
    # Each tensor gets memory of its own here, which `write_position` needs.
    return (
      tf.nest.map_structure(
        lambda t: tf.pad(t, [[0, 0], [0, 0], [0, added], [0, 0], [0, 0]]),
        caches,
      ),
      tf.pad(origin_beams, [[0, 0], [0, added]], constant_values=NO_BEAM),
    )

  return tf.cond(
    tf.equal(index, length), larger, lambda: (caches, origin_beams)
  )


def write_position(
  cache: tf.Tensor, index: tf.Tensor, new: tf.Tensor
) -> tf.Tensor:
  """Writes one position of every beam.

  Args:
    cache: [B, N, T, K, H]; not to be read again.
    index: int32 [], the position.
    new: [B, N, K, H].

  Returns:
    [B, N, T, K, H].
  """
  batch, heads, length, beams, size = tf.unstack(tf.shape(cache))
  rows = tf.range(batch * heads) * length + index
  flat = tf.reshape(cache, [-1, beams * size])
  new = tf.cast(tf.reshape(new, [-1, beams * size]), cache.dtype)
  if cache.shape.is_fully_defined():
    # XLA writes in place.
    flat = tf.tensor_scatter_nd_update(flat, rows[:, None], new)
  else:
    # The one operation that writes in place without XLA: in a loop, the other
    # copies the whole cache at every step, and for half precision it has no
    # GPU kernel.
    flat = tf.raw_ops.InplaceUpdate(x=flat, i=rows, v=new)
  return tf.reshape(flat, tf.shape(cache))


def record_origins(
  origin_beams: tf.Tensor, index: tf.Tensor, beam_size: int
) -> tf.Tensor:
  """Notes that every hypothesis writes position `index` from its own beam.

  Args:
    origin_beams: int32 [R, T].
    index: int32 [], below T.
    beam_size: K.

  Returns:
    int32 [R, T].
  """
  own = tf.range(tf.shape(origin_beams)[0]) % beam_size
  here = tf.range(tf.shape(origin_beams)[1]) == index
  return tf.where(here, own[:, None], origin_beams)


def history_bias(origin_beams: tf.Tensor, beam_size: int) -> tf.Tensor:
  """Returns the bias that hides all but a hypothesis' own positions.

  Args:
    origin_beams: int32 [R, T]: the beam that wrote each position of a
      hypothesis, `NO_BEAM` if none has yet.
    beam_size: K.

  Returns:
    float32 [B, 1, K, T * K].
  """
  own = tf.equal(origin_beams[:, :, None], tf.range(beam_size))  # [R, T, K]
  bias = tf.where(own, 0.0, NEGATIVE_BIAS)
  keys = tf.shape(origin_beams)[1] * beam_size
  return tf.reshape(bias, [-1, 1, beam_size, keys])


def history_of(
  origin_beams: tf.Tensor, beam_size: int, num_heads: int
) -> BeamHistory:
  """Returns where the hypotheses' own positions are.

  Args:
    origin_beams: int32 [R, T]: the beam that wrote each position of a
      hypothesis, `NO_BEAM` if none has yet.
    beam_size: K.
    num_heads: N.
  """
  if beam_size <= MAX_SHARED_BEAMS:
    return BeamHistory(history_bias(origin_beams, beam_size), None)
  hypotheses, length = tf.unstack(tf.shape(origin_beams))
  sentences = tf.range(hypotheses) // beam_size
  lines = sentences[:, None] * num_heads + tf.range(num_heads)  # [R, N]
  positions = lines[:, :, None] * length + tf.range(length)  # [R, N, T]
  rows = positions * beam_size + tf.maximum(origin_beams, 0)[:, None, :]
  bias = tf.where(tf.equal(origin_beams, NO_BEAM), NEGATIVE_BIAS, 0.0)
  return BeamHistory(bias[:, None, None, :], rows)


def read_history(cache: tf.Tensor, history: BeamHistory) -> tf.Tensor:
  """Returns the keys and values that the hypotheses attend to.

  Args:
    cache: [B, N, T, K, H].
    history: the result of `history_of`.

  Returns:
    [B, N, T * K, H], or [R, N, T, H] if it was copied together.
  """
  shape = tf.shape(cache)
  if history.rows is None:
    return tf.reshape(cache, [shape[0], shape[1], -1, cache.shape[-1]])
  return tf.gather(tf.reshape(cache, [-1, cache.shape[-1]]), history.rows)
