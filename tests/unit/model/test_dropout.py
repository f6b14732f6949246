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


def test_relu_and_dropout_at_once():
  layer = named("a")
  x = tf.constant(np.random.default_rng(0).normal(size=[40, 50]), tf.float32)
  with dropout_seed(tf.constant([1, 2])), tf.GradientTape() as tape:
    tape.watch(x)
    y = layer.after_relu(x, training=True)
    loss = tf.reduce_sum(y * 3.0)
  gradient = tape.gradient(loss, x).numpy()
  with dropout_seed(tf.constant([1, 2])):
    kept = layer(tf.ones([40, 50]), training=True).numpy() > 0
  expected = np.where(kept & (x.numpy() > 0), 1.0, 0.0)
  np.testing.assert_array_equal(y, expected * x)
  np.testing.assert_array_equal(gradient, expected * 3.0)
  assert layer.scale == 4 / 3
  np.testing.assert_array_equal(layer.after_relu(x), tf.nn.relu(x))


def test_compiled_masks_are_the_same():
  layer = named("a")

  def draw():
    with dropout_seed(tf.constant([5, 6])):
      return layer(tf.ones([7, 9]), training=True)

  compiled = tf.function(draw, jit_compile=True, autograph=False)
  np.testing.assert_array_equal(compiled(), draw())


def test_a_rate_is_met_to_the_nearest_level():
  layer = Dropout(0.1, name="a")
  layer.build(None)
  x = tf.ones([1_000_001])  # An odd number: two elements share a word.
  with dropout_seed(tf.constant([1, 2])):
    y = layer(x, training=True).numpy()
  assert abs((y == 0).mean() - 6554 / 65536) < 0.001
  assert abs(y.mean() - 1) < 0.001
