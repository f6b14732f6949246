import pytest
import tensorflow as tf

from official_transformer.training.step import loss_scale as lib


@pytest.fixture
def scale():
  return lib.DynamicLossScale()


def test_the_scale_grows_after_many_good_steps(scale, monkeypatch):
  monkeypatch.setattr(lib, "GROWTH_STEPS", 3)
  for _ in range(3):
    scale.adapt(tf.constant(True))
  assert float(scale.scale) == 2 * lib.INITIAL_SCALE
  assert int(scale.good_steps) == 0


def test_the_scale_halves_after_an_update_that_is_not_finite(scale):
  for _ in range(2):
    scale.adapt(tf.constant(False))
  assert float(scale.scale) == lib.INITIAL_SCALE / 4
  scale.adapt(tf.constant(True))
  assert float(scale.scale) == lib.INITIAL_SCALE / 4
  assert int(scale.good_steps) == 1


def test_the_scale_never_falls_below_one(scale):
  scale.scale.assign(1.0)
  scale.adapt(tf.constant(False))
  assert float(scale.scale) == 1.0
