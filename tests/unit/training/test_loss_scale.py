import numpy as np
import pytest
import tensorflow as tf

from official_transformer.training import loss_scale as lib


@pytest.fixture
def scale():
  return lib.DynamicLossScale()


@pytest.mark.parametrize("traced", [False, True])
def test_an_update_that_is_not_finite_is_skipped(scale, traced):
  applied = tf.Variable(0)

  def step(gradient):
    finite = lib.update_if_finite(
      [tf.ones([2]), gradient], lambda: applied.assign_add(1)
    )
    scale.adapt(finite)
    return finite

  if traced:
    step = tf.function(step, autograph=False)
  assert not step(tf.constant([1.0, np.inf]))
  assert not step(tf.constant([np.nan, 1.0]))
  assert int(applied) == 0
  assert float(scale.scale) == lib.INITIAL_SCALE / 4
  assert step(tf.constant([1.0, 2.0]))
  assert int(applied) == 1
  assert float(scale.scale) == lib.INITIAL_SCALE / 4
  assert int(scale.good_steps) == 1
  assert int(scale.skipped_steps) == 2


def test_the_scale_grows_after_many_good_steps(scale, monkeypatch):
  monkeypatch.setattr(lib, "GROWTH_STEPS", 3)
  for _ in range(3):
    scale.adapt(tf.constant(True))
  assert float(scale.scale) == 2 * lib.INITIAL_SCALE
  assert int(scale.good_steps) == 0


def test_the_scale_never_falls_below_one(scale):
  scale.scale.assign(1.0)
  scale.adapt(tf.constant(False))
  assert float(scale.scale) == 1.0
