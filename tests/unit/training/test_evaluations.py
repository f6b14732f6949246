import contextlib
import dataclasses
import signal

import pytest
from runs import SETTINGS

from official_transformer.errors import Interrupted
from official_transformer.model_directory.measurements import (
  BLEU,
  OFFICIAL_BLEU,
  VALIDATION_LOSS,
  Measurements,
)
from official_transformer.training import evaluations as lib
from official_transformer.training.settings import EarlyStopping


class Saver:
  """Notes what is kept as the best."""

  enabled = True

  def __init__(self, **settings):
    self.settings = dataclasses.replace(SETTINGS, **settings)
    self.best = []

  def save_best(self, step):
    self.best.append(step)

  def best_step(self):
    return self.best[-1] if self.best else None


class Calm:
  """Knows of no signal."""

  @contextlib.contextmanager
  def breaks_off(self):
    yield


class Broken:
  """A signal comes during the evaluation."""

  @contextlib.contextmanager
  def breaks_off(self):
    raise Interrupted(signal.SIGTERM)
    yield


def evaluations(path, values, interruption=None, **settings):
  """Measures what a test says, by step."""
  return lib.Evaluations(
    values.__getitem__,
    Measurements(str(path / "measurements.jsonl")),
    Saver(**settings),
    interruption or Calm(),
  )


def by_bleu(scores):
  return {step: {BLEU: score} for step, score in scores.items()}


def test_what_fails_costs_nothing_else(caplog):
  def fail():
    raise OSError("No space left on device")

  found = lib.measure(4, lambda: {"loss": 1.5}, fail, None)
  assert found == {"validation/loss": 1.5}
  assert "the evaluation after step 4 failed (OSError: No space" in caplog.text
  scores = lib.Evaluation({"sacrebleu_BLEU": 8.0})
  assert lib.measure(8, fail, lambda: scores, None) == {BLEU: 8.0}
  assert "the validation after step 8 failed" in caplog.text
  assert lib.measure(8, None, None, None) == {}


def test_the_best_is_kept_apart(tmp_path):
  found = evaluations(tmp_path, by_bleu({4: 20.0, 8: 30.0, 12: 25.0}))
  for step in (4, 8, 12):
    assert not found.has_measured(step)
    found.run(step)
    assert found.has_measured(step)
  assert found.saver.best == [4, 8]


def test_the_best_has_no_rival_on_other_data(tmp_path):
  """Nor is the best one, measured again, its own."""
  found = evaluations(tmp_path, by_bleu({4: 40.0, 8: 30.0, 12: 35.0}))
  found.run(4)
  found.measurements.measured_on["evaluation"] = "one"
  found.run(4)
  assert found.saver.best == [4, 4]
  found.measurements.measured_on = {"evaluation": "two"}
  assert found.reason_to_stop(4) is None
  for step in (8, 12):
    found.run(step)
  # Back on the first, the weights that were best on it are gone.
  found.measurements.measured_on = {"evaluation": "one"}
  found.measure = {16: {BLEU: 20.0}}.__getitem__
  found.run(16)
  assert found.saver.best == [4, 4, 8, 12, 16]


def test_what_was_measured_on_other_data_ends_no_run(tmp_path):
  rule = EarlyStopping(BLEU, 1)
  scores = {4: {OFFICIAL_BLEU: 41.0, BLEU: 42.0}}
  found = evaluations(
    tmp_path, scores, early_stopping=rule, stop_threshold=40.0
  )
  found.measurements.measured_on = {"evaluation": "one"}
  found.run(4)
  assert found.has_measured(4)
  assert "has reached --stop_threshold" in found.reason_to_stop(4)
  found.measurements.measured_on = {"evaluation": "two"}
  assert not found.has_measured(4)
  assert found.reason_to_stop(4) is None


def test_without_saving_no_best_is_kept(tmp_path):
  found = evaluations(tmp_path, by_bleu({4: 20.0}))
  found.saver.enabled = False
  found.run(4)
  assert found.saver.best == []


def test_what_is_broken_off_is_not_recorded(tmp_path, caplog):
  found = evaluations(tmp_path, by_bleu({4: 20.0}), Broken())
  found.run(4)
  assert not found.has_measured(4)
  assert "is interrupted" in caplog.text


def test_it_is_recorded_last(tmp_path):
  """Until then, the evaluation is made again."""
  found = evaluations(tmp_path, by_bleu({4: 20.0}))

  def full(step):
    raise OSError("No space left on device")

  found.saver.save_best = full
  found.run(4)
  assert not found.has_measured(4)


@pytest.mark.parametrize(
  ("threshold", "stops"), [(None, []), (20.0, [8, 12]), (30.1, [])]
)
def test_a_score_can_end_the_run(tmp_path, threshold, stops):
  scores = {4: 10.0, 8: 20.0, 12: 30.0}
  values = {
    n: {OFFICIAL_BLEU: score, BLEU: 50.0} for n, score in scores.items()
  }
  found = evaluations(tmp_path, values, stop_threshold=threshold)
  assert found.reason_to_stop(4) is None  # Nothing has been measured.
  for step in scores:
    found.run(step)
  assert [n for n in scores if found.reason_to_stop(n)] == stops


def test_no_better_score_for_long_ends_the_run(tmp_path):
  scores = {4: 10.0, 8: 30.0, 12: 20.0, 16: 30.0, 20: 29.0, 24: 40.0}
  rule = EarlyStopping(BLEU, 3)
  found = evaluations(tmp_path, by_bleu(scores), early_stopping=rule)
  stops = []
  for step in scores:
    found.run(step)
    if reason := found.reason_to_stop(step):
      stops.append((step, reason))
  # The best is the first of two.
  ((step, reason),) = stops
  assert step == 20
  assert f"no better {BLEU} than 30.0000, of step 8, in 3 evaluations" in reason


def test_another_measure_ends_no_run(tmp_path):
  rule = EarlyStopping(VALIDATION_LOSS, 1)
  scores = {4: 10.0, 8: 9.0}
  found = evaluations(tmp_path, by_bleu(scores), early_stopping=rule)
  for step in scores:
    found.run(step)
  assert found.reason_to_stop(8) is None
