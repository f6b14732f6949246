import pytest

from official_transformer.training.reporting import profiler as lib


@pytest.mark.parametrize(
  ("first", "last", "end", "started", "stopped"),
  [(1, 2, 5, 0, 2), (3, 4, 5, 2, 4), (4, 9, 5, 3, 5), (7, 9, 5, None, None)],
)
def test_the_profiler_records_the_steps_asked_for(
  first, last, end, started, stopped, monkeypatch
):
  events = {}
  profiler = lib.Profiler("logs", (first, last), 0)
  experimental = lib.tf.profiler.experimental
  monkeypatch.setattr(
    experimental,
    "start",
    lambda directory: events.update(start=profiler.step),
  )
  monkeypatch.setattr(
    experimental, "stop", lambda: events.update(stop=profiler.step)
  )
  profiler.on_train_begin()
  for _ in range(end):
    profiler.on_train_batch_end(0, {})
  profiler.on_train_end()
  assert (events.get("start"), events.get("stop")) == (started, stopped)


def test_a_failure_does_not_end_the_run(monkeypatch, caplog):
  def fail(*arguments):
    raise lib.tf.errors.PermissionDeniedError(None, None, "read-only")

  for name in ("start", "stop"):
    monkeypatch.setattr(lib.tf.profiler.experimental, name, fail)
  profiler = lib.Profiler("logs", (1, 2), 0)
  profiler.on_train_begin()
  for _ in range(3):
    profiler.on_train_batch_end(0, {})
  assert len(caplog.messages) == 2
  assert all("read-only); the run goes on" in m for m in caplog.messages)


def test_a_resumed_run_tells_what_it_records(monkeypatch, caplog):
  for name in ("start", "stop"):
    monkeypatch.setattr(lib.tf.profiler.experimental, name, lambda *_: None)
  profiler = lib.Profiler("logs", (3, 6), 4)
  with caplog.at_level("INFO", "absl"):
    profiler.on_train_begin()
    for _ in range(2):
      profiler.on_train_batch_end(0, {})
  assert caplog.messages == ["the profile of steps 5 to 6 is in logs"]


@pytest.mark.parametrize(
  ("steps", "first_step", "warned"),
  [((3, 4), 0, False), ((9, 10), 0, True), ((3, 4), 4, True)],
)
def test_a_profile_of_no_step_is_warned_about(
  steps, first_step, warned, caplog
):
  lib.Profiler("logs", steps, first_step).checked(train_steps=8)
  assert ("no step of this run" in caplog.text) == warned
