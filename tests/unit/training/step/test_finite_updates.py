import pytest
import tensorflow as tf

from official_transformer.training.step import finite_updates as lib


@pytest.mark.parametrize("traced", [False, True])
def test_what_is_not_finite_is_skipped_and_counted(traced):
  updates = lib.FiniteUpdates()
  applied = tf.Variable(0)

  def step(finite):
    updates.make(finite, lambda: applied.assign_add(1))

  if traced:
    step = tf.function(step, autograph=False)
  seen = []
  for finite in (True, False, False, True, False):
    step(tf.constant(finite))
    seen.append((int(updates.skipped), int(updates.streak)))
  assert seen == [(0, 0), (1, 1), (2, 2), (2, 0), (3, 1)]
  assert int(applied) == 2
  updates.reset()
  assert (int(updates.skipped), int(updates.streak)) == (0, 0)
