import logging
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.errors import InputError, RunError
from official_transformer.model_directory.checkpoint_files import (
  OPTIMIZER,
  WEIGHTS,
)
from official_transformer.model_directory.directory import BEST, ModelDirectory
from official_transformer.training import checkpoints as lib


@pytest.fixture
def weight():
  return keras.Variable([1.0, 2.0], name="weight")


@pytest.fixture
def manager(tmp_path, weight):
  slot = keras.Variable(0.0, name="slot")
  groups = {WEIGHTS: [weight], OPTIMIZER: [slot]}
  return lib.CheckpointManager(ModelDirectory(str(tmp_path)), groups, 2)


def test_the_newest_are_kept_and_interim_ones_not_counted(manager):
  directory = manager.directory
  for step, interim, kept in (
    (1, False, [1]),
    (2, True, [1, 2]),
    (3, True, [1, 3]),
    (4, False, [1, 4]),
    (5, True, [1, 4, 5]),
    (6, False, [4, 6]),
  ):
    manager.save(step, seed=9, interim=interim)
    manager.drop_superseded(step)
    assert directory.checkpoint_steps() == kept
  assert lib.read_progress(directory.latest_checkpoint()) == (6, 9)


def test_the_best_is_kept_apart_without_the_optimizer(manager, weight):
  directory = manager.directory
  manager.save_best(3)
  weight.assign([5.0, 6.0])
  manager.save_best(7)
  assert directory.checkpoint_steps(BEST) == [7]
  assert directory.checkpoint_steps() == []
  reader = tf.train.load_checkpoint(directory.checkpoint_prefix(7, BEST))
  assert set(reader.get_variable_to_shape_map()) == {"weights/weight", "step"}
  np.testing.assert_array_equal(reader.get_tensor("weights/weight"), [5, 6])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_not_saved(manager, weight, bad):
  manager.save(1, seed=9)
  weight.assign([bad, 1.0])
  with pytest.raises(RunError, match="after step 2, weight holds numbers"):
    manager.save(2, seed=9)
  assert manager.directory.checkpoint_steps() == [1]


def cut_off(directory, step):
  path = directory.checkpoint_prefix(step) + ".data-00000-of-00001"
  os.truncate(path, os.path.getsize(path) - 1)


def test_damaged_checkpoints_are_set_aside_until_made_again(manager, caplog):
  manager.keep_max = 0
  directory = manager.directory
  for step in (2, 4, 6, 8):
    manager.save(step, seed=9)
  for step in (2, 6, 8):
    cut_off(directory, step)
  with caplog.at_level(logging.ERROR, logger="absl"):
    lib.clean_up(directory)
  # What is older than the newest whole one is nobody's business.
  assert directory.checkpoint_steps() == [2, 4]
  assert sorted(os.listdir(directory.join("checkpoints"))) == [
    "step-2",
    "step-4",
    "step-6.damaged",
    "step-8.damaged",
  ]
  assert len(caplog.messages) == 2
  assert "step-8/model is missing or damaged" in caplog.messages[0]
  assert caplog.messages[0].endswith("going on from the one of step 4")
  manager.save(6, seed=9)
  manager.drop_superseded(6)
  assert "step-6.damaged" not in os.listdir(directory.join("checkpoints"))
  assert "step-8.damaged" in os.listdir(directory.join("checkpoints"))


def test_where_all_are_damaged_nothing_starts_afresh(manager):
  for step in (2, 4):
    manager.save(step, seed=9)
    cut_off(manager.directory, step)
  for _ in range(2):
    with pytest.raises(InputError, match="no checkpoint in .* can be read"):
      lib.clean_up(manager.directory)
    assert manager.directory.checkpoint_steps() == [2, 4]


def test_what_an_interrupted_run_left_is_removed(manager, tmp_path):
  manager.save(2, seed=9)
  for name in (
    "model.json.incomplete",
    "checkpoints/step-4.incomplete",
    "best/step-4.incomplete",
    "translations/step-4.txt.incomplete",
    "nonfinite-step-4.jsonl.incomplete",
    "translations/test.incomplete",
    "download.incomplete",
  ):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
  lib.clean_up(manager.directory)
  left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*incomplete")}
  assert left == {"download.incomplete", "translations/test.incomplete"}


def test_a_full_disk_costs_no_earlier_checkpoint(manager, weight, monkeypatch):
  manager.save(1, seed=9)

  def full(**_):
    raise tf.errors.ResourceExhaustedError(None, None, "No space left")

  monkeypatch.setattr(tf.raw_ops, "SaveV2", full)
  with pytest.raises(OSError, match="No space left"):
    manager.save(2, seed=9)
  assert manager.directory.checkpoint_steps() == [1]
  weight.assign([0.0, 0.0])
  manager.restore(manager.directory.latest_checkpoint())
  np.testing.assert_array_equal(weight, [1.0, 2.0])
