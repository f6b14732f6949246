"""The moving average of the weights, and weights that stay as they are."""

import dataclasses

import numpy as np
import pytest
from runs import (
  PARAMS,
  assert_equal_states,
  make_trainer,
  resume,
  settings,
  state,
  steps_of,
  train,
)

from official_transformer.errors import InputError
from official_transformer.model_directory.checkpoint_files import (
  MOVING_AVERAGE,
  WEIGHTS,
  best_weights_group,
  read_tensors,
  stored_shapes,
)
from official_transformer.model_directory.directory import (
  BEST,
  ModelDirectory,
)
from official_transformer.model_params import TransformerParams
from official_transformer.training.initial_weights import copy_weights
from official_transformer.training.settings import Execution
from official_transformer.training.step.step_runner import StepRunner

pytestmark = pytest.mark.slow

DECAY = 0.9


def weights(trainer):
  return {w.path: w.numpy() for w in trainer.model.weights}


def averages(trainer):
  return {a.path: a.numpy() for a in trainer.model.optimizer.average.averages}


@pytest.fixture(scope="module")
def averaged(tmp_path_factory, reversals):
  """The trainer of a run of 8 updates with an average."""
  run = settings(reversals, 8, average_decay=DECAY, steps_between_evals=8)
  return train(tmp_path_factory.mktemp("averaged"), PARAMS, run)


@pytest.mark.parametrize("execution", [Execution(), Execution(use_ctl=True)])
def test_the_average_follows_its_formula(
  tmp_path, reversals, execution, monkeypatch
):
  run = settings(reversals, 5, average_decay=DECAY, execution=execution)
  trainer = make_trainer(tmp_path, PARAMS, run)
  expected = weights(trainer)  # What training starts from.
  updates = []
  run_steps = StepRunner.__call__

  def followed(self, iterator, steps=1):
    result = run_steps(self, iterator, steps)
    n = steps_of(trainer)
    updates.append(n)
    # The update that makes n of them has seen n - 1.
    decay = min(DECAY, n / (9 + n))
    for path, weight in weights(trainer).items():
      expected[path] = decay * expected[path] + (1 - decay) * weight
    return result

  monkeypatch.setattr(StepRunner, "__call__", followed)
  # Its updates are undone.
  monkeypatch.setattr(trainer.model, "rehearse", lambda batches: None)
  trainer.train()
  assert updates == [1, 2, 3, 4, 5]
  for path, average in averages(trainer).items():
    np.testing.assert_allclose(average, expected[path], atol=1e-6)


def test_training_is_as_without_an_average(tmp_path, reversals, averaged):
  plain = train(tmp_path, PARAMS, settings(reversals, 8))
  for path, weight in weights(plain).items():
    np.testing.assert_array_equal(weight, weights(averaged)[path])


def test_a_resumed_average_is_that_of_one_run(tmp_path, reversals, averaged):
  run = settings(reversals, 8, average_decay=DECAY)
  train(tmp_path, PARAMS, dataclasses.replace(run, train_steps=3))
  parts = train(tmp_path, PARAMS, run)
  assert_equal_states(state(averaged), state(parts))
  for path, average in averages(averaged).items():
    np.testing.assert_array_equal(average, averages(parts)[path])


def test_an_average_that_begins_late_begins_with_the_weights(
  tmp_path, reversals
):
  first = train(tmp_path, PARAMS, settings(reversals, 3))
  run = settings(reversals, 3, average_decay=DECAY)
  again = make_trainer(tmp_path, PARAMS, run)
  again.train()
  for path, average in averages(again).items():
    np.testing.assert_array_equal(average, weights(first)[path])


def test_what_is_measured_kept_and_decoded_is_the_average(tmp_path, averaged):
  directory = averaged.directory
  prefix = directory.checkpoint_prefix(8)
  assert best_weights_group(prefix) == MOVING_AVERAGE
  (step,) = directory.checkpoint_steps(BEST)
  best = directory.checkpoint_prefix(step, BEST)
  assert best_weights_group(best) == WEIGHTS
  for path, average in averages(averaged).items():
    (stored,) = read_tensors(best, [f"{WEIGHTS}/{path}"]).values()
    np.testing.assert_array_equal(stored, average)
    # Training goes on from the weights themselves.
    assert np.abs(weights(averaged)[path] - average).max() > 0, path
  new = ModelDirectory(str(tmp_path / "new"))
  copy_weights(prefix, new)
  copied = new.checkpoint_prefix(0)
  assert stored_shapes(copied, MOVING_AVERAGE) == {}
  for path, average in averages(averaged).items():
    (stored,) = read_tensors(copied, [f"{WEIGHTS}/{path}"]).values()
    np.testing.assert_array_equal(stored, average)


@pytest.mark.parametrize("average_decay", [0.0, DECAY])
def test_frozen_weights_stay(tmp_path, reversals, average_decay):
  patterns = ("encoder_stack/*", "embedding/weights")
  run = settings(reversals, 5, freeze=patterns, average_decay=average_decay)
  trainer = make_trainer(tmp_path, PARAMS, run)
  before = weights(trainer)
  trainer.train()
  for path, weight in weights(trainer).items():
    frozen = "/encoder_stack/" in path or path.endswith("embedding/weights")
    assert (np.abs(weight - before[path]).max() == 0) == frozen, path
  stored = stored_shapes(trainer.directory.checkpoint_prefix(5), WEIGHTS)
  assert len(stored) == len(before)
  resumed = make_trainer(
    tmp_path, PARAMS, dataclasses.replace(run, train_steps=7)
  )
  resumed.train()
  for path, weight in weights(resumed).items():
    if "/encoder_stack/" in path:
      np.testing.assert_array_equal(weight, before[path])


def test_a_run_that_goes_on_freezes_the_same(tmp_path, reversals):
  run = settings(reversals, 3, freeze=("encoder_stack/*",))
  train(tmp_path, PARAMS, run)
  with pytest.raises(InputError, match="another --freeze"):
    train(tmp_path, PARAMS, settings(reversals, 5))


@pytest.mark.parametrize(
  ("patterns", "message"),
  [(("encoder/*",), "no variable"), (("*",), "leaves nothing")],
)
def test_what_cannot_be_frozen_is_refused(
  tmp_path, reversals, patterns, message
):
  with pytest.raises(InputError, match=message):
    make_trainer(tmp_path, PARAMS, settings(reversals, 5, freeze=patterns))


@pytest.mark.parametrize(
  "changes",
  [
    {
      "norm": "post",
      "positions": "learned",
      "max_positions": 30,
      "share_embeddings": "none",
      "output_bias": True,
      "attention_bias": True,
      "activation": "swish",
      "suppress_pad": True,
    },
    {
      "num_encoder_layers": 2,
      "num_decoder_layers": 1,
      "share_embeddings": "decoder",
      "positions": "interleaved",
      "activation": "gelu",
      "scale_embeddings": False,
    },
  ],
)
def test_variants_are_resumed(tmp_path, reversals, changes):
  params = dataclasses.replace(PARAMS, **changes)
  assert isinstance(params, TransformerParams)
  run = settings(reversals, 6)
  whole = train(tmp_path / "whole", params, run)
  parts = resume(tmp_path / "whole", params, run, tmp_path / "parts")
  assert_equal_states(state(whole), state(parts))
