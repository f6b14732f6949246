import numpy as np
import tensorflow as tf

from official_transformer.model.dropout import Dropout, dropout_seed


def mask(layer, seed):
  with dropout_seed(tf.constant(seed)):
    return layer(tf.ones([4000]), training=True).numpy()


def named(name):
  layer = Dropout(0.25, name=name)
  layer.build(None)
  return layer


def test_the_seed_decides_the_mask():
  layer = named("a")
  np.testing.assert_array_equal(mask(layer, [1, 2]), mask(layer, [1, 2]))
  assert (mask(layer, [1, 2]) != mask(layer, [1, 3])).any()


def test_equal_names_draw_equal_masks_and_others_do_not():
  np.testing.assert_array_equal(
    mask(named("a"), [1, 2]), mask(named("a"), [1, 2])
  )
  assert (mask(named("a"), [1, 2]) != mask(named("b"), [1, 2])).any()


def test_a_quarter_is_dropped_and_the_rest_scaled():
  values = mask(named("a"), [3, 4])
  assert set(np.unique(values).round(5)) == {0.0, np.float32(4 / 3).round(5)}
  assert abs((values == 0).mean() - 0.25) < 0.03


def test_without_a_seed_masks_are_drawn_anew():
  layer = named("a")
  x = tf.ones([1000])
  first, second = layer(x, training=True), layer(x, training=True)
  assert (first.numpy() != second.numpy()).any()


def test_nothing_happens_when_not_training():
  x = tf.ones([10])
  np.testing.assert_array_equal(named("a")(x), x)
  np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)
