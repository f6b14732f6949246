import contextlib
import dataclasses
import signal
import types

import pytest
from runs import SETTINGS

from official_transformer.training.interruption import Interruption
from official_transformer.training.run_control import RunControl


class Saver:
  """Notes what is to be saved."""

  def __init__(self, events, due=False, **settings):
    self.settings = dataclasses.replace(SETTINGS, **settings)
    self.events = events
    self.due = due

  def start_clock(self):
    self.events.append("clock")

  def is_interim_due(self):
    return self.due

  def save(self, step, streak, interim=False, must=False):
    kind = "interim" if interim else "kept"
    self.events.append((kind + " at last" * must, step, streak))

  def confirm(self, step, streak):
    pass


class Evaluations:
  """Notes what is evaluated; ends the run after the steps in `last`."""

  def __init__(self, events, last=(), measured=()):
    self.events = events
    self.last = last
    self.measured = measured

  def has_measured(self, step):
    return step in self.measured

  def run(self, step):
    self.events.append(("evaluated", step))

  def reason_to_stop(self, step):
    return "enough" if step in self.last else None


class Processes:
  """One process, or one of several."""

  cluster = None  # Of which signals would be learnt.

  def __init__(self, is_chief=True, chief_says=None):
    self.is_chief = is_chief
    self.chief_says = chief_says

  def broadcast(self, value):
    return value if self.chief_says is None else self.chief_says


class Progress:
  """Knows how far a run is."""

  def __init__(self, step):
    self.step = step

  @contextlib.contextmanager
  def paused(self):
    yield


@pytest.fixture
def events():
  return []


def control(events, step=0, processes=None, last=(), measured=(), **saver):
  found = RunControl(
    Saver(events, **saver),
    Evaluations(events, last, measured),
    processes or Processes(),
    Interruption(),
    Progress(step),
  )
  found.set_model(types.SimpleNamespace(stop_training=False))
  found.on_train_begin()
  return found


def run(found, updates, streak=0):
  """Makes updates as a trainer does; returns how many there were."""
  for number in range(updates):
    if found.model.stop_training:
      return number
    found.on_train_batch_end(number, {"streak": streak})
  return updates


def test_what_follows_an_update(events):
  found = control(events, save_checkpoints_steps=3)
  assert run(found, 10) == 10
  assert events == [
    "clock",
    ("kept", 3, 0),
    *[("kept", 4, 0), ("evaluated", 4)],
    ("kept", 6, 0),
    *[("kept", 8, 0), ("evaluated", 8)],
    ("kept", 9, 0),
    *[("kept", 10, 0), ("evaluated", 10)],
  ]


def test_by_time_a_checkpoint_is_saved_to_go_on_from(events):
  run(control(events, due=True), 4)
  assert events[1:] == [
    *[("interim", n, 0) for n in (1, 2, 3)],
    *[("kept", 4, 0), ("evaluated", 4)],
  ]


def test_several_updates_a_call_are_counted(events):
  found = control(events, step=2)
  found.on_train_batch_end(0, {"streak": 1, "steps": 2})
  assert events[1:] == [("kept", 4, 1), ("evaluated", 4)]


def test_a_signal_ends_the_run_after_its_step(events):
  found = control(events)
  assert found.interruption.nothing_to_lose
  run(found, 2)
  assert not found.interruption.nothing_to_lose
  found.interruption.signal = signal.SIGTERM
  assert run(found, 9) == 1
  assert (found.step, found.stopped_by) == (3, signal.SIGTERM)
  found.save_last(interim=True)
  assert events[-1] == ("interim at last", 3, 0)


def test_a_reason_ends_the_run_if_any_is_asked_for(events):
  assert run(control(events, last=(4,), stop_threshold=1.0), 9) == 4
  assert run(control(events, last=(4,)), 9) == 9
  # Out of reach, it ends nothing.
  assert run(control(events, stop_threshold=99.0), 9) == 9


def test_a_worker_does_as_the_chief_says(events):
  worker = Processes(is_chief=False, chief_says=1)
  found = control(events, processes=worker, stop_threshold=1.0)
  assert run(found, 9) == 4
  # What it saves is the saver's affair; it evaluates nothing.
  assert not [event for event in events if event[0] == "evaluated"]


@pytest.mark.parametrize(
  ("step", "measured", "made"),
  [(0, (), []), (3, (), []), (4, (), [("evaluated", 4)]), (4, (4,), [])],
)
def test_an_evaluation_that_is_missing_is_made(events, step, measured, made):
  found = control(events, step=step, measured=measured)
  assert not found.catch_up()
  assert events[1:] == made


def test_measurements_of_before_may_end_the_run_at_once(events):
  found = control(events, step=8, measured=(8,), last=(8,), stop_threshold=1.0)
  assert found.catch_up()
