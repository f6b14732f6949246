import math

import numpy as np
import tensorflow as tf

from official_transformer.model import model_utils


def test_positions_follow_the_formula_by_hand():
  # hidden 4: timescales 1 and 10000; sines first, then cosines.
  expected = [
    [0.0, 0.0, 1.0, 1.0],
    [math.sin(1), math.sin(1e-4), math.cos(1), math.cos(1e-4)],
    [math.sin(2), math.sin(2e-4), math.cos(2), math.cos(2e-4)],
  ]
  actual = model_utils.get_position_encoding(3, 4)
  np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


def test_positions_of_a_wide_model():
  actual = model_utils.get_position_encoding(50, 512).numpy()
  for position, channel in ((0, 0), (7, 3), (49, 255)):
    angle = position / 10000 ** (channel / 255)
    assert math.isclose(
      actual[position, channel], math.sin(angle), abs_tol=1e-5
    )
    assert math.isclose(
      actual[position, channel + 256], math.cos(angle), abs_tol=1e-5
    )


def test_causal_bias():
  bias = model_utils.get_decoder_self_attention_bias(3)
  n = model_utils.NEGATIVE_BIAS
  np.testing.assert_array_equal(bias, [[[[0, n, n], [0, 0, n], [0, 0, 0]]]])


def test_padding_bias():
  bias = model_utils.get_padding_bias(tf.constant([[5, 0], [1, 3]]))
  n = np.float32(model_utils.NEGATIVE_BIAS)
  np.testing.assert_array_equal(bias, [[[[0, n]]], [[[0, 0]]]])


def test_other_paddings_and_types():
  x = tf.constant([[1, 0], [2, 1]])
  padding = model_utils.get_padding(x, padding_value=1)
  np.testing.assert_array_equal(padding, [[1, 0], [0, 1]])
  assert padding.dtype == tf.float32
  bias = model_utils.get_padding_bias(x, 1, tf.float16)
  np.testing.assert_array_equal(
    bias[:, 0, 0], np.array([[-65504, 0], [0, -65504]], np.float16)
  )
  causal = model_utils.get_decoder_self_attention_bias(2, tf.float16)
  np.testing.assert_array_equal(causal[0, 0], [[0, -65504], [0, 0]])
