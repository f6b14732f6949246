"""Writing what TensorBoard shows, without the tensorboard package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from official_transformer.training.failures import failures_are_logged


def _metadata(plugin: str, data_class: int) -> tf.compat.v1.SummaryMetadata:
  return tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin),
    data_class=data_class,
  )


# What tf.summary.scalar and tf.summary.text write, which need that package.
_SCALAR = _metadata("scalars", data_class=1)
_TEXT = _metadata("text", data_class=2)


class SummaryWriter:
  """Writes scalars and tables of text.

  Attributes:
    directory: of the event files.
  """

  def __init__(self, directory: str) -> None:
    self.directory = directory
    self._writer = tf.summary.create_file_writer(directory)

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
