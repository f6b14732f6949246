"""Training runs over a few batches, through the classes a command uses."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from data_prep.records import write_shards
from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.errors import InputError, Interrupted, RunError
from official_transformer.model_directory.checkpoint_files import (
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
from official_transformer.training.interruption import Interruption
from official_transformer.training.settings import (
  EarlyStopping,
  Execution,
  TrainingSettings,
)
from official_transformer.training.step.step_runner import StepRunner
from official_transformer.training.trainer import Evaluation, Trainer

# Of float32, over some updates by graphs that sum in another order. How far it
# reaches depends on the processor: 1.1e-6 was seen. One update moves every
# variable by 4e-2 or more.
ROUNDING = 1e-5


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp("data"))
  rng = np.random.default_rng(0)
  pairs = [
    ([*ids, 1], [*ids[::-1], 1])
    for ids in (
      rng.integers(2, 20, size=rng.integers(3, 9)).tolist() for _ in range(200)
    )
  ]
  write_shards(pairs[40:], directory, "x", "train", 2, seed=1)
  write_shards(pairs[:40], directory, "x", "dev", 1, seed=None)
  return directory


@pytest.fixture
def params(params):
  """One layer: tracing is most of what these tests cost."""
  return dataclasses.replace(params, num_hidden_layers=1)


def settings(data_dir, steps, **changes):
  defaults = {
    "data_dir": data_dir,
    "train_steps": steps,
    "steps_between_evals": 4,
    "batching": Batching(128, 16),
    "validation_steps": 10,
    "seed": 3,
    "keep_checkpoint_max": 2,
    "log_steps": 2,
    "num_parallel_calls": 2,
  }
  return TrainingSettings(**{**defaults, **changes})


def make_trainer(path, params, run, evaluate=None):
  data = None
  if not run.use_synthetic_data:
    data = read_prepared_data(run.data_dir, params.vocab_size, with_dev=True)
  return Trainer(ModelDirectory(str(path)), params, run, data, evaluate)


def train(path, params, run, evaluate=None):
  trainer = make_trainer(path, params, run, evaluate)
  trainer.train()
  return trainer


def json_lines(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def assert_equal_weights(one, other, tolerance=0.0):
  for a, b in zip(one.model.weights, other.model.weights, strict=True):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=a.path)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, params, data_dir):
  # 160 pairs last for 10 to 11 steps: the run stops in its second epoch.
  whole = train(tmp_path / "whole", params, settings(data_dir, 25))
  train(tmp_path / "parts", params, settings(data_dir, 14))
  parts = train(tmp_path / "parts", params, settings(data_dir, 25))
  for a, b in zip(whole.model.weights, parts.model.weights, strict=True):
    np.testing.assert_allclose(a, b, atol=1e-6, err_msg=a.path)
  assert int(parts.optimizer.iterations) == 25
  slots = zip(whole.optimizer.variables, parts.optimizer.variables, strict=True)
  for a, b in slots:
    np.testing.assert_allclose(a, b, atol=1e-6, err_msg=a.path)


def test_weights_move_and_the_loss_falls(tmp_path, params, data_dir):
  trainer = make_trainer(tmp_path, params, settings(data_dir, 40))
  before = trainer.validate()
  trainer.train()
  after = trainer.validate()
  assert after["loss"] < before["loss"] - 0.2
  assert after["perplexity"] < before["perplexity"]


def test_validation_loss_by_hand(tmp_path, undropped, data_dir):
  trainer = make_trainer(tmp_path, undropped, settings(data_dir, 1))
  total = tokens = 0
  shard = os.path.join(data_dir, "x-dev-00001-of-00001")
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


def test_milestones_evaluate_save_and_keep_the_newest(
  tmp_path, params, data_dir
):
  seen = []

  def evaluate(transformer, step):
    seen.append((step, transformer.params.vocab_size))
    return Evaluation({"score": 1.5})

  trainer = train(tmp_path, params, settings(data_dir, 10), evaluate)
  assert seen == [(4, 20), (8, 20), (10, 20)]
  assert trainer.directory.checkpoint_steps() == [8, 10]


def test_nothing_is_left_to_do_for_a_finished_run(tmp_path, params, data_dir):
  train(tmp_path, params, settings(data_dir, 4))
  seen = []
  train(
    tmp_path,
    params,
    settings(data_dir, 4),
    lambda *a: seen.append(a) or Evaluation({}),
  )
  assert seen == []


def test_metrics_and_tensorboard(tmp_path, params, data_dir):
  train(
    tmp_path,
    params,
    settings(
      data_dir, 4, enable_metrics_in_training=True, enable_tensorboard=True
    ),
  )
  (name,) = os.listdir(tmp_path / "logs")
  tags = set()
  for raw in tf.data.TFRecordDataset(
    str(tmp_path / "logs" / name)
  ).as_numpy_iterator():
    event = tf.compat.v1.Event.FromString(raw)
    tags |= {value.tag for value in event.summary.value}
  assert {
    "train/loss",
    "train/learning_rate",
    "train/accuracy",
    "validation/loss",
  } <= tags


def test_the_seed_decides_the_weights(tmp_path, params, data_dir):
  runs = [
    train(tmp_path / str(n), params, settings(data_dir, 3, seed=seed))
    for n, seed in enumerate((3, 3, 4))
  ]
  first, again, other = (run.model.get_weights() for run in runs)
  for a, b in zip(first, again, strict=True):
    np.testing.assert_allclose(a, b, atol=1e-6)
  assert any(
    np.abs(a - b).max() > 1e-3 for a, b in zip(first, other, strict=True)
  )


def test_a_checkpoint_of_other_parameters_is_refused(
  tmp_path, params, data_dir
):
  train(tmp_path, params, settings(data_dir, 1))
  other = dataclasses.replace(params, filter_size=64)
  with pytest.raises(InputError, match="does not fit this model"):
    train(tmp_path, other, settings(data_dir, 2))


def test_no_usable_pair_is_refused_and_no_usable_dev_pair_is_not(
  tmp_path, params, data_dir
):
  with pytest.raises(InputError, match="--max_length=2 tokens; raise it"):
    train(tmp_path, params, settings(data_dir, 1, batching=Batching(128, 2)))
  write_shards([([5] * 20, [5] * 20)], str(tmp_path), "x", "dev", 1, None)
  for n in (1, 2):
    name = f"x-train-{n:05d}-of-00002"
    os.symlink(os.path.join(data_dir, name), tmp_path / name)
  trainer = make_trainer(tmp_path, params, settings(str(tmp_path), 1))
  assert trainer.validate() == {}


def test_a_shard_damaged_during_the_run_is_one_clear_error(
  tmp_path, params, data_dir
):
  for path in pathlib.Path(data_dir).iterdir():
    (tmp_path / path.name).write_bytes(path.read_bytes())
  shard = tmp_path / "x-train-00002-of-00002"
  content = shard.read_bytes()
  for damage in (
    lambda: shard.write_bytes(content[:-3]),
    lambda: shard.write_bytes(b"nonsense that is no record"),
    shard.unlink,
  ):
    shard.write_bytes(content)
    trainer = make_trainer(
      tmp_path / "model", params, settings(str(tmp_path), 30)
    )
    damage()
    with pytest.raises(InputError, match="00002-of-00002"):
      trainer.train()


def test_updates_that_are_not_finite_stop_the_run(
  tmp_path, params, data_dir, caplog
):
  # The second update moves every weight out of sight.
  params = dataclasses.replace(params, learning_rate=1e38)
  run = settings(
    data_dir,
    30,
    steps_between_evals=2,
    max_nonfinite_steps=3,
    save_checkpoints_steps=1,
    batching=Batching(64, 16, accumulate_steps=2),
  )
  with pytest.raises(RunError) as caught, caplog.at_level("INFO", "absl"):
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
  feed = DataFeed(run, read_prepared_data(data_dir, 20, with_dev=False))
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


def test_an_evaluation_that_fails_costs_nothing_else(
  tmp_path, params, data_dir, caplog
):
  def evaluate(_, step):
    if step == 4:
      raise OSError("No space left on device")
    return Evaluation({"bleu_uncased": float(step)})

  with caplog.at_level("INFO", "absl"):
    trainer = train(tmp_path, params, settings(data_dir, 8), evaluate)
  assert "the evaluation after step 4 failed (OSError: No space" in caplog.text
  assert int(trainer.model.optimizer.iterations) == 8
  lines = json_lines(tmp_path / "measurements.jsonl")
  assert [line["step"] for line in lines] == [4, 8]
  assert "validation/loss" in lines[0]
  assert "evaluation/bleu_uncased" not in lines[0]
  assert lines[1]["evaluation/bleu_uncased"] == 8.0


def test_the_best_is_kept_apart(tmp_path, params, data_dir):
  scores = {4: 20.0, 8: 30.0, 12: 25.0}
  trainer = train(
    tmp_path,
    params,
    settings(data_dir, 12, keep_checkpoint_max=1),
    lambda _, step: Evaluation({"bleu_uncased": scores[step]}),
  )
  assert trainer.directory.checkpoint_steps() == [12]
  assert trainer.directory.checkpoint_steps(BEST) == [8]


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


@pytest.mark.parametrize("way", [Execution(), Execution(use_ctl=True)])
def test_a_signal_ends_the_run_after_its_step(tmp_path, params, data_dir, way):
  interruption = Signalled()
  interruption.signal = signal.SIGTERM
  run = settings(data_dir, 9, execution=way)
  trainer = make_trainer(tmp_path / "parts", params, run)
  trainer.interruption = interruption
  with pytest.raises(Interrupted, match="step 1 of 9 was the last, and is sa"):
    trainer.train()
  assert not interruption.nothing_to_lose
  assert trainer.directory.checkpoint_steps() == [1]
  resumed = train(tmp_path / "parts", params, run)
  assert resumed.directory.checkpoint_steps() == [8, 9]
  assert_equal_weights(train(tmp_path / "whole", params, run), resumed)


@pytest.mark.parametrize("last", [8, 12])
def test_an_evaluation_that_was_broken_off_is_made_up_for(
  tmp_path, params, data_dir, last
):
  run = settings(data_dir, last)
  trainer = make_trainer(tmp_path, params, run)
  trainer.interruption = Signalled(evaluations=2)
  with pytest.raises(Interrupted, match="step 8"):
    trainer.train()
  measured = tmp_path / "measurements.jsonl"
  assert '"step": 8' not in measured.read_text()
  train(tmp_path, params, run)
  assert '"step": 8' in measured.read_text()
  # Even where nothing else was left to do.
  assert measured.read_text().count("\n") == last // 4


def test_a_full_disk_stops_no_run_before_its_end(
  tmp_path, params, data_dir, monkeypatch, caplog
):
  save = CheckpointManager.save

  def full(self, step, *arguments):
    if step in (4, 12):
      raise OSError("No space left on device")
    return save(self, step, *arguments)

  monkeypatch.setattr(CheckpointManager, "save", full)
  with (
    pytest.raises(OSError, match="No space"),
    caplog.at_level("ERROR", "absl"),
  ):
    train(tmp_path, params, settings(data_dir, 12))
  assert "no checkpoint after step 4: No space left" in caplog.text
  assert ModelDirectory(str(tmp_path)).checkpoint_steps() == [8]


def test_a_model_is_saved_by_time_to_go_on_from(tmp_path, params, data_dir):
  run = settings(data_dir, 7, save_checkpoints_secs=1e-9)
  saved = []
  trainer = make_trainer(tmp_path, params, run)
  save = trainer.checkpoints.save

  def noted(step, seed, interim=False):
    saved.append((step, interim))
    return save(step, seed, interim)

  trainer.checkpoints.save = noted
  trainer.train()
  assert saved == [(n, n not in (4, 7)) for n in range(1, 8)]
  assert trainer.directory.checkpoint_steps() == [4, 7]


def test_a_full_disk_costs_no_earlier_checkpoint(
  tmp_path, params, data_dir, monkeypatch
):
  trainer = train(tmp_path, params, settings(data_dir, 1))

  def full(**_):
    raise tf.errors.ResourceExhaustedError(None, None, "No space left")

  monkeypatch.setattr(tf.raw_ops, "SaveV2", full)
  with pytest.raises(OSError, match="No space left"):
    trainer.checkpoints.save(2, 3)
  assert trainer.directory.checkpoint_steps() == [1]
  trainer.checkpoints.restore(trainer.directory.latest_checkpoint())


def test_the_loop_trains_as_fit_does(tmp_path, params, data_dir):
  by_fit = train(tmp_path / "fit", params, settings(data_dir, 6))
  by_loop = train(
    tmp_path / "loop",
    params,
    settings(data_dir, 6, execution=Execution(use_ctl=True)),
  )
  weights = zip(by_fit.model.weights, by_loop.model.weights, strict=True)
  for a, b in weights:
    np.testing.assert_allclose(a, b, atol=1e-6, err_msg=a.path)
  assert by_loop.directory.checkpoint_steps() == [4, 6]


@pytest.mark.parametrize(
  "execution",
  [
    Execution(dtype="bf16"),
    Execution(dtype="fp16"),
    Execution(dtype="fp16", loss_scale=128.0),
  ],
)
@pytest.mark.parametrize("r_drop_alpha", [0.0, 2.0])
def test_half_precision_learns_as_well(
  tmp_path, params, data_dir, execution, r_drop_alpha
):
  # Clipped, a gradient that was not unscaled first would all but vanish.
  params = dataclasses.replace(params, r_drop_alpha=r_drop_alpha, clip_norm=1.0)
  full = train(tmp_path / "full", params, settings(data_dir, 40))
  half = train(
    tmp_path / "half", params, settings(data_dir, 40, execution=execution)
  )
  for a, b in zip(full.model.weights, half.model.weights, strict=True):
    assert a.path == b.path
    assert b.dtype == "float32"
  # What it computes is not what float32 computes, and as good.
  assert any(
    np.abs(a.numpy() - b.numpy()).max() > 1e-4
    for a, b in zip(full.model.weights, half.model.weights, strict=True)
  )
  loss = full.validate()["loss"]
  assert half.validate()["loss"] == pytest.approx(loss, rel=0.03)
  # Decoding in that type, step by step, is what the evaluation does.
  result = half.transformer.beam_search(np.array([[5, 6, 7, 1]]))
  assert np.isfinite(result.scores).all()


def test_logits_of_half_precision_are_computed_in_it(
  tmp_path, undropped, data_dir
):
  run = settings(data_dir, 1, execution=Execution(dtype="bf16"))
  half = make_trainer(tmp_path, undropped, run).transformer
  x = half.encode(np.array([[5, 6, 7, 1]]))
  assert x.outputs.dtype == tf.bfloat16
  assert half([np.array([[5, 1]]), np.array([[6, 1]])]).dtype == tf.bfloat16


def test_the_loss_scale_is_resumed(tmp_path, params, data_dir):
  fp16 = Execution(dtype="fp16")
  first = train(tmp_path, params, settings(data_dir, 3, execution=fp16))
  first.loss_scale.scale.assign(64.0)
  first.checkpoints.save(3, 3)
  again = make_trainer(tmp_path, params, settings(data_dir, 5, execution=fp16))
  again.train()
  assert float(again.loss_scale.scale) == 64.0
  # Another type goes on from the same weights.
  other = train(tmp_path, params, settings(data_dir, 6))
  assert int(other.optimizer.iterations) == 6


@pytest.mark.parametrize("r_drop_alpha", [0.0, 2.0])
def test_static_batches_compile_whole(tmp_path, params, data_dir, r_drop_alpha):
  params = dataclasses.replace(params, r_drop_alpha=r_drop_alpha, clip_norm=0.5)
  plain = settings(data_dir, 5, batching=Batching(128, 16, True))
  compiled = dataclasses.replace(plain, execution=Execution(compile=True))
  looped = dataclasses.replace(
    plain, execution=Execution(compile=True, use_ctl=True)
  )
  runs = [
    train(tmp_path / str(n), params, run)
    for n, run in enumerate((plain, compiled, looped))
  ]
  reference = runs[0].model.weights
  for run in runs[1:]:
    for a, b in zip(reference, run.model.weights, strict=True):
      np.testing.assert_allclose(a, b, atol=1e-5, err_msg=a.path)


def test_synthetic_data_need_no_data(tmp_path, params):
  run = settings(
    "/nowhere", 3, use_synthetic_data=True, batching=Batching(64, 16)
  )
  trainer = train(tmp_path, params, run)
  assert int(trainer.model.optimizer.iterations) == 3


def test_a_score_can_end_the_run(tmp_path, params, data_dir):
  scores = iter([10.0, 20.0, 30.0])
  trainer = train(
    tmp_path,
    params,
    settings(data_dir, 40, stop_threshold=20.0),
    lambda *_: Evaluation({"bleu_uncased": next(scores)}),
  )
  assert int(trainer.model.optimizer.iterations) == 8
  assert trainer.directory.checkpoint_steps() == [4, 8]


def test_a_score_out_of_reach_ends_no_run(tmp_path, params, data_dir):
  trainer = train(
    tmp_path,
    params,
    settings(data_dir, 10, stop_threshold=20.0),
    lambda *_: Evaluation({"bleu_uncased": 19.9}),
  )
  assert int(trainer.model.optimizer.iterations) == 10


def test_no_better_score_for_long_ends_the_run(tmp_path, params, data_dir):
  scores = {4: 10.0, 8: 30.0, 12: 20.0, 16: 30.0, 20: 29.0, 24: 40.0}
  run = settings(data_dir, 40, early_stopping=EarlyStopping(BLEU, 3))

  def evaluate(_, step):
    return Evaluation({"bleu_uncased": scores[step]})

  trainer = train(tmp_path, params, run, evaluate)
  assert int(trainer.model.optimizer.iterations) == 20
  # The best is kept, the first of two; the same command ends at once.
  assert trainer.directory.checkpoint_steps(BEST) == [8]
  again = train(tmp_path, params, run, evaluate)
  assert int(again.optimizer.iterations) == 20
  # With more patience, the run goes on.
  more = dataclasses.replace(
    run, train_steps=24, early_stopping=EarlyStopping(BLEU, 4)
  )
  assert int(train(tmp_path, params, more, evaluate).optimizer.iterations) == 24


def test_a_rising_loss_ends_the_run(tmp_path, params, data_dir):
  run = settings(data_dir, 60, early_stopping=EarlyStopping(VALIDATION_LOSS, 2))
  # Steps so large that the loss cannot go on falling.
  wild = dataclasses.replace(params, learning_rate=100.0)
  trainer = train(tmp_path, wild, run)
  losses = [
    line["validation/loss"] for line in json_lines(tmp_path / MEASUREMENTS_FILE)
  ]
  assert int(trainer.model.optimizer.iterations) < 60
  assert losses.index(min(losses)) == len(losses) - 3


def test_a_new_model_has_nothing_of_an_earlier_one(tmp_path, params, data_dir):
  first = train(tmp_path, params, settings(data_dir, 4))
  weights = {"weights/x": 1.0}
  write_only_checkpoint(first.directory, 4, weights, AVERAGE)
  # Going on, it stays.
  train(tmp_path, params, settings(data_dir, 5))
  assert first.directory.checkpoint_steps(AVERAGE) == [4]
  shutil.rmtree(tmp_path / "checkpoints")
  train(tmp_path, params, settings(data_dir, 2))
  assert first.directory.checkpoint_steps(AVERAGE) == []
  assert first.directory.checkpoint_steps(BEST) == [2]


def test_nothing_is_saved_where_nothing_is_to_be(tmp_path, params, data_dir):
  trainer = train(
    tmp_path, params, settings(data_dir, 4, enable_checkpointing=False)
  )
  assert trainer.directory.checkpoint_steps() == []


def test_the_compiled_step_has_no_dynamic_shape(tmp_path, params, data_dir):
  run = settings(
    data_dir,
    1,
    batching=Batching(128, 16, True),
    execution=Execution(compile=True),
  )
  trainer = make_trainer(tmp_path, params, run)
  compiled = trainer.model.runner.replica_update
  batch = tf.ones([8, 16], tf.int64)
  for stage in ("hlo", "optimized_hlo"):
    text = compiled.experimental_get_compiler_ir(batch, batch)(stage=stage)
    assert "ENTRY" in text
    # How XLA writes a dimension that is only bounded, and what makes one.
    assert "<=" not in text
    assert "dynamic-dimension" not in text and "dynamic-reshape" not in text


def test_several_updates_a_call_change_nothing(
  tmp_path, params, data_dir, monkeypatch
):
  one = train(tmp_path / "one", params, settings(data_dir, 11))
  calls = []
  run_steps = StepRunner.__call__

  def counted(self, iterator, steps=1):
    calls.append(steps)
    return run_steps(self, iterator, steps)

  monkeypatch.setattr(StepRunner, "__call__", counted)
  several = train(
    tmp_path / "several",
    params,
    settings(data_dir, 11, execution=Execution(steps_per_loop=3)),
  )
  for a, b in zip(one.model.weights, several.model.weights, strict=True):
    np.testing.assert_allclose(a, b, atol=ROUNDING, err_msg=a.path)
  assert several.directory.checkpoint_steps() == [8, 11]
  # Reports come every 2 steps: 2 at a time, and the last alone.
  assert calls == [1, 2, 2, 2, 2, 2, 1]


@pytest.mark.parametrize("steps_per_loop", [1, 2])
def test_accumulated_batches_are_one_large_batch(
  tmp_path, undropped, data_dir, steps_per_loop
):
  """The same examples, in batches of 8, and of 4 twice."""
  whole = settings(data_dir, 20, batching=Batching(128, 16, True))
  halves = dataclasses.replace(
    whole,
    batching=Batching(64, 16, True, accumulate_steps=2),
    execution=Execution(steps_per_loop=steps_per_loop),
  )
  runs = [
    train(tmp_path / name, undropped, run)
    for name, run in (("whole", whole), ("halves", halves))
  ]
  assert all(int(run.optimizer.iterations) == 20 for run in runs)
  for a, b in zip(*(run.model.weights for run in runs), strict=True):
    np.testing.assert_allclose(a, b, atol=ROUNDING, err_msg=a.path)


def test_an_accumulating_run_is_resumed_exactly(tmp_path, params, data_dir):
  batching = Batching(64, 16, accumulate_steps=3)
  whole, first = (
    settings(data_dir, steps, batching=batching) for steps in (9, 5)
  )
  uninterrupted = train(tmp_path / "whole", params, whole)
  train(tmp_path / "parts", params, first)
  resumed = train(tmp_path / "parts", params, whole)
  pairs = zip(uninterrupted.model.weights, resumed.model.weights, strict=True)
  for a, b in pairs:
    np.testing.assert_allclose(a, b, atol=1e-6, err_msg=a.path)


def test_a_lack_of_memory_shows_before_the_first_update(
  tmp_path, params, data_dir, monkeypatch
):
  trainer = make_trainer(tmp_path, params, settings(data_dir, 4))
  shapes = []

  def full(iterator):
    shapes.append(tuple(next(iterator)[0].shape))
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

  monkeypatch.setattr(trainer.model.runner, "_update_once", full)
  with pytest.raises(InputError, match="OOM when allocating.*--batch_size"):
    trainer.train()
  # Of the bucket of the longest examples: 128 tokens, up to 10 excluded.
  assert shapes == [(12, 9)]


def test_the_rehearsal_leaves_no_trace(tmp_path, params, data_dir):
  fp16 = settings(data_dir, 4, execution=Execution(dtype="fp16"))
  trainer = make_trainer(tmp_path, params, fp16)
  state = [
    *trainer.model.weights,
    *trainer.model.optimizer.variables,
    *trainer.model.loss_scale.variables,
  ]
  before = [v.numpy() for v in state]
  trainer._rehearse()
  for old, variable in zip(before, state, strict=True):
    np.testing.assert_array_equal(old, variable.numpy(), variable.path)


def test_a_run_says_what_it_is(tmp_path, params, data_dir, caplog):
  run = settings(data_dir, 2, batching=Batching(64, 16, accumulate_steps=2))
  with caplog.at_level("INFO", logger="absl"):
    trainer = train(tmp_path, params, run)
  text = "\n".join(caplog.messages)
  weights = trainer.model.trainable_variables
  total = sum(int(tf.size(v.value)) for v in weights)
  assert f"{total:,} trainable parameters: embedding 320, encoder" in text
  assert "up to 128 tokens a side: 2 batches of 64, over 1 replicas" in text
  assert "holds 6 sentences of 9 tokens" in text
  assert "of the time waiting for data" in text


def test_a_profile_is_recorded(tmp_path, params, data_dir):
  train(tmp_path, params, settings(data_dir, 4, profile_steps=(2, 3)))
  assert list(tmp_path.glob("logs/plugins/profile/*/*.xplane.pb"))


def test_tensorboard_shows_samples_norms_and_speed(tmp_path, params, data_dir):
  samples = [("a b", "c d", "e")]
  train(
    tmp_path,
    params,
    settings(data_dir, 4, enable_tensorboard=True),
    lambda *_: Evaluation({"bleu_uncased": 1.0}, samples),
  )
  (log,) = (tmp_path / "logs").iterdir()
  values = {}
  for raw in tf.data.TFRecordDataset(str(log)).as_numpy_iterator():
    for value in tf.compat.v1.Event.FromString(raw).summary.value:
      values[value.tag] = tf.make_ndarray(value.tensor)
  assert values["train/gradient_norm"] > 0
  assert values["train/tokens_per_second"] > 0
  assert values["evaluation/bleu_uncased"] == 1.0
  assert values["translations"].tolist()[1] == [b"a b", b"c d", b"e"]
