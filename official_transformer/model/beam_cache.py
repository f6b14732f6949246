"""Keys and values of all beams, written once and never moved.

Beams are reordered at every step. Instead of moving their keys and values
along, each position keeps what every beam wrote there, and each hypothesis
remembers which beam wrote its own past: its `writers`. Attention reads all
that a sentence's beams have written and hides what is not the hypothesis' own.
The arithmetic it adds is small beside the products with kernels, and the
memory traffic it saves is not.

Shapes: B sentences, K beam, R = B * K hypotheses, T positions there is room
for, N heads, H head size.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model.model_utils import NEGATIVE_BIAS

# Room is made for so many positions at a time, or a quarter of what there is:
# making it copies the cache, and room that is not used yet is attended to, with
# weight zero.
ROOM = 16
NOBODY = -1


class BeamCache(NamedTuple):
  """What the beams of each sentence have projected in one layer.

  Attributes:
    keys: [B, N, T, K, H].
    values: [B, N, T, K, H].
  """

  keys: tf.Tensor
  values: tf.Tensor


def empty_cache(
  batch: int | tf.Tensor,
  num_heads: int,
  length: int,
  beam_size: int,
  head_size: int,
  dtype: tf.DType,
) -> tf.Tensor:
  """Returns room for keys or values, zeros [B, N, T, K, H]."""
  return tf.zeros([batch, num_heads, length, beam_size, head_size], dtype)


def make_room(
  caches: list[BeamCache], writers: tf.Tensor, index: tf.Tensor
) -> tuple[list[BeamCache], tf.Tensor]:
  """Makes room for position `index` if there is none.

  Args:
    caches: of all layers.
    writers: int32 [R, T].
    index: int32 [], at most T.

  Returns:
    Caches and writers of at least `index + 1` positions.
  """
  length = tf.shape(writers)[1]
  room = tf.maximum(ROOM, length // 4)

  def larger() -> tuple[list[BeamCache], tf.Tensor]:
    # Each tensor gets memory of its own here, which `write_position` needs.
    return (
      tf.nest.map_structure(
        lambda t: tf.pad(t, [[0, 0], [0, 0], [0, room], [0, 0], [0, 0]]), caches
      ),
      tf.pad(writers, [[0, 0], [0, room]], constant_values=NOBODY),
    )

  return tf.cond(tf.equal(index, length), larger, lambda: (caches, writers))


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
  if cache.shape.is_fully_defined() or (
    # Not every release has the other operation for bfloat16 on a GPU.
    cache.dtype == tf.bfloat16 and tf.config.list_logical_devices("GPU")
  ):
    # XLA writes in place.
    flat = tf.tensor_scatter_nd_update(flat, rows[:, None], new)
  else:
    # The one operation that writes in place without XLA: in a loop, the other
    # copies the whole cache at every step.
    flat = tf.raw_ops.InplaceUpdate(x=flat, i=rows, v=new)
  return tf.reshape(flat, tf.shape(cache))


def mark_written(
  writers: tf.Tensor, index: tf.Tensor, beam_size: int
) -> tf.Tensor:
  """Notes that every hypothesis writes position `index` from its own beam.

  Args:
    writers: int32 [R, T].
    index: int32 [], below T.
    beam_size: K.

  Returns:
    int32 [R, T].
  """
  own = tf.range(tf.shape(writers)[0]) % beam_size
  here = tf.range(tf.shape(writers)[1]) == index
  return tf.where(here, own[:, None], writers)


def writers_bias(writers: tf.Tensor, beam_size: int) -> tf.Tensor:
  """Returns the bias that hides all but a hypothesis' own past.

  Args:
    writers: int32 [R, T]: the beam that wrote each position of a hypothesis,
      `NOBODY` if it has none yet.
    beam_size: K.

  Returns:
    float32 [B, 1, K, T * K].
  """
  own = tf.equal(writers[:, :, None], tf.range(beam_size))  # [R, T, K]
  bias = tf.where(own, 0.0, NEGATIVE_BIAS)
  room = tf.shape(writers)[1] * beam_size
  return tf.reshape(bias, [-1, 1, beam_size, room])
