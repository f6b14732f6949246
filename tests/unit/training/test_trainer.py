"""Whole runs: what they leave behind, how they are resumed, how they end."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf
from runs import (
  PARAMS,
  ROUNDING,
  UNDROPPED,
  assert_equal_states,
  json_lines,
  make_trainer,
  resume,
  settings,
  state,
  steps_of,
  train,
)
from shared_files import reversed_pairs
from written_shards import write_shards

from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.errors import InputError, Interrupted, RunError
from official_transformer.model_directory.checkpoint_writing import (
  write_only_checkpoint,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  MEASUREMENTS_FILE,
  ModelDirectory,
)
from official_transformer.model_directory.measurements import (
  BLEU,
  VALIDATION_LOSS,
)
from official_transformer.training.checkpoints import CheckpointManager
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.evaluations import Evaluation
from official_transformer.training.interruption import Interruption
from official_transformer.training.settings import EarlyStopping, Execution
from official_transformer.training.step.step_runner import StepRunner

pytestmark = pytest.mark.slow

# 160 pairs last for 10 to 11 steps: these runs end in their third epoch.
STEPS = 25
FIT, LOOP = Execution(), Execution(use_ctl=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, reversals):
  """Validation before a run, its final state and validation, by its way."""
  found = {}
  for name, way in (("fit", FIT), ("loop", LOOP)):
    run = settings(reversals, STEPS, execution=way)
    trainer = make_trainer(tmp_path_factory.mktemp(name), PARAMS, run)
    before = trainer.validate()
    trainer.train()
    found[name] = before, state(trainer), trainer.validate()
  return found


class Signalled(Interruption):
  """A signal that comes when the test says."""

  def __init__(self, evaluations=None):
    super().__init__()
    self.evaluations = evaluations

  @contextlib.contextmanager
  def breaks_off(self):
    if self.evaluations is not None:
      self.evaluations -= 1
      if self.evaluations == 0:
        self.signal = signal.SIGTERM
        raise Interrupted(signal.SIGTERM)
    yield


@pytest.mark.parametrize(("name", "way"), [("fit", FIT), ("loop", LOOP)])
def test_a_resumed_run_equals_an_uninterrupted_one(
  tmp_path, undisturbed, reversals, name, way
):
  """A signal ends it after its first step, another run after the 14th."""
  run = settings(reversals, 14, execution=way)
  interruption = Signalled()
  interruption.signal = signal.SIGTERM
  trainer = make_trainer(tmp_path, PARAMS, run)
  with pytest.raises(Interrupted, match="step 1 of 14 was the last, and is sa"):
    trainer.train(interruption)
  assert not interruption.nothing_to_lose
  assert trainer.directory.checkpoint_steps() == [1]
  trainer.train()  # The same object: nothing is left over from before.
  assert trainer.directory.checkpoint_steps() == [12, 14]
  resumed = train(tmp_path, PARAMS, dataclasses.replace(run, train_steps=STEPS))
  assert steps_of(resumed) == STEPS
  assert_equal_states(undisturbed[name][1], state(resumed))


def test_weights_move_and_the_loss_falls(undisturbed):
  before, _, after = undisturbed["fit"]
  assert after["loss"] < before["loss"] - 0.2
  assert after["perplexity"] < before["perplexity"]


def test_the_loop_trains_as_fit_does(undisturbed):
  assert_equal_states(undisturbed["fit"][1], undisturbed["loop"][1], ROUNDING)


def test_another_seed_makes_other_weights(tmp_path, undisturbed, reversals):
  """The same one makes the same: so the resumed run has shown."""
  run = settings(reversals, STEPS)
  first = undisturbed["fit"][1]
  run = dataclasses.replace(run, seed=run.seed + 1)
  other = state(train(tmp_path, PARAMS, run))
  assert max(np.abs(first[path] - other[path]).max() for path in first) > 1e-3


def test_several_updates_a_call_change_nothing(
  tmp_path, undisturbed, reversals, monkeypatch
):
  calls = []
  run_steps = StepRunner.__call__

  def counted(self, iterator, steps=1):
    calls.append(steps)
    return run_steps(self, iterator, steps)

  monkeypatch.setattr(StepRunner, "__call__", counted)
  run = settings(reversals, STEPS, execution=Execution(steps_per_loop=3))
  several = train(tmp_path, PARAMS, run)
  assert_equal_states(undisturbed["fit"][1], state(several), ROUNDING)
  assert several.directory.checkpoint_steps() == [24, 25]
  # Two trials; reports come every 2 steps: 2 at a time, and the last alone.
  assert calls == [1, 1, *[2] * 12, 1]


def test_validation_loss_by_hand(tmp_path, reversals):
  trainer = make_trainer(tmp_path, UNDROPPED, settings(reversals, 1))
  total = tokens = 0
  shard = os.path.join(reversals, "x-dev-00001-of-00001")
  for raw in tf.data.TFRecordDataset(shard).as_numpy_iterator():
    feature = tf.train.Example.FromString(raw).features.feature
    x, y = (
      np.array([feature[n].int64_list.value]) for n in ("inputs", "targets")
    )
    logits = trainer.model.transformer([x, y]).numpy()[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    total -= log_probs[np.arange(y.size), y[0]].sum()
    tokens += y.size
  actual = trainer.validate()["perplexity"]
  np.testing.assert_allclose(actual, np.exp(total / tokens), rtol=1e-4)


SAMPLES = [("a b", "c d", "e")]


def bleu(score):
  """Returns what a test set says of a model, by either BLEU."""
  return {"bleu_uncased": score, "sacrebleu_BLEU": score}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, reversals):
  """A run with all that it can report; its directory, and what it evaluated."""
  seen, scores = [], {4: 20.0, 8: 30.0, 10: 25.0}

  def evaluate(transformer, step):
    seen.append((step, transformer.params.vocab_size))
    return Evaluation(bleu(scores[step]), SAMPLES)

  path = tmp_path_factory.mktemp("evaluated")
  run = settings(
    reversals,
    10,
    enable_metrics_in_training=True,
    enable_tensorboard=True,
    profile_steps=(2, 3),
  )
  train(path, PARAMS, run, evaluate)
  return path, seen


def test_evaluations_come_after_checkpoints_of_which_the_newest_are_kept(
  evaluated,
):
  path, seen = evaluated
  assert seen == [(4, 20), (8, 20), (10, 20)]
  directory = ModelDirectory(str(path))
  assert directory.checkpoint_steps() == [8, 10]
  assert directory.checkpoint_steps(BEST) == [8]
  lines = json_lines(path / MEASUREMENTS_FILE)
  assert [line["step"] for line in lines] == [4, 8, 10]
  assert {"validation/loss", "evaluation/bleu_uncased"} <= lines[0].keys()


def test_tensorboard_shows_all_that_is_measured(evaluated):
  path, _ = evaluated
  (log,) = (path / "logs").glob("events*")
  values = {}
  for raw in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
    for value in tf.compat.v1.Event.FromString(raw).summary.value:
      values[value.tag] = tf.make_ndarray(value.tensor)
  assert {"train/loss", "train/learning_rate", "train/accuracy"} <= set(values)
  assert values["train/gradient_norm"] > 0
  assert values["train/tokens_per_second"] > 0
  assert values["validation/loss"] > 0
  assert values["evaluation/bleu_uncased"] == 25.0
  assert values["translations"].tolist()[1] == [b"a b", b"c d", b"e"]


def test_a_profile_is_recorded(evaluated):
  path, _ = evaluated
  assert list(path.glob("logs/plugins/profile/*/*.xplane.pb"))


def test_nothing_is_left_to_do_for_a_finished_run(evaluated, reversals):
  path, _ = evaluated
  seen = []
  train(
    path,
    PARAMS,
    settings(reversals, 10),
    lambda *a: seen.append(a) or Evaluation({}),
  )
  assert seen == []


def test_a_checkpoint_of_other_parameters_is_refused(evaluated, reversals):
  path, _ = evaluated
  other = dataclasses.replace(PARAMS, filter_size=64)
  with pytest.raises(InputError, match="does not fit this model"):
    train(path, other, settings(reversals, 12))


def test_no_usable_pair_is_refused_and_no_usable_dev_pair_is_not(
  tmp_path, reversals
):
  run = settings(reversals, 1, batching=Batching(128, 2))
  with pytest.raises(InputError, match="--max_length=2 tokens; raise it"):
    make_trainer(tmp_path, PARAMS, run)
  write_shards([([5] * 20, [5] * 20)], str(tmp_path), "x", "dev", 1, None)
  for n in (1, 2):
    name = f"x-train-{n:05d}-of-00002"
    os.symlink(os.path.join(reversals, name), tmp_path / name)
  trainer = make_trainer(tmp_path, PARAMS, settings(str(tmp_path), 1))
  assert trainer.validate() == {}


def test_a_shard_damaged_during_the_run_is_one_clear_error(tmp_path, reversals):
  shutil.copytree(reversals, tmp_path, dirs_exist_ok=True)
  shard = tmp_path / "x-train-00002-of-00002"
  content = shard.read_bytes()
  run = settings(str(tmp_path), 30)
  trainer = make_trainer(tmp_path / "model", PARAMS, run)
  for damage in (
    lambda: shard.write_bytes(content[:-3]),
    lambda: shard.write_bytes(b"nonsense that is no record"),
    shard.unlink,
  ):
    damage()
    with pytest.raises(InputError, match="00002-of-00002"):
      trainer.train()
    shard.write_bytes(content)


@pytest.fixture(scope="module")
def undisturbed_by_others(tmp_path_factory, reversals):
  """The state that a longer run ends in."""
  path = tmp_path_factory.mktemp("undisturbed")
  run = settings(reversals, 60, evaluated_steps=(4,))
  return state(train(path, PARAMS, run))


@pytest.mark.parametrize("longer", [0, 3])
def test_data_replaced_during_the_run_cost_no_update(
  tmp_path, reversals, undisturbed_by_others, longer
):
  """Whether or not the new records could be read in the old ones' places."""
  shutil.copytree(reversals, tmp_path, dirs_exist_ok=True)
  shards = sorted(tmp_path.glob("x-train-*"))
  old = [shard.read_bytes() for shard in shards]
  others = reversed_pairs(400, longest=8 + longer)

  def replace(model, step):
    if step == 4:
      write_shards(others, str(tmp_path), "x", "train", 2, seed=1)
    return Evaluation({})

  run = settings(str(tmp_path), 60, evaluated_steps=(4,))
  path = tmp_path / "model"
  with pytest.raises(InputError, match=r"replaced(.|\n)*Step \d+ was the last"):
    train(path, PARAMS, run, replace)
  assert ModelDirectory(str(path)).checkpoint_steps()[-1] >= 4
  for shard, content in zip(shards, old, strict=True):
    shard.write_bytes(content)
  # The same command goes on, as if nothing had been.
  resumed = train(path, PARAMS, run)
  assert_equal_states(state(resumed), undisturbed_by_others)


def test_a_loop_of_several_updates_does_not_save_between_two(
  tmp_path, reversals
):
  shutil.copytree(reversals, tmp_path, dirs_exist_ok=True)

  def replace(model, step):
    for shard in tmp_path.glob("x-train-*"):
      shard.write_bytes(b"nothing")
    return Evaluation({})

  run = settings(str(tmp_path), 60, execution=Execution(steps_per_loop=4))
  path = tmp_path / "model"
  with pytest.raises(InputError, match="the newest checkpoint is what there"):
    train(path, PARAMS, run, replace)
  # What had been read ahead was trained on.
  directory = ModelDirectory(str(path))
  steps = directory.checkpoint_steps()
  assert steps and not any(map(directory.is_interim, steps))


def test_shards_that_are_copied_anew_are_the_same_data(tmp_path, reversals):
  shutil.copytree(reversals, tmp_path, dirs_exist_ok=True)

  def touch(model, step):
    for shard in tmp_path.glob("x-train-*"):
      os.utime(shard, (step, step))
    return Evaluation({})

  run = settings(str(tmp_path), 25)
  assert steps_of(train(tmp_path / "model", PARAMS, run, touch)) == 25


@pytest.mark.parametrize("way", [FIT, LOOP])
def test_one_checkpoint_is_from_before_the_update_that_broke_a_run(
  tmp_path, reversals, way
):
  """Weights that are finite, and yet of no use, show in the next update."""
  # The second update moves every weight out of sight.
  params = dataclasses.replace(PARAMS, learning_rate=1e38)
  run = settings(
    reversals,
    30,
    max_nonfinite_steps=3,
    save_checkpoints_steps=1,
    keep_checkpoint_max=1,
    execution=way,
  )
  for _ in range(2):  # The same command once more loses it neither.
    with pytest.raises(RunError, match="were not finite"):
      train(tmp_path, params, run)
    kept = ModelDirectory(str(tmp_path))
    oldest = kept.checkpoint_steps()[0]
    reader = tf.train.load_checkpoint(kept.checkpoint_prefix(oldest))
    for name in reader.get_variable_to_shape_map():
      if name.startswith("weights/"):
        assert np.abs(reader.get_tensor(name)).max() < 1e3


def test_updates_that_are_not_finite_stop_the_run(tmp_path, reversals):
  # The second update moves every weight out of sight.
  params = dataclasses.replace(PARAMS, learning_rate=1e38)
  run = settings(
    reversals,
    30,
    steps_between_evals=2,
    max_nonfinite_steps=3,
    save_checkpoints_steps=1,
    batching=Batching(64, 16, accumulate_steps=2),
  )
  with pytest.raises(RunError) as caught:
    train(tmp_path, params, run)
  found = re.match(
    r"steps (\d+) to (\d+): .*learning rate (\S+), batches (\d+) to (\d+) of",
    str(caught.value),
  )
  first, last, batch, last_batch = (int(found[n]) for n in (1, 2, 4, 5))
  assert last == first + 3
  assert (batch, last_batch) == (2 * first - 2, 2 * last - 1)
  assert float(found[3]) > 1e30
  # The ids are those of the first of these updates' batches.
  feed = DataFeed(run, read_prepared_data(reversals, 20, with_dev=False))
  lines = json_lines(tmp_path / f"nonfinite-step-{first}.jsonl")
  expected = list(feed.training_batches(0).take(2 * first))[2 * first - 2 :]
  assert {line["batch"] for line in lines} == {2 * first - 2, 2 * first - 1}
  assert [line["inputs"] for line in lines] == [
    [n for n in row if n] for x, _ in expected for row in x.numpy().tolist()
  ]
  # What was saved before is kept, and finite.
  kept = ModelDirectory(str(tmp_path))
  assert kept.checkpoint_steps()
  reader = tf.train.load_checkpoint(kept.latest_checkpoint())
  for name in reader.get_variable_to_shape_map():
    assert np.isfinite(reader.get_tensor(name)).all(), name


def test_an_evaluation_that_was_broken_off_is_made_up_for(tmp_path, reversals):
  """By the same command, even if nothing else is left to do."""
  trainer = make_trainer(tmp_path, PARAMS, settings(reversals, 8))
  with pytest.raises(Interrupted, match="step 8"):
    trainer.train(Signalled(evaluations=2))
  measured = tmp_path / MEASUREMENTS_FILE
  assert [line["step"] for line in json_lines(measured)] == [4]
  trainer.train()
  assert [line["step"] for line in json_lines(measured)] == [4, 8]


def test_synthetic_data_need_no_data(tmp_path):
  run = settings(None, 3, batching=Batching(64, 16))
  assert steps_of(train(tmp_path, PARAMS, run)) == 3


def test_a_rising_loss_ends_the_run(tmp_path, reversals):
  run = settings(
    reversals, 60, early_stopping=EarlyStopping(VALIDATION_LOSS, 2)
  )
  # Steps so large that the loss cannot go on falling.
  wild = dataclasses.replace(PARAMS, learning_rate=100.0)
  trainer = train(tmp_path, wild, run)
  losses = [
    line["validation/loss"] for line in json_lines(tmp_path / MEASUREMENTS_FILE)
  ]
  assert steps_of(trainer) < 60
  assert losses.index(min(losses)) == len(losses) - 3
  # The same command ends at once.
  assert steps_of(train(tmp_path, wild, run)) == steps_of(trainer)


def test_a_new_model_has_nothing_of_an_earlier_one(tmp_path, reversals):
  trainer = train(tmp_path, PARAMS, settings(reversals, 4))
  directory = trainer.directory
  write_only_checkpoint(directory, 4, {"weights/x": 1.0}, AVERAGE)
  trainer.train()  # Going on, it stays.
  assert directory.checkpoint_steps(AVERAGE) == [4]
  shutil.rmtree(tmp_path / "checkpoints")
  trainer.train()
  assert directory.checkpoint_steps(AVERAGE) == []
  assert directory.checkpoint_steps(BEST) == [4]


def test_scores_on_another_test_set_are_not_compared(
  tmp_path, reversals, caplog
):
  scores = {4: 40.0, 8: 30.0, 12: 20.0}

  def evaluate(transformer, step):
    return Evaluation({"sacrebleu_BLEU": scores[step]})

  def run(steps, test_set):
    rule = EarlyStopping(BLEU, 2)
    trainer = make_trainer(
      tmp_path,
      PARAMS,
      settings(reversals, steps, early_stopping=rule),
      evaluate,
      test_set=test_set,
    )
    trainer.train()
    return trainer.directory.checkpoint_steps(BEST)

  assert run(4, "one") == [4]
  assert "on other data" not in caplog.text
  # What the last run measured is measured again.
  scores[4] = 10.0
  assert run(8, "two") == [8]
  assert "1 of 1 evaluations, the last after step 4, were on" in caplog.text
  assert run(12, "two") == [8]
  measured = json_lines(tmp_path / MEASUREMENTS_FILE)
  assert [line[BLEU] for line in measured] == [10.0, 30.0, 20.0]
  identities = [line["measured_on"] for line in measured]
  assert all(line["evaluation"] == "two" for line in identities)
  assert all("10 batches of " in line["validation"] for line in identities)


def test_a_run_that_saves_nothing_leaves_a_trained_models_results(
  tmp_path, reversals
):
  def evaluate(transformer, step):
    return Evaluation({"sacrebleu_BLEU": 10.0 + step})

  trainer = train(tmp_path, PARAMS, settings(reversals, 8), evaluate)
  # A crash has lost the last checkpoint.
  trainer.directory.remove_checkpoint(8)
  before = json_lines(tmp_path / MEASUREMENTS_FILE)
  passing = settings(
    None, 12, batching=Batching(128, 16), enable_checkpointing=False
  )
  train(tmp_path, PARAMS, passing, evaluate)
  assert json_lines(tmp_path / MEASUREMENTS_FILE) == before
  assert trainer.directory.checkpoint_steps() == [4]
  assert trainer.directory.checkpoint_steps(BEST) == [8]


@pytest.mark.slow
def test_an_accumulating_run_is_resumed_exactly(tmp_path, reversals):
  batching = Batching(64, 16, accumulate_steps=3)
  run = settings(reversals, 6, batching=batching)
  uninterrupted = train(tmp_path / "whole", PARAMS, run)
  resumed = resume(tmp_path / "whole", PARAMS, run, tmp_path / "parts")
  assert_equal_states(state(uninterrupted), state(resumed))


def test_a_lack_of_memory_shows_before_the_first_update(
  tmp_path, reversals, monkeypatch
):
  def full(self, x, y):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

  trainer = make_trainer(tmp_path, PARAMS, settings(reversals, 4))
  tried = []
  rehearse = trainer.model.rehearse

  def looked_at(batches):
    tried.append(tuple(next(batches)[0].shape))
    rehearse(batches)

  monkeypatch.setattr(trainer.model, "rehearse", looked_at)
  monkeypatch.setattr(type(trainer.model.step), "__call__", full)
  with pytest.raises(InputError, match="OOM when allocating.*--batch_size"):
    trainer.train()
  # Of the bucket of the longest examples: 128 tokens, up to 10 excluded.
  assert tried == [(12, 9)]
  assert trainer.directory.checkpoint_steps() == []


def test_failures_and_a_threshold_out_of_reach_end_no_run(
  tmp_path, reversals, monkeypatch, caplog
):
  """The evaluation of step 4, and the checkpoint of step 8, cannot be had."""
  scores = {8: 30.0, 12: 20.0, 14: 25.0}
  save = CheckpointManager.save

  def evaluate(_, step):
    if step == 4:
      raise OSError("No space left on device")
    return Evaluation(bleu(scores[step]))

  def full(self, step, *arguments):
    if step == 8:
      raise OSError("No space left on device")
    return save(self, step, *arguments)

  monkeypatch.setattr(CheckpointManager, "save", full)
  run = settings(
    reversals,
    14,
    stop_threshold=30.1,
    save_checkpoints_secs=1e-9,
    keep_checkpoint_max=5,
  )
  trainer = train(tmp_path, PARAMS, run, evaluate)
  assert "the evaluation after step 4 failed (OSError: No space" in caplog.text
  assert "no checkpoint after step 8: No space left" in caplog.text
  assert steps_of(trainer) == 14
  # Those of every step in between, saved by time, have gone.
  assert trainer.directory.checkpoint_steps() == [4, 12, 14]
  assert trainer.directory.checkpoint_steps(BEST) == [8]
  lines = json_lines(tmp_path / MEASUREMENTS_FILE)
  assert [line.get("evaluation/bleu_uncased") for line in lines] == [
    None,
    *scores.values(),
  ]
  assert all("validation/loss" in line for line in lines)


def test_a_run_says_what_it_is(tmp_path, reversals, caplog):
  run = settings(reversals, 2, batching=Batching(64, 16, accumulate_steps=2))
  with caplog.at_level("INFO", logger="absl"):
    trainer = train(tmp_path, PARAMS, run)
  text = "\n".join(caplog.messages)
  weights = trainer.model.keras_model.trainable_variables
  total = sum(int(tf.size(v.value)) for v in weights)
  assert f"{total:,} trainable parameters: embedding 320, encoder" in text
  assert "up to 128 tokens a side: 2 batches of 64, over 1 replicas" in text
  assert "hold 6 sentences of 9 tokens or 7 sentences of 8 tokens" in text
  assert "of the time waiting for data" in text
