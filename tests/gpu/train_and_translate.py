"""Trains a little, translates with that, and prints both as JSON.

python train_and_translate.py CPU|GPU fp32|bf16|fp16
"""

import dataclasses
import json
import sys
import tempfile

import tensorflow as tf
from runs import UNDROPPED, make_trainer, settings
from shared_files import reversed_pairs
from written_shards import write_shards

from official_transformer.decoding.searcher import Searcher
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  restore_variables,
)
from official_transformer.training.settings import Execution

STEPS = 800
# Larger than the other tests' models, and slower to move: it learns something.
PARAMS = dataclasses.replace(
  UNDROPPED,
  hidden_size=64,
  num_heads=4,
  filter_size=128,
  learning_rate=0.5,
  learning_rate_warmup_steps=50,
)


def main(device, dtype):
  if device == "CPU":
    tf.config.set_visible_devices([], "GPU")
  pairs = reversed_pairs(300, longest=8)
  with tempfile.TemporaryDirectory() as path:
    write_shards(pairs[50:], path, "x", "train", 2, seed=1)
    write_shards(pairs[:50], path, "x", "dev", 1, seed=None)
    run = settings(
      path,
      STEPS,
      steps_between_evals=STEPS,
      execution=Execution(dtype=dtype),
    )
    trainer = make_trainer(f"{path}/model", PARAMS, run)
    losses = []
    runner = trainer.model.runner

    def recorded(iterator, steps=1):
      logs = runner(iterator, steps)
      losses.append(float(logs["loss"]))
      return logs

    trainer.model.runner = recorded
    trainer.model.keras_model.step_runner = recorded
    trainer.train()
    transformer = build_transformer(PARAMS, dtype, is_train=False)
    restore_variables(
      trainer.directory.latest_checkpoint(), WEIGHTS, transformer.weights
    )
    devices = {tf.DeviceSpec.from_string(w.value.device).device_type
               for w in transformer.weights}  # fmt: skip
    # What it has seen: a model that small, trained that little, knows no more.
    found = Searcher(transformer).search(
      [source for source, _ in pairs[50:100]]
    )
  every = losses[-STEPS:]
  result = {
    "losses": [every[0], every[9], every[49], every[-1]],
    "translations": [hypotheses[0].ids for hypotheses in found],
    "expected": [target[:-1] for _, target in pairs[50:100]],
    "devices": sorted(devices),
  }
  print(json.dumps(result))


if __name__ == "__main__":
  main(*sys.argv[1:])
