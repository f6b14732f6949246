"""The whole system must learn: digit strings, reversed."""

import random

import pytest

from data_prep.encoding.preparation import prepare
from data_prep.reading.corpora import Corpus, DataSettings
from official_transformer.data.data_directory import DataDirectory
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.decoding.translator import Translator
from official_transformer.model_directory.directory import (
  ModelDirectory,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.training.model_setup import (
  ModelRequest,
  plan_directory,
)
from official_transformer.training.requested_batching import RequestedBatching
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.trainer import Trainer

STEPS = 500


def digit_strings(count, seed):
  rng = random.Random(seed)
  return sorted(
    {
      " ".join(str(rng.randrange(10)) for _ in range(rng.randint(4, 10)))
      for _ in range(count)
    }
  )


@pytest.mark.slow
def test_reverses_digit_strings_it_has_never_seen(tmp_path):
  strings = digit_strings(12000, seed=1)
  random.Random(2).shuffle(strings)
  unseen, seen = strings[:500], strings[500:]
  paths = [str(tmp_path / name) for name in ("source", "target")]
  for path, step in zip(paths, (1, -1), strict=True):
    with open(path, "w", encoding="utf-8") as stream:
      stream.writelines(" ".join(s.split()[::step]) + "\n" for s in seen)
  data_dir = str(tmp_path / "data")
  prepare(
    {"train": Corpus(paths[:1], paths[1:])},
    DataSettings(data_dir, "subtoken", vocab_size=40, shards=2),
  )
  request = RequestedParams(
    "small",
    {
      "hidden_size": 64,
      "filter_size": 128,
      "learning_rate": 0.5,
      "learning_rate_warmup_steps": 100,
      "layer_postprocess_dropout": 0.0,
      "attention_dropout": 0.0,
      "relu_dropout": 0.0,
      "extra_decode_length": 2,
    },
  )
  directory = ModelDirectory(str(tmp_path / "model"))
  plan = plan_directory(
    directory,
    ModelRequest(
      request,
      RequestedBatching(batch_size=2048, max_length=12),
      DataDirectory(data_dir),
    ),
  )
  plan.carry_out()
  description = plan.description
  settings = TrainingSettings(
    train_steps=STEPS,
    steps_between_evals=STEPS,
    batching=description.batching,
    validation_steps=0,
    seed=1,
    keep_checkpoint_max=1,
    log_steps=100,
    num_parallel_calls=2,
  )
  data = read_prepared_data(
    data_dir, description.vocabularies.sizes, with_dev=False
  )
  Trainer(directory, description.params, settings, data).train()
  translated = Translator.load(directory.path).translate(unseen)
  exact = sum(
    translation.split() == source.split()[::-1]
    for translation, source in zip(translated, unseen, strict=True)
  )
  assert exact >= 0.99 * len(unseen)
