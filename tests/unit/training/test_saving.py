import dataclasses

import pytest
from runs import SETTINGS

from official_transformer.training import saving as lib


class Checkpoints:
  """Notes what is saved; refuses the steps in `full`."""

  def __init__(self, full=()):
    self.full = full
    self.saved = []
    self.kept = []
    self.refuses = False

  def save(self, step, seed, interim=False):
    if step in self.full:
      raise OSError("No space left on device")
    assert seed == SETTINGS.seed
    self.saved.append((step, interim))
    self.kept.append(step)

  def drop(self, step):
    self.kept.remove(step)

  def drop_superseded(self, newest):
    if self.refuses:
      raise OSError("read-only")
    self.kept = [newest]

  def save_best(self, step):
    self.saved.append((step, "best"))


def saver(full=(), is_chief=True, step=0, **settings):
  run = dataclasses.replace(SETTINGS, **settings)
  return lib.Saver(run, Checkpoints(full), is_chief, step)


def test_a_full_disk_stops_no_run_before_its_end(caplog):
  found = saver(full=(4, 10))
  for step in (4, 8):
    found.save(step, 0)
  assert "no checkpoint after step 4: No space left" in caplog.text
  assert found.checkpoints.saved == [(8, False)]
  with pytest.raises(OSError, match="No space"):
    found.save(10, 0)
  with pytest.raises(OSError, match="No space"):
    saver(full=(5,)).save(5, 0, must=True)


def test_a_model_is_saved_by_time_to_go_on_from(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(lib.time, "monotonic", lambda: now[0])
  found = saver(save_checkpoints_secs=30.0)
  now[0] += 29
  assert not found.is_interim_due()
  now[0] += 1
  assert found.is_interim_due()
  found.save(3, 0, interim=True)
  assert found.checkpoints.saved == [(3, True)]
  assert not found.is_interim_due()
  now[0] += 30
  found.start_clock()
  assert not found.is_interim_due()
  now[0] += 10**6
  assert not saver(save_checkpoints_secs=0.0).is_interim_due()
  never = saver(save_checkpoints_secs=1e-9, enable_checkpointing=False)
  now[0] += 1
  assert not never.is_interim_due()


def test_each_step_is_saved_once():
  found = saver(step=3)
  found.save(3, 0)  # It is what the run began with.
  found.save(4, 0)
  found.save(4, 0, must=True)
  found.save(4, 0, interim=True, must=True)
  assert found.checkpoints.saved == [(4, False)]


def test_no_earlier_checkpoint_is_given_up_while_updates_are_skipped():
  found = saver()
  found.save(4, 1)
  assert found.checkpoints.saved == [(4, True)]
  # It turns out to be the last.
  found.save(4, 1, must=True)
  assert found.checkpoints.saved == [(4, True), (4, False)]


@pytest.mark.parametrize(
  "nothing", [{"enable_checkpointing": False}, {"is_chief": False}]
)
def test_nothing_is_saved_if_nothing_is_to_be(nothing):
  found = saver(**nothing)
  found.save(4, 0, must=True)
  found.save_best(4)
  assert found.checkpoints.saved == []


def test_older_checkpoints_go_when_the_next_update_was_finite():
  found = saver()
  found.save(4, 0)
  found.save(8, 0)
  assert found.checkpoints.kept == [4, 8]
  found.confirm(8, 0)
  found.confirm(9, 1)
  assert found.checkpoints.kept == [4, 8]
  found.confirm(10, 0)
  assert found.checkpoints.kept == [8]


@pytest.mark.parametrize("last", [9, SETTINGS.train_steps])
@pytest.mark.parametrize("interim", [False, True])
def test_the_end_of_a_run_amid_skipped_updates_costs_no_checkpoint(
  last, interim
):
  """The newest may hold what an update too large has left."""
  found = saver()
  found.save(4, 0)
  found.save(8, 0)
  found.save(last, last - 8, interim, must=True)
  assert found.checkpoints.kept == [4, 8, last]


def test_a_run_that_ends_early_keeps_as_many_as_any():
  found = saver()
  found.save(4, 0)
  found.save(8, 0)
  found.save(8, 0, must=True)
  assert found.checkpoints.kept == [8]


def test_interim_checkpoints_of_the_same_weights_take_one_place():
  found = saver()
  found.save(2, 0)
  found.save(4, 0, interim=True)
  for step in range(5, 9):
    found.save(step, step - 4, interim=True)
  assert found.checkpoints.kept == [2, 8]


def test_a_checkpoint_that_cannot_be_removed_ends_no_run(caplog):
  found = saver()
  found.checkpoints.refuses = True
  found.save(4, 0)
  found.confirm(5, 0)
  found.confirm(6, 0)
  assert caplog.text.count("an old checkpoint cannot be removed") == 1
