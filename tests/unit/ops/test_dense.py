import numpy as np
import pytest
import tensorflow as tf

from official_transformer.ops import dense as lib


def normal(*shape, seed=0):
  rng = np.random.default_rng(seed)
  return rng.normal(size=shape).astype("float32")


def test_dense_is_a_product_over_the_last_axis():
  x, kernel, bias = normal(2, 3, 4), normal(4, 5), normal(5)
  np.testing.assert_allclose(
    lib.dense(tf.constant(x), [kernel], bias), x @ kernel + bias, rtol=1e-5
  )


@pytest.mark.parametrize(
  ("dtype", "tolerance"),
  [(tf.float32, 1e-6), (tf.bfloat16, 0.02), (tf.float16, 0.003)],
)
@pytest.mark.parametrize("emulated", [False, True])
def test_several_kernels_are_one_product(
  dtype, tolerance, emulated, monkeypatch
):
  monkeypatch.setattr(lib, "is_fast_dtype", lambda _: not emulated)
  x = tf.constant(normal(2, 3, 16))
  kernels = [tf.constant(normal(16, n, seed=n)) for n in (4, 8)]

  def outputs_and_gradients(function, x):
    with tf.GradientTape() as tape:
      tape.watch([x, *kernels])
      y = function(x)
      loss = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
    return y, *tape.gradient(loss, [x, *kernels])

  actual = outputs_and_gradients(
    lambda x: lib.dense(x, kernels), tf.cast(x, dtype)
  )
  expected = outputs_and_gradients(
    lambda x: tf.concat([tf.tensordot(x, k, 1) for k in kernels], -1), x
  )
  assert [a.dtype for a in actual] == [dtype, dtype, tf.float32, tf.float32]
  for a, b in zip(actual, expected, strict=True):
    a, b = tf.cast(a, tf.float32).numpy(), b.numpy()
    assert np.linalg.norm(a - b) <= 5 * tolerance * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize(
  ("spare", "transposed"), [(0, False), (3, False), (0, True)]
)
def test_a_layout_changes_no_product(dtype, spare, transposed, monkeypatch):
  monkeypatch.setattr(lib, "padding_columns_for", lambda _: spare)
  monkeypatch.setattr(lib, "transposed_is_faster", lambda _: transposed)
  x, bias = tf.cast(normal(3, 4), dtype), normal(7)
  kernels = [normal(4, 2), normal(4, 5, seed=1)]
  joined = lib.prepare_kernel(kernels, dtype, tf.constant(bias))
  table = lib.prepare_table(tf.constant(normal(5, 4)), dtype)
  assert (joined.size, table.size) == (7, 5)
  assert joined.kernel.shape == ((7, 4) if transposed else (4, 7 + spare))
  tolerance = 1e-5 if dtype == tf.float32 else 0.05
  whole = normal(3, 4) @ np.concatenate(kernels, 1) + bias
  for y, expected in (
    (joined(x), whole),
    (joined(x, tf.nn.relu), np.maximum(whole, 0)),
    (table(x), normal(3, 4) @ normal(5, 4).T),
  ):
    assert y.dtype == dtype
    np.testing.assert_allclose(
      tf.cast(y, tf.float32), expected, atol=tolerance, rtol=tolerance
    )


def test_bfloat16_is_not_emulated(monkeypatch):
  monkeypatch.setattr(lib, "is_fast_dtype", lambda _: False)
  assert lib.product_dtype(tf.bfloat16) == tf.float32
  assert lib.product_dtype(tf.float16) == tf.float16
  monkeypatch.setattr(lib, "is_fast_dtype", lambda _: True)
  assert lib.product_dtype(tf.bfloat16) == tf.bfloat16
