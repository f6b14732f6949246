"""Writing event files for TensorBoard, without the tensorboard package.

But for hyper-parameters, whose messages are that package's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from official_transformer.errors import InputError
from official_transformer.training.failures import failures_are_logged


def _metadata(plugin: str, data_class: int) -> tf.compat.v1.SummaryMetadata:
  return tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin),
    data_class=data_class,
  )


# The formats of tf.summary.scalar and tf.summary.text, which need the
# tensorboard package.
_SCALAR = _metadata("scalars", data_class=1)
_TEXT = _metadata("text", data_class=2)
_HISTOGRAM = _metadata("histograms", data_class=2)
_IMAGES = _metadata("images", data_class=3)
_BINS = 30


class SummaryWriter:
  """Writes scalars and tables of text.

  Attributes:
    directory: directory of the event files.
    with_histograms: whether histograms of the weights are written.
  """

  def __init__(self, directory: str, with_histograms: bool = False) -> None:
    self.directory = directory
    self.with_histograms = with_histograms
    try:
      self._writer = tf.summary.create_file_writer(directory)
    except tf.errors.OpError as error:
      raise InputError(
        f"TensorBoard's records cannot be written to {directory}: "
        f"{error.message}"
      ) from None

  def write_scalars(self, scalars: Mapping[str, float], step: int) -> None:
    """Writes numbers under their names."""
    with self._writer.as_default(step=step):
      for name, value in scalars.items():
        tf.summary.write(name, tf.cast(value, tf.float32), metadata=_SCALAR)
    self._writer.flush()

  def write_report(self, numbers: Mapping[str, float], step: int) -> None:
    """Writes a progress report's numbers; no failure ends the run."""
    with failures_are_logged(f"TensorBoard's record of step {step}"):
      scalars = {f"train/{name}": value for name, value in numbers.items()}
      self.write_scalars(scalars, step)

  def write_table(
    self, name: str, rows: Sequence[Sequence[str]], step: int
  ) -> None:
    """Writes rows of text, the first of them a heading."""
    with self._writer.as_default(step=step):
      tf.summary.write(name, tf.constant(rows), metadata=_TEXT)
    self._writer.flush()

  def write_histogram(
    self, name: str, weight: tf.Tensor | keras.Variable, step: int
  ) -> None:
    """Writes how a weight's values are distributed; see `flush`."""
    values = tf.convert_to_tensor(weight).numpy().astype(np.float64)
    counts, edges = np.histogram(values, bins=_BINS)
    rows = np.stack([edges[:-1], edges[1:], counts], axis=1)
    with self._writer.as_default(step=step):
      tf.summary.write(name, tf.constant(rows, tf.float64), metadata=_HISTOGRAM)

  def write_picture(self, name: str, png: bytes, step: int) -> None:
    """Writes a picture, which is in PNG's format; see `flush`."""
    height, width, _ = tf.io.decode_png(png).shape
    content = [str(width).encode(), str(height).encode(), png]
    with self._writer.as_default(step=step):
      tf.summary.write(name, tf.constant(content), metadata=_IMAGES)

  def write_hyperparameters(self, values: Mapping[str, object]) -> None:
    """Writes the run's entry on the page of hyper-parameters.

    Without the tensorboard package there is no entry, and a log message says
    so.
    """
    try:
      from tensorboard.plugins.hparams.summary import session_start_pb
    except ImportError:
      logging.info(
        "TensorBoard will have no page of hyper-parameters: pip install "
        "'official-transformer[plots]'"
      )
      return
    message = session_start_pb(
      {
        name: value if isinstance(value, bool | int | float) else str(value)
        for name, value in values.items()
        if value is not None
      }
    )
    with self._writer.as_default(step=0):
      tf.summary.experimental.write_raw_pb(message.SerializeToString())
    self._writer.flush()

  def flush(self) -> None:
    """Forces the written events to the disk."""
    self._writer.flush()
