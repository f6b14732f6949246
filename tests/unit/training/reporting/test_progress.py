import logging
import types

import pytest

from official_transformer.training.reporting import progress as lib
from official_transformer.training.step.training_step import StepResult


class Clock:
  """A clock that the test sets."""

  now = 0.0

  def monotonic(self):
    return self.now


@pytest.fixture
def clock(monkeypatch):
  clock = Clock()
  monkeypatch.setattr(lib.time, "monotonic", clock.monotonic)
  return clock


def logs(loss, **metrics):
  result = StepResult(loss, 0.25, 30, 20, 0.5)
  others = {"input_seconds": 0.1, "skipped_updates": 0, "streak": 0}
  return {**result._asdict(), **others, **metrics}


@pytest.fixture
def report():
  """A report over steps 11 to 20, every 2, with a model that counts resets."""
  report = lib.ProgressReport(first_step=10, last_step=20, log_steps=2)
  resets = []
  report.set_model(
    types.SimpleNamespace(reset_metrics=lambda: resets.append(1))
  )
  report.resets = resets
  return report


def test_speed_and_time_left_by_hand(report, clock, caplog):
  with caplog.at_level(logging.INFO, logger="absl"):
    report.on_train_begin()
    for step, loss in enumerate((3.0, 1.0, 5.0, 5.0)):
      clock.now += 2.0
      report.on_train_batch_end(step, logs(loss, accuracy=0.5))
      if step == 1:
        with report.paused():
          clock.now += 100.0  # An evaluation, which is no training time.
  first, second = caplog.messages
  # Two steps of 50 tokens in 4 seconds; 8 steps of 2 seconds are left.
  assert first == (
    "step 12 of 20: loss 2.0000, rate 2.50e-01, tokens/s 25, "
    "input wait 5.0%, accuracy 0.5000, 00:16 left"
  )
  assert second.startswith("step 14 of 20: loss 5.0000")
  assert "tokens/s 25" in second
  assert second.endswith("00:12 left")
  assert len(report.resets) == 2


def test_rare_reports_keep_few_results(report, clock, caplog, monkeypatch):
  monkeypatch.setattr(lib, "_MOST_PENDING", 3)
  report.log_steps = 10
  report.on_train_begin()
  with caplog.at_level(logging.INFO, logger="absl"):
    for step in range(10):
      clock.now += 2.0
      report.on_train_batch_end(step, logs(float(step)))
      assert len(report._pending) <= 3
    report.on_train_end()
  first, last = caplog.messages
  assert first.startswith("step 20 of 20: loss 4.5000, rate 2.50e-01")
  assert "tokens/s 25, input wait 5.0%" in first
  assert last.startswith("10 steps, 500 source and target tokens, 25 tokens/s")


def test_throughput_can_be_left_out(clock, caplog):
  report = lib.ProgressReport(0, 2, log_steps=2, with_throughput=False)
  report.set_model(types.SimpleNamespace(reset_metrics=lambda: None))
  with caplog.at_level(logging.INFO, logger="absl"):
    report.on_train_begin()
    for step in range(2):
      clock.now += 2.0
      report.on_train_batch_end(step, logs(3.0))
    report.on_train_end()
  (message,) = caplog.messages
  assert "tokens/s" not in message
  assert "loss 3.0000" in message


def test_the_speed_of_the_whole_run_by_hand(report, clock, caplog):
  report.on_train_begin()
  for step in range(10):
    clock.now += 2.0
    report.on_train_batch_end(step, logs(3.0))
  with caplog.at_level(logging.INFO, logger="absl"):
    report.on_train_end()
  assert caplog.messages == [
    "10 steps, 500 source and target tokens, 25 tokens/s, 5.0% of the time "
    "waiting for data"
  ]


def test_without_a_clock_no_wait_is_told(report, clock, caplog):
  report.on_train_begin()
  with caplog.at_level(logging.INFO, logger="absl"):
    for step in range(2):
      clock.now += 2.0
      report.on_train_batch_end(step, logs(3.0, input_seconds=float("nan")))
    report.on_train_end()
  assert len(caplog.messages) == 2
  assert not any("wait" in message for message in caplog.messages)


def test_a_stop_between_two_reports_loses_no_token(report, clock, caplog):
  report.on_train_begin()
  for step in range(3):
    clock.now += 2.0
    report.on_train_batch_end(step, logs(3.0))
  with caplog.at_level(logging.INFO, logger="absl"):
    report.on_train_end()
  assert caplog.messages[-1].startswith("3 steps, 150 source and target tokens")


def test_several_updates_a_call_and_several_replicas(clock, caplog):
  seen = []
  report = lib.ProgressReport(
    0, 8, 4, replicas=2, on_report=lambda *a: seen.append(a)
  )
  report.set_model(types.SimpleNamespace(reset_metrics=lambda: None))
  report.on_train_begin()
  with caplog.at_level(logging.INFO, logger="absl"):
    for steps, loss in ((1, 5.0), (3, 1.0)):
      clock.now += 2.0
      report.on_train_batch_end(
        0,
        logs(loss, steps=steps, skipped_updates=3),
      )
  (message,) = caplog.messages
  assert "loss 2.0000" in message  # One step of 5, three of 1.
  assert "tokens/s 25, a replica 12, input wait 5.0%, skipped 3" in message
  ((numbers, step),) = seen
  assert step == 4
  assert numbers == {
    "loss": 2.0,
    "learning_rate": 0.25,
    "tokens_per_second": 25.0,
    "input_wait": 0.05,
    "gradient_norm": 0.5,
    "skipped_updates": 3,
  }
