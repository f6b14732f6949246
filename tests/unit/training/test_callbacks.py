import logging
import types

import pytest

from official_transformer.training import callbacks as lib
from official_transformer.training.training_step import StepResult


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
  return {**StepResult(loss, 0.25, 30, 20)._asdict(), **metrics}


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
        clock.now += 100.0  # An evaluation, which is no training time.
        report.pause(100.0)
  first, second = caplog.messages
  # Two steps of 50 tokens in 4 seconds; 8 steps of 2 seconds are left.
  assert first == (
    "step 12 of 20: loss 2.0000, rate 2.50e-01, tokens/s 25, "
    "accuracy 0.5000, 00:16 left"
  )
  assert second.startswith("step 14 of 20: loss 5.0000")
  assert "tokens/s 25" in second
  assert second.endswith("00:12 left")
  assert len(report.resets) == 2


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
    "10 steps, 500 source and target tokens, 25 tokens/s"
  ]


def test_a_stop_between_two_reports_loses_no_token(report, clock, caplog):
  report.on_train_begin()
  for step in range(3):
    clock.now += 2.0
    report.on_train_batch_end(step, logs(3.0))
  with caplog.at_level(logging.INFO, logger="absl"):
    report.on_train_end()
  assert caplog.messages[-1].startswith("3 steps, 150 source and target tokens")


def test_milestones_come_at_multiples_and_at_the_end(report, clock):
  report.on_train_begin()
  seen = []
  milestones = lib.Milestones(
    seen.append, lambda step: step % 4 == 0 or step == 19, 10, report
  )
  for step in range(9):
    milestones.on_train_batch_end(step, {})
  assert seen == [12, 16, 19]
