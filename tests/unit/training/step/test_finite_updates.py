import types

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


def run(guard, streaks, steps=1):
  guard.set_model(types.SimpleNamespace(stop_training=False))
  made = 0
  for number, streak in enumerate(streaks):
    if guard.model.stop_training:
      break
    made += 1
    logs = {"streak": streak, "loss": number, "learning_rate": 0.5}
    guard.on_train_batch_end(number, {**logs, "steps": steps})
  guard.on_train_end()
  return made


def test_too_many_in_a_row_stop_the_run():
  guard = lib.FiniteUpdatesGuard(2, first_step=10)
  # The third is seen with the next: nothing waits for a device.
  assert run(guard, [0, 1, 2, 3, 4, 5]) == 5
  assert guard.divergence == lib.Divergence(12, 14, 3.0, 0.5)


def test_others_between_them_do_not():
  guard = lib.FiniteUpdatesGuard(2, first_step=10)
  assert run(guard, [0, 1, 2, 0, 1, 2]) == 6
  assert guard.divergence is None


def test_the_very_last_is_seen_too():
  guard = lib.FiniteUpdatesGuard(0, first_step=0)
  run(guard, [0, 0, 1])
  assert guard.divergence == lib.Divergence(3, 3, 2.0, 0.5)


def test_several_updates_a_call_are_told_apart():
  guard = lib.FiniteUpdatesGuard(2, first_step=0)
  run(guard, [0, 3], steps=5)
  assert guard.divergence == lib.Divergence(8, 10, 1.0, 0.5)
