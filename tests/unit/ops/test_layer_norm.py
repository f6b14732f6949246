import numpy as np
import pytest
import tensorflow as tf

from official_transformer.ops.layer_norm import LayerNormalization


@pytest.fixture
def layer():
  layer = LayerNormalization(8, epsilon=1e-6)
  layer.build()
  rng = np.random.default_rng(0)
  layer.gamma.assign(rng.normal(size=8))
  layer.beta.assign(rng.normal(size=8))
  return layer


def by_its_definition(x, gamma, beta):
  """Differentiated by TensorFlow."""
  mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
  return (x - mean) / tf.sqrt(variance + 1e-6) * gamma + beta


def outputs_and_gradients(function, sources, x):
  weights = tf.constant(np.random.default_rng(2).normal(size=[2, 3, 8]))
  with tf.GradientTape() as tape:
    tape.watch(sources)
    y = function(x)
    loss = tf.reduce_sum(tf.cast(y, tf.float32) * tf.cast(weights, tf.float32))
  return y, *tape.gradient(loss, sources)


@pytest.mark.parametrize(
  ("dtype", "tolerance"), [(tf.float32, 1e-5), (tf.bfloat16, 0.02)]
)
def test_value_and_gradients_are_those_of_the_definition(
  layer, dtype, tolerance
):
  x = tf.constant(np.random.default_rng(1).normal(size=[2, 3, 8]), tf.float32)
  gamma, beta = layer.gamma.value, layer.beta.value
  narrow = tf.cast(x, dtype)
  actual = outputs_and_gradients(layer, [narrow, gamma, beta], narrow)
  x = tf.cast(narrow, tf.float32)
  expected = outputs_and_gradients(
    lambda x: by_its_definition(x, gamma, beta), [x, gamma, beta], x
  )
  assert [a.dtype for a in actual] == [dtype, dtype, tf.float32, tf.float32]
  for a, b in zip(actual, expected, strict=True):
    np.testing.assert_allclose(
      tf.cast(a, tf.float32), b, atol=tolerance * float(tf.norm(b))
    )
