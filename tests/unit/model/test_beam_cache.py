import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model import beam_cache as lib


@pytest.mark.parametrize("static", [True, False])
def test_a_position_is_written_and_nothing_else(static):
  old = np.random.default_rng(1).normal(size=[2, 3, 5, 4, 6])
  new = np.random.default_rng(2).normal(size=[2, 3, 4, 6])
  shape = old.shape if static else [None, 3, None, 4, 6]
  write = tf.function(
    # Added to, so that the memory written to is not the caller's.
    lambda cache: lib.write_position(
      cache + 1, tf.constant(2), tf.constant(new)
    ),
    input_signature=[tf.TensorSpec(shape, tf.float64)],
  )
  expected = old + 1
  expected[:, :, 2] = new
  np.testing.assert_array_equal(write(old), expected)


def test_bias_shows_what_a_hypothesis_has_written_itself():
  # Two sentences of two beams; three positions, the last unwritten.
  origin_beams = tf.constant([[0, 1, -1], [1, 1, -1], [0, 0, -1], [0, 1, -1]])
  bias = lib.history_bias(origin_beams, 2).numpy()
  assert bias.shape == (2, 1, 2, 6)
  visible = (bias == 0).astype(int)
  assert visible[0, 0].tolist() == [[1, 0, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0]]
  assert visible[1, 0].tolist() == [[1, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0]]
  assert set(np.unique(bias)) == {0.0, np.float32(-1e9)}


def test_every_hypothesis_signs_with_its_own_beam():
  origin_beams = tf.fill([4, 3], lib.NO_BEAM)
  signed = lib.record_origins(origin_beams, tf.constant(1), 2).numpy()
  assert signed.tolist() == [[-1, 0, -1], [-1, 1, -1]] * 2


def test_room_is_made_when_there_is_none():
  room = lib.empty_cache(2, 3, 0, 4, 6, tf.float32)
  caches = [lib.BeamCache(room, room)]
  origin_beams = tf.fill([8, 0], lib.NO_BEAM)
  caches, origin_beams = lib.ensure_capacity(
    caches, origin_beams, tf.constant(0)
  )
  assert caches[0].keys.shape == (2, 3, lib.CAPACITY_STEP, 4, 6)
  assert origin_beams.shape == (8, lib.CAPACITY_STEP)
  assert (origin_beams.numpy() == lib.NO_BEAM).all()
  same, _ = lib.ensure_capacity(
    caches, origin_beams, tf.constant(lib.CAPACITY_STEP - 1)
  )
  assert same[0].keys.shape[2] == lib.CAPACITY_STEP
  more, _ = lib.ensure_capacity(
    caches, origin_beams, tf.constant(lib.CAPACITY_STEP)
  )
  assert more[0].keys.shape[2] == 2 * lib.CAPACITY_STEP


def test_many_beams_each_copy_their_own_past(monkeypatch):
  cache = np.random.default_rng(1).normal(size=[2, 3, 4, 5, 6])
  origin_beams = (
    np.random.default_rng(2).integers(0, 5, [10, 4]).astype(np.int32)
  )
  origin_beams[:, 3] = lib.NO_BEAM
  monkeypatch.setattr(lib, "MAX_SHARED_BEAMS", 4)
  past = lib.history_of(tf.constant(origin_beams), 5, 3)
  read = lib.read_history(tf.constant(cache), past).numpy()
  assert read.shape == (10, 3, 4, 6)
  for hypothesis in range(10):
    for position in range(3):
      np.testing.assert_array_equal(
        read[hypothesis, :, position],
        cache[hypothesis // 5, :, position, origin_beams[hypothesis, position]],
      )
  assert (
    past.bias.numpy()[:, 0, 0].tolist() == [[0, 0, 0, np.float32(-1e9)]] * 10
  )


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float16])
def test_dynamic_caches_are_written_in_place_in_any_precision(dtype):
  shape = [None, 3, None, 4, 6]
  write = tf.function(
    lambda cache, new: lib.write_position(cache, tf.constant(1), new),
    input_signature=[
      tf.TensorSpec(shape, dtype),
      tf.TensorSpec([None, 3, 4, 6], dtype),
    ],
  )
  operations = {
    n.op for n in write.get_concrete_function().graph.as_graph_def().node
  }
  assert "InplaceUpdate" in operations
  assert "TensorScatterUpdate" not in operations
