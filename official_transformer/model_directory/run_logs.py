"""The curves of a run, from its evaluations and TensorBoard logs."""

from __future__ import annotations

import collections
import os

import tensorflow as tf
from absl import logging

from official_transformer.model_directory.directory import (
  LOGS,
  MEASUREMENTS_FILE,
  ModelDirectory,
)
from official_transformer.model_directory.measurements import Measurements
from official_transformer.storage import file_system

_EVENTS = "events.out."

Curves = dict[str, list[tuple[int, float]]]


def read_curves(directory: ModelDirectory) -> Curves:
  """Reads the numbers of a run, steps ascending.

  Args:
    directory: model directory. Without `logs`, which training writes with
      `--enable_tensorboard`, only the values of evaluations are returned.

  Returns:
    Steps and values, by the name of the measurement. If a resumed run repeated
    a step, the later value counts.
  """
  curves: dict[str, dict[int, float]] = collections.defaultdict(dict)
  logs = directory.join(LOGS)
  if file_system.is_directory(logs):
    # Their names begin with the time at which they were begun.
    for name in sorted(file_system.names_in(logs)):
      if name.startswith(_EVENTS):
        _read_events(os.path.join(logs, name), curves)
  measurements = Measurements(directory.join(MEASUREMENTS_FILE))
  for step in measurements.steps():
    for name, value in measurements[step].items():
      curves[name][step] = value
  return {name: sorted(curve.items()) for name, curve in curves.items()}


def _read_events(path: str, curves: dict[str, dict[int, float]]) -> None:
  """Adds the scalars of a TensorBoard file."""
  first = True
  try:
    for record in tf.data.TFRecordDataset(path):
      event = tf.compat.v1.Event.FromString(record.numpy())
      for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name != "scalars":
          continue
        if first:  # A resumed run replaces later values of earlier runs.
          first = False
          for curve in curves.values():
            for step in [s for s in curve if s >= event.step]:
              del curve[step]
        number = float(tf.make_ndarray(value.tensor))
        curves[value.tag][event.step] = number
  except (tf.errors.DataLossError, ValueError) as error:
    # It ended in the midst of a record, as a run does that is killed.
    logging.warning("%s is not whole: %s", path, str(error).split("\n")[0])
