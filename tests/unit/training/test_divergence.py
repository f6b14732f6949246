import types

import pytest

from official_transformer.errors import RunError
from official_transformer.training import divergence as lib


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
  guard = lib.DivergenceGuard(2, first_step=10)
  # The third is seen with the next: nothing waits for a device.
  assert run(guard, [0, 1, 2, 3, 4, 5]) == 5
  assert guard.divergence == lib.Divergence(12, 14, 3.0, 0.5)


def test_others_between_them_do_not():
  guard = lib.DivergenceGuard(2, first_step=10)
  assert run(guard, [0, 1, 2, 0, 1, 2]) == 6
  assert guard.divergence is None


def test_the_very_last_is_seen_too():
  guard = lib.DivergenceGuard(0, first_step=0)
  run(guard, [0, 0, 1])
  assert guard.divergence == lib.Divergence(3, 3, 2.0, 0.5)


def test_several_updates_a_call_are_told_apart():
  guard = lib.DivergenceGuard(2, first_step=0)
  run(guard, [0, 3], steps=5)
  assert guard.divergence == lib.Divergence(8, 10, 1.0, 0.5)


def test_what_ends_the_run_is_said_with_all_numbers():
  error = lib.Divergence(12, 14, 3.0, 0.5).error(batches_per_update=2)
  assert isinstance(error, RunError)
  assert str(error).startswith("steps 12 to 14: ")
  assert "(loss 3, learning rate 0.5, batches 22 to 27 of the run" in str(error)


@pytest.mark.parametrize("steps", [1, 3])
def test_the_guard_counts_steps_from_the_first(steps):
  guard = lib.DivergenceGuard(0, first_step=100)
  run(guard, [0, 1], steps=steps)
  assert guard.divergence.last == 100 + 2 * steps
