import dataclasses
import logging

import pytest

from official_transformer.evaluation.metrics import References
from official_transformer.evaluation.scores import IN_TRAINING, score
from official_transformer.model_directory import measurements as lib

LOSS, BLEU = lib.VALIDATION_LOSS, lib.BLEU


@pytest.fixture
def path(tmp_path):
  return str(tmp_path / "measurements.jsonl")


def test_they_are_kept_in_the_order_of_steps(path):
  kept = lib.Measurements(path)
  kept.record(20, {LOSS: 2.0})
  kept.record(10, {LOSS: 3.0, BLEU: 1.0})
  kept.record(20, {LOSS: 2.5})
  with open(path, encoding="utf-8") as stream:
    assert stream.read() == (
      '{"step": 10, "validation/loss": 3.0, "evaluation/sacrebleu_BLEU": 1.0}\n'
      '{"step": 20, "validation/loss": 2.5}\n'
    )
  again = lib.Measurements(path)
  assert 10 in again and 15 not in again
  assert again[20] == {LOSS: 2.5}


@pytest.mark.parametrize(
  "content", ["{", "[1]", '{"loss": 1}', '{"step": "x"}']
)
def test_a_damaged_file_costs_no_run(path, content, caplog):
  with open(path, "w", encoding="utf-8") as stream:
    stream.write('{"step": 10}\n' + content)
  with caplog.at_level(logging.ERROR, logger="absl"):
    kept = lib.Measurements(path)
  assert "damaged" in caplog.text
  assert 10 not in kept


def test_values_improve_by_loss_until_there_is_bleu(path):
  kept = lib.Measurements(path)
  assert kept.improved_by({}, None) is None
  assert kept.improved_by({LOSS: 3.0}, None) == LOSS
  kept.record(10, {LOSS: 3.0})
  assert kept.improved_by({LOSS: 3.0}, 10) is None
  assert kept.improved_by({LOSS: 2.0}, 10) == LOSS
  assert kept.improved_by({LOSS: 4.0, BLEU: 1.0}, 10) == BLEU
  kept.record(20, {LOSS: 4.0, BLEU: 1.0})
  assert kept.improved_by({LOSS: 1.0, BLEU: 0.5}, 20) is None
  assert kept.improved_by({LOSS: 1.0}, 20) is None  # The evaluation has failed.
  assert kept.improved_by({LOSS: 5.0, BLEU: 1.5}, 20) == BLEU
  # Of a rival that is not known, anything is an improvement.
  assert kept.improved_by({LOSS: 9.0}, 30) == LOSS


def test_scores_on_other_data_are_not_compared(path):
  early = lib.Measurements(path, {"evaluation": "one", "validation": "dev"})
  early.record(10, {LOSS: 3.0, BLEU: 40.0})
  assert early.steps_on_other_data() == []
  kept = lib.Measurements(path, {"evaluation": "two", "validation": "dev"})
  assert kept.steps() == kept.steps_on_other_data() == [10]
  assert 10 not in kept  # It is to be measured again.
  assert kept[10] == {LOSS: 3.0}
  assert kept.improved_by({LOSS: 4.0, BLEU: 30.0}, 10) == BLEU
  kept.record(20, {LOSS: 4.0, BLEU: 30.0})
  assert kept.improved_by({LOSS: 2.0, BLEU: 29.0}, 20) is None
  assert kept.best_and_since(BLEU) == (20, 0)
  # The development data are the same.
  assert kept.best_and_since(LOSS) == (10, 1)
  # Back on the first test set, its scores count again.
  again = lib.Measurements(path, early.measured_on)
  assert again.steps_on_other_data() == [20]
  assert again.best_and_since(BLEU) == (10, 0)


@pytest.mark.parametrize("ending", ["}", ', "measured_on": null}'])
def test_early_versions_do_not_name_their_data(path, ending):
  with open(path, "w", encoding="utf-8") as stream:
    stream.write('{"step": 10, "evaluation/sacrebleu_BLEU": 40.0' + ending)
  kept = lib.Measurements(path, {"evaluation": "two"})
  assert 10 in kept and kept.steps_on_other_data() == []
  assert kept.improved_by({BLEU: 30.0}, 10) is None


def test_what_is_not_written_counts_all_the_same(path):
  lib.Measurements(path).record(10, {BLEU: 40.0})
  passing = lib.Measurements(path, is_written=False)
  passing.record(20, {BLEU: 30.0})
  assert passing.best_and_since(BLEU) == (10, 1)
  assert lib.Measurements(path).steps() == [10]


def test_what_will_be_measured_again_does_not_count(path):
  kept = lib.Measurements(path)
  for step in (10, 20, 30):
    kept.record(step, {LOSS: 5.0 - step / 10})
  kept.forget_after(20)
  for each in (kept, lib.Measurements(path)):
    assert 20 in each and 30 not in each
    assert each.best_and_since(LOSS) == (20, 0)


def test_what_is_no_number_is_never_the_best(path):
  kept = lib.Measurements(path)
  nan, infinite = float("nan"), float("inf")
  assert kept.improved_by({LOSS: nan}, None) is None
  kept.record(10, {LOSS: nan})
  kept.record(20, {LOSS: infinite})
  with open(path, encoding="utf-8") as stream:
    assert '"validation/loss": null' in stream.readline()
  again = lib.Measurements(path)
  for rival in (10, 20):
    assert again.improved_by({LOSS: 9.0}, rival) == LOSS


def test_the_best_and_the_evaluations_since(path):
  kept = lib.Measurements(path)
  # Of two that are as good, the first is the best; higher is better for BLEU.
  for step, loss, best, since in (
    (10, 3.0, 10, 0), (20, 2.0, 20, 0), (30, 2.0, 20, 1),
    (40, float("nan"), 20, 2), (50, 4.0, 20, 3), (60, 1.5, 60, 0),
  ):  # fmt: skip
    kept.record(step, {LOSS: loss, BLEU: loss if loss == loss else 0.0})
    assert kept.best_and_since(LOSS) == (best, since)
  assert kept.best_and_since(BLEU) == (50, 1)
  # An evaluation that has not measured it does not count.
  kept.record(70, {BLEU: 1.0})
  assert kept.best_and_since(LOSS) == (60, 0)
  assert lib.Measurements(path).best_and_since(BLEU) == (50, 2)


# In one, each sentence's last character is wrong; in the other, one sentence is
# right.
REFERENCES = [
  "他昨天写了一封很长的信",
  "我们明天早上一起去公园",
  "这个孩子不喜欢吃青菜",
  "图书馆里有很多有趣的书",
]
GOOD = [line[:-1] + "啊" for line in REFERENCES]
BAD = [REFERENCES[0], "猫", "狗", "鸟"]


def test_the_best_is_so_by_the_score_that_is_shown(path):
  """Official BLEU takes an unpunctuated clause of Chinese for one word."""
  settings = dataclasses.replace(IN_TRAINING, tokenize="zh")
  good, bad = (
    {
      f"evaluation/{name}": value
      for name, value in score(References([REFERENCES]), lines, settings)
      .scalars()
      .items()
    }
    for lines in (GOOD, BAD)
  )
  assert good[lib.OFFICIAL_BLEU] < bad[lib.OFFICIAL_BLEU]
  kept = lib.Measurements(path)
  kept.record(1, good)
  assert kept.improved_by(bad, 1) is None
  kept.record(2, bad)
  assert kept.best_and_since(BLEU) == (1, 1)


def test_a_run_from_before_sacrebleu_was_kept_goes_on(path):
  kept = lib.Measurements(path)
  kept.record(10, {lib.OFFICIAL_BLEU: 20.0})
  assert kept.improved_by({lib.OFFICIAL_BLEU: 19.0}, 10) is None
  better = {lib.OFFICIAL_BLEU: 21.0}
  assert kept.improved_by(better, 10) == lib.OFFICIAL_BLEU
