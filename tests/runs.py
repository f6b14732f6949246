"""Short training runs, through the classes that a command uses."""

import dataclasses
import json
import shutil

import numpy as np

from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import TransformerParams
from official_transformer.training.evaluations import ScoredSet
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.trainer import Trainer


@dataclasses.dataclass(frozen=True)
class Run(TrainingSettings):
  """A run, and the data that it is over; None is synthetic ones."""

  data_dir: str | None = None


SETTINGS = Run(
  train_steps=10,
  steps_between_evals=4,
  batching=Batching(64, 16),
  validation_steps=1,
  seed=1,
  keep_checkpoint_max=1,
  log_steps=1,
  num_parallel_calls=1,
)
# One layer: tracing is most of what these runs cost.
PARAMS = TransformerParams(
  vocab_size=20,
  hidden_size=16,
  num_hidden_layers=1,
  num_heads=2,
  filter_size=32,
  learning_rate_warmup_steps=10,
  extra_decode_length=5,
)
UNDROPPED = dataclasses.replace(
  PARAMS, layer_postprocess_dropout=0.0, attention_dropout=0.0, relu_dropout=0.0
)
# Of float32, over some updates by graphs that sum in another order. How far it
# reaches depends on the processor: 1.1e-6 was seen. One update moves every
# variable by 4e-2 or more.
ROUNDING = 1e-5


def settings(data_dir, steps, **changes):
  """Returns the settings of a run over `reversals`."""
  run = dataclasses.replace(
    SETTINGS,
    data_dir=data_dir,
    train_steps=steps,
    batching=Batching(128, 16),
    validation_steps=10,
    seed=3,
    keep_checkpoint_max=2,
    log_steps=2,
    num_parallel_calls=2,
  )
  return dataclasses.replace(run, **changes)


def make_trainer(
  path, params, run, evaluate=None, distribution=None, test_set="a test set"
):
  """Returns a trainer of one run; `evaluate` is on the test set."""
  data = None
  if run.data_dir is not None:
    data = read_prepared_data(run.data_dir, params.vocab_size, with_dev=True)
  directory = ModelDirectory(str(path))
  scored_set = evaluate and ScoredSet(evaluate, test_set)
  return Trainer(directory, params, run, data, scored_set, distribution)


def train(path, params, run, evaluate=None):
  """Makes a run; returns its trainer."""
  trainer = make_trainer(path, params, run, evaluate)
  trainer.train()
  return trainer


def resume(path, params, run, copy, distribution=None):
  """Makes the end of a finished run again, in a copy without its last step.

  Returns the trainer, which has begun with the checkpoint before.
  """
  shutil.copytree(path, copy)
  directory = ModelDirectory(str(copy))
  first, last = directory.checkpoint_steps()[-2:]
  shutil.rmtree(directory.checkpoint_directory(last))
  trainer = make_trainer(copy, params, run, distribution=distribution)
  restore, began = trainer._resume, []
  trainer._resume = lambda: began.append(restore()) or began[0]
  trainer.train()
  assert began == [first]
  return trainer


def steps_of(trainer):
  """Returns how many updates have been made."""
  return int(trainer.model.optimizer.iterations)


def state(trainer):
  """Returns the values of weights and optimizer, by path."""
  variables = (*trainer.model.weights, *trainer.model.optimizer.variables)
  return {variable.path: variable.numpy() for variable in variables}


def assert_equal_states(one, other, tolerance=0.0):
  """Checks what `state` has returned of two runs."""
  assert one.keys() == other.keys()
  for path, value in one.items():
    np.testing.assert_allclose(
      value, other[path], rtol=0, atol=tolerance, err_msg=path
    )


def json_lines(path):
  """Returns the objects in a file of lines of JSON."""
  return [json.loads(line) for line in path.read_text().splitlines()]
