"""Trains for a few steps as `--mode=train` does, and times them.

    python benchmarks/measure_training.py --dtype=bf16
    python benchmarks/measure_training.py --data_dir=data --hidden_size=128

Prints one JSON object: the seconds of each step, the process' largest resident
memory, and a GPU's where there is one. `train.py` runs this beside its peers.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import json
import os
import resource
import time
from typing import Any

from official_transformer.hardware.processor import prefer_onednn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
prefer_onednn()  # As the commands do, before TensorFlow is imported.

import keras
import numpy as np
import tensorflow as tf

from official_transformer.data.buckets import Batching
from official_transformer.data.data_pipeline import train_dataset
from official_transformer.data.record_check import check_records
from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.model_params import PARAM_SETS, TransformerParams
from official_transformer.ops.recompute import recompute_in_gradients
from official_transformer.training.step.loss_scale import DynamicLossScale
from official_transformer.training.step.optimizer import create_optimizer
from official_transformer.training.step.step_runner import FitModel, StepRunner
from official_transformer.training.step.training_step import TrainingStep

SHAPES = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")


class Clock(keras.callbacks.Callback):
  """Notes when each step ends."""

  def __init__(self) -> None:
    super().__init__()
    self.ends: list[float] = []

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Notes it, once the devices are done."""
    float(logs["loss"])
    self.ends.append(time.perf_counter())


def training_model(
  params: TransformerParams, dtype: str, compile: bool, recompute: bool
) -> FitModel:
  """Returns a model ready for `fit`."""
  transformer = build_transformer(params, dtype)
  if recompute:
    for stack in (transformer.encoder_stack, transformer.decoder_stack):
      for layer in stack.layers:
        recompute_in_gradients(layer)
  made = create_training_model(transformer)
  model = FitModel(inputs=made.inputs, outputs=made.outputs)
  optimizer = create_optimizer(params)
  optimizer.build(model.trainable_variables)
  model.compile(optimizer=optimizer, jit_compile=False)
  scale = DynamicLossScale() if dtype == "fp16" else None
  step = TrainingStep(model, optimizer, 1, scale)
  model.step_runner = StepRunner(
    step, tf.distribute.get_strategy(), compile=compile
  )
  return model


def batches(arguments: argparse.Namespace, vocab_size: int) -> tf.data.Dataset:
  """Returns batches of data, or one batch for ever."""
  if arguments.data_dir:
    shards = sorted(glob.glob(os.path.join(arguments.data_dir, "*train-*")))
    index = check_records(shards, vocab_size).index
    return train_dataset(index, Batching(arguments.batch_size, 256), seed=1)
  shape = (arguments.sentences, arguments.length)
  rng = np.random.default_rng(0)
  x, y = (tf.constant(rng.integers(2, vocab_size, shape)) for _ in range(2))
  dataset = tf.data.Dataset.from_tensors((x, y)).repeat()
  if arguments.xla:
    return dataset
  # Of no static shape, as batches of data are.
  return dataset.unbatch().padded_batch(arguments.sentences).prefetch(4)


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--param_set", default="base", choices=PARAM_SETS)
  for name in SHAPES:
    parser.add_argument(f"--{name}", type=int)
  parser.add_argument("--vocab_size", type=int, default=32768)
  parser.add_argument("--sentences", type=int, default=64)
  parser.add_argument("--length", type=int, default=32)
  parser.add_argument("--data_dir", default="")
  parser.add_argument("--batch_size", type=int, default=4096)
  parser.add_argument("--dtype", default="fp32")
  parser.add_argument("--steps", type=int, default=8)
  parser.add_argument("--warmup", type=int, default=2)
  parser.add_argument("--xla", action="store_true")
  parser.add_argument("--recompute", action="store_true")
  arguments = parser.parse_args()
  given = {name: getattr(arguments, name) for name in SHAPES}
  params = dataclasses.replace(
    PARAM_SETS[arguments.param_set],
    vocab_size=arguments.vocab_size,
    **{name: value for name, value in given.items() if value},
  )
  model = training_model(
    params, arguments.dtype, arguments.xla, arguments.recompute
  )
  clock = Clock()
  model.fit(
    batches(arguments, params.vocab_size),
    steps_per_epoch=arguments.warmup + arguments.steps,
    callbacks=[clock],
    verbose=0,
  )
  found: dict[str, Any] = {
    "seconds": np.diff(clock.ends)[arguments.warmup - 1 :].tolist(),
    "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
  }
  if tf.config.list_logical_devices("GPU"):
    memory = tf.config.experimental.get_memory_info("GPU:0")
    found["gpu_peak_kib"] = memory["peak"] // 1024
  print(json.dumps(found))


if __name__ == "__main__":
  main()
