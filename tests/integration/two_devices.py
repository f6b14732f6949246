"""Trains on one logical CPU device and on two; run by `test_distribution.py`.

A process of its own, because logical devices are chosen before TensorFlow
starts; with `tests` on its path. Prints one JSON object. With `--long` it
makes every comparison, else those that nothing else implies.
"""

import dataclasses
import json
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf
from runs import PARAMS, UNDROPPED, make_trainer, resume, settings, state
from shared_files import reversed_pairs
from written_shards import write_shards

from official_transformer.data.buckets import Batching
from official_transformer.model.transformer import create_model
from official_transformer.training.settings import Execution
from official_transformer.training.step.optimizer import create_optimizer
from official_transformer.training.step.training_step import TrainingStep
from official_transformer.training.strategy import create_distribution

STEPS = 20


class Recorder:
  """A runner of steps that keeps what they report."""

  def __init__(self, runner):
    self.runner = runner
    self.logs = []

  def __call__(self, iterator, steps=1):
    logs = self.runner(iterator, steps)
    self.logs.append({k: float(v) for k, v in logs.items()})
    return logs

  def values(self, name):
    # The first ones are of batches that are tried.
    return np.array([logs[name] for logs in self.logs[-STEPS:]])


def run_of(data_dir, **changes):
  return settings(
    data_dir,
    STEPS,
    steps_between_evals=STEPS,
    validation_steps=5,
    log_steps=10,
    enable_metrics_in_training=True,
    **changes,
  )


def train(data_dir, distribution, params, execution, divisor=2, accumulate=1):
  """Returns the weights before and after a run, and what it reported.

  The last of the weights after is the last accuracy.
  """
  batching = Batching(
    128, 16, batch_divisor=divisor, accumulate_steps=accumulate
  )
  with tempfile.TemporaryDirectory() as path:
    run = run_of(data_dir, batching=batching, execution=execution)
    trainer = make_trainer(path, params, run, distribution=distribution)
    recorder = Recorder(trainer.model.runner)
    trainer.model.runner = recorder
    trainer.model.keras_model.step_runner = recorder
    variables = trainer.model.keras_model.trainable_variables
    before = [w.numpy() for w in variables]
    trainer.train()
  after = [
    *(w.numpy() for w in variables),
    np.float32(recorder.logs[-1]["accuracy"]),
  ]
  return before, after, recorder


def distance(first, second):
  return float(
    max(np.abs(a - b).max() for a, b in zip(first, second, strict=False))
  )


def drift(first, second, name):
  """Returns by how much of itself a reported number differs, at most."""
  one, other = first.values(name), second.values(name)
  return float((np.abs(one - other) / np.abs(one)).max())


def main(is_long):
  cpu = tf.config.list_physical_devices("CPU")[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
  )
  pairs = reversed_pairs(200, longest=14)
  devices = ["CPU:0", "CPU:1"]
  one = create_distribution("one_device", devices[:1])
  # One for all runs: strategies of one process share TensorFlow's numbering of
  # collective operations, and get into each other's way.
  two = create_distribution("mirrored", devices)
  fit, loop = Execution(), Execution(use_ctl=True)
  with tempfile.TemporaryDirectory() as data_dir:
    write_shards(pairs[20:], data_dir, "x", "train", 2, seed=1)
    write_shards(pairs[:20], data_dir, "x", "dev", 1, seed=None)
    start, single, alone = train(data_dir, one, UNDROPPED, fit)
    found = {"moved": distance(start, single)}
    ways = [("fit", two, fit)]
    if is_long:
      packed = create_distribution("mirrored", devices, "hierarchical_copy", 2)
      ways += [("loop", two, loop), ("hierarchical_copy", packed, fit)]
    for name, distribution, execution in ways:
      _, end, together = train(data_dir, distribution, UNDROPPED, execution)
      found[name] = distance(single, end)
      # Adam does not see how long a gradient is, and clipping makes all alike.
      found[f"gradients_{name}"] = drift(alone, together, "gradient_norm")
    if is_long:
      again = Execution(recompute=True)
      _, kept, _ = train(data_dir, two, PARAMS, fit)
      _, recomputed, _ = train(data_dir, two, PARAMS, again)
      found["recomputed"] = distance(kept, recomputed)
      _, one_loop, _ = train(data_dir, one, UNDROPPED, loop)
      found["one_device_loop"] = distance(single, one_loop)
      _, whole, _ = train(data_dir, one, UNDROPPED, fit, divisor=1)
      _, uneven, _ = train(data_dir, two, UNDROPPED, fit, divisor=1)
      found["uneven_shares"] = distance(whole, uneven)
    # What is compared from here on is not the validation.
    os.remove(os.path.join(data_dir, "x-dev-00001-of-00001"))
    _, summed, _ = train(data_dir, one, UNDROPPED, fit, 1, accumulate=2)
    # A clipped gradient is longer to Adam or shorter by how it differs in norm
    # from those before; a low rate keeps rounding from growing over the steps.
    clipped = dataclasses.replace(
      UNDROPPED, clip_norm=0.5, learning_rate_warmup_steps=2000
    )
    _, single_clipped, alone_clipped = train(data_dir, one, clipped, fit)
    # By the loop, which is compared by that, too.
    _, double_clipped, both_clipped = train(data_dir, two, clipped, loop)
    # Of gradients as they were.
    found["longest_gradient"] = float(
      alone_clipped.values("gradient_norm").max()
    )
    found["clipped"] = distance(single_clipped, double_clipped)
    found["gradients_clipped"] = drift(
      alone_clipped, both_clipped, "gradient_norm"
    )
    several = Execution(steps_per_loop=2)
    _, shared, _ = train(data_dir, two, UNDROPPED, several, 1, accumulate=2)
    found["accumulated_in_unequal_shares"] = distance(summed, shared)
    if is_long:
      _, _, half = train(data_dir, two, UNDROPPED, Execution(dtype="fp16"))
      found["fp16_loss"] = drift(alone, half, "loss")
      found["fp16_gradients"] = drift(alone, half, "gradient_norm")
    found["masks_differ"] = masks_differ(two.strategy)
    # For the rest of this process.
    tf.config.experimental.enable_op_determinism()
    ways = {"loop": True, "fit": False} if is_long else {"loop": True}
    found |= resumed_distances(data_dir, two, ways)
  json.dump(found, sys.stdout)


def resumed_distances(data_dir, distribution, ways):
  """Returns how far resumed runs end from the one that saved their start.

  That one is made by `fit`, the others by each of the ways, which say whether
  it is the loop.
  """

  def run_by(use_ctl):
    return run_of(
      data_dir,
      batching=Batching(128, 16, batch_divisor=2, accumulate_steps=2),
      execution=Execution(use_ctl=use_ctl, deterministic=True),
      save_checkpoints_steps=7,
      keep_checkpoint_max=5,
    )

  found = {}
  with tempfile.TemporaryDirectory() as path:
    whole = os.path.join(path, "whole")
    run = run_by(use_ctl=False)
    trainer = make_trainer(whole, PARAMS, run, distribution=distribution)
    trainer.train()
    end = list(state(trainer).values())
    for name, way in ways.items():
      parts = os.path.join(path, name)
      resumed = resume(whole, PARAMS, run_by(way), parts, distribution)
      rest = list(state(resumed).values())
      found[f"resumed_{name}"] = distance(end, rest)
  return found


def masks_differ(strategy):
  """Returns whether replicas with equal examples lose different amounts."""
  with strategy.scope():
    model = create_model(PARAMS, is_train=True)
    step = TrainingStep(model, create_optimizer(PARAMS), seed=1)
  batch = tf.constant([[5, 6, 7, 8, 9, 1]] * 8, tf.int64)

  def loss(micro_batch):
    _, totals = step.gradients_of(batch, batch, micro_batch)
    return totals.loss

  run = tf.function(
    lambda micro_batch: strategy.run(loss, [micro_batch]), autograph=False
  )
  return (
    len(
      {
        float(found)
        for micro_batch in (None, tf.constant(0), tf.constant(1))
        for found in strategy.experimental_local_results(run(micro_batch))
      }
    )
    == 6
  )


if __name__ == "__main__":
  main("--long" in sys.argv[1:])
