import numpy as np
import pytest
import tensorflow as tf

from official_transformer.ops.dropout import Dropout, dropout_seed


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
  layer = Dropout(0.1, name="a")
  layer.build(None)

  def draw(seed):
    with dropout_seed(tf.stack([seed, 6])):
      return layer(tf.ones([7, 9]), training=True)

  compiled = tf.function(draw, jit_compile=True, autograph=False)
  for seed in range(20):
    seed = tf.constant(seed)
    np.testing.assert_array_equal(compiled(seed), draw(seed))


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.3, 0.997, 0.999])
def test_a_rate_between_two_levels_is_met_on_average(rate):
  layer = Dropout(rate, name="a")
  layer.build(None)
  x = tf.ones([10_001])  # No multiple of 4: four elements share a word.
  dropped = []
  for seed in range(400):
    with dropout_seed(tf.constant([seed, 2])):
      dropped.append((layer(x, training=True).numpy() == 0).mean())
  # At each call one of the two levels, give or take five deviations.
  low, high = np.floor(rate * 256 + np.array([0, 1])) / 256
  deviations = 5 * np.sqrt(high / x.shape[0])
  assert low - deviations < min(dropped) < max(dropped) < high + deviations
  assert abs(np.mean(dropped) - rate) < 4 * np.std(dropped) / 20
