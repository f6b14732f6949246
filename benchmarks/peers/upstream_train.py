"""Trains tensorflow/models' own Transformer for a few steps and times them.

Runs in an environment of its own, with tf-models-official 2.20 and tf-keras,
and TF_USE_LEGACY_KERAS=1. Prints one JSON object.
"""

import argparse
import json
import resource
import time

import measuring
import numpy as np
import tensorflow as tf
import tf_keras
from official.legacy.transformer import (
  data_pipeline,
  model_params,
  optimizer,
  transformer,
)


def parameters(arguments):
  """Returns upstream's parameters for the shapes asked for."""
  shapes = {
    "hidden_size": arguments.hidden_size,
    "filter_size": arguments.filter_size,
    "num_heads": arguments.num_heads,
    "num_hidden_layers": arguments.num_hidden_layers,
    "vocab_size": arguments.vocab_size,
  }
  return {
    **model_params.BASE_PARAMS,
    **shapes,
    "dtype": tf.float32,
    "padded_decode": False,
    "enable_metrics_in_training": False,
  }


def batches(arguments, params):
  """Returns upstream's own pipeline over shards, or one batch for ever."""
  if not arguments.data_dir:
    shape = (arguments.sentences, arguments.length)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(2, params["vocab_size"], shape) for _ in range(2))
    return tf.data.Dataset.from_tensors(((x, y),)).repeat()
  params.update(
    data_dir=arguments.data_dir,
    batch_size=arguments.batch_size,
    max_length=256,
    num_parallel_calls=2,
    max_io_parallelism=2,
    num_gpus=1,
    static_batch=False,
    use_synthetic_data=False,
    repeat_dataset=None,
  )
  pairs = data_pipeline.train_input_fn(params)
  return pairs.map(data_pipeline.map_data_for_transformer_fn)


class Clock(tf_keras.callbacks.Callback):
  """Notes when each step ends."""

  def __init__(self):
    super().__init__()
    self.ends = []

  def on_train_batch_end(self, batch, logs=None):
    """Notes it."""
    self.ends.append(time.perf_counter())


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  measuring.add_training_flags(parser)
  parser.add_argument("--data_dir", default="")
  parser.add_argument("--batch_size", type=int, default=4096)
  parser.add_argument("--xla", action="store_true")
  arguments = parser.parse_args()
  params = parameters(arguments)
  model = transformer.create_model(params, is_train=True)
  schedule = optimizer.LearningRateSchedule(
    2.0, arguments.hidden_size, warmup_steps=16000
  )
  adam = tf_keras.optimizers.Adam(schedule, 0.9, 0.997, epsilon=1e-9)
  model.compile(adam, jit_compile=arguments.xla)
  clock = Clock()
  model.fit(
    batches(arguments, params),
    steps_per_epoch=arguments.warmup + arguments.steps,
    callbacks=[clock],
    verbose=0,
  )
  seconds = np.diff(clock.ends)[arguments.warmup - 1 :]
  memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  print(json.dumps({"seconds": seconds.tolist(), "peak_kib": memory}))


if __name__ == "__main__":
  main()
