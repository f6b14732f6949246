"""What happens beside the updates of a run: progress, milestones, scalars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
import tqdm
from absl import logging

from official_transformer.training.training_step import StepResult

Scalars = Mapping[str, float]

SCALAR = tf.compat.v1.SummaryMetadata(
  plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
  data_class=1,  # DATA_CLASS_SCALAR
)


class ProgressReport(keras.callbacks.Callback):
  """A progress bar on a terminal, a log line every so often elsewhere.

  Both show the loss, the learning rate, source and target tokens a second
  (without padding) and the time left.

  Attributes:
    first_step: updates made before this run.
    last_step: updates made when it ends.
    log_steps: updates between two reports.
    with_throughput: whether reports tell tokens a second, and how many it was
      on the whole when training ends.
    step: updates made so far.
  """

  def __init__(
    self,
    first_step: int,
    last_step: int,
    log_steps: int,
    with_throughput: bool = True,
  ) -> None:
    super().__init__()
    self.first_step = first_step
    self.last_step = last_step
    self.log_steps = log_steps
    self.with_throughput = with_throughput
    self.step = first_step
    self._pending: list[Mapping[str, Any]] = []

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts the clock and the bar."""
    self._started = self._reported = time.monotonic()
    self._paused = 0.0
    self._tokens = 0
    self._bar = tqdm.tqdm(
      total=self.last_step,
      initial=self.first_step,
      unit="step",
      file=sys.stderr,
      disable=not sys.stderr.isatty(),
      dynamic_ncols=True,
    )

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Collects the step's result; reports where it is time to."""
    self.step += 1
    self._pending.append(logs)
    if self.step % self.log_steps == 0 or self.step == self.last_step:
      self._report()

  def on_train_end(self, logs: Any = None) -> None:
    """Closes the bar; tells the speed of the whole run."""
    if self._pending:  # Stopped between two reports.
      self._report()
    self._bar.close()
    if self.with_throughput:
      seconds = max(time.monotonic() - self._started - self._paused, 1e-9)
      logging.info(
        "%d steps, %d source and target tokens, %.0f tokens/s",
        self.step - self.first_step,
        self._tokens,
        self._tokens / seconds,
      )

  def make_room(self) -> None:
    """Takes the bar off the line that a log message is about to use."""
    self._bar.clear()

  def pause(self, seconds: float) -> None:
    """Leaves time spent on something else out of the reported speed."""
    self._paused += seconds
    self._reported += seconds

  def _report(self) -> None:
    now = time.monotonic()
    losses = [float(logs["loss"]) for logs in self._pending]
    tokens = sum(
      int(logs["source_tokens"]) + int(logs["target_tokens"])
      for logs in self._pending
    )
    last = self._pending[-1]
    self._tokens += tokens
    fields = {
      "loss": f"{sum(losses) / len(losses):.4f}",
      "rate": f"{float(last['learning_rate']):.2e}",
    }
    if self.with_throughput:
      speed = tokens / max(now - self._reported, 1e-9)
      fields["tokens/s"] = f"{speed:.0f}"
    # What is left are metrics, means since the last report.
    for name in [name for name in last if name not in StepResult._fields]:
      fields[name] = f"{float(last[name]):.4f}"
    self.model.reset_metrics()
    per_step = (now - self._started - self._paused) / (
      self.step - self.first_step
    )
    self._bar.set_postfix(fields, refresh=False)
    self._bar.update(self.step - self._bar.n)
    if self._bar.disable:
      left = tqdm.tqdm.format_interval(per_step * (self.last_step - self.step))
      logging.info(
        "step %d of %d: %s, %s left",
        self.step,
        self.last_step,
        ", ".join(f"{name} {value}" for name, value in fields.items()),
        left,
      )
    self._pending.clear()
    self._reported = now


class Milestones(keras.callbacks.Callback):
  """Calls an action after some updates of the whole run.

  Attributes:
    action: takes the number of finished updates.
    is_milestone: tells whether the action follows an update.
    first_step: updates made before this run.
    progress: is told how long the actions took.
  """

  def __init__(
    self,
    action: Callable[[int], None],
    is_milestone: Callable[[int], bool],
    first_step: int,
    progress: ProgressReport,
  ) -> None:
    super().__init__()
    self.action = action
    self.is_milestone = is_milestone
    self.first_step = first_step
    self.progress = progress
    self._step = first_step

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Acts where the step is a milestone."""
    self._step += 1
    if self.is_milestone(self._step):
      started = time.monotonic()
      self.progress.make_room()
      self.action(self._step)
      self.progress.pause(time.monotonic() - started)


class ScalarWriter(keras.callbacks.Callback):
  """Writes TensorBoard scalars.

  Attributes:
    writer: TensorFlow's summary writer.
    every: updates between two points of the training curves.
  """

  def __init__(self, directory: str, first_step: int, every: int) -> None:
    super().__init__()
    self.writer = tf.summary.create_file_writer(directory)
    self.every = every
    self._step = first_step

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Writes the step's loss and learning rate, and metrics where there are.

    Where the step is not one to report, nothing is read back.
    """
    self._step += 1
    if self._step % self.every == 0:
      self.write({f"train/{k}": float(v) for k, v in logs.items()}, self._step)

  def write(self, scalars: Scalars, step: int) -> None:
    """Writes any scalars."""
    with self.writer.as_default(step=step):
      for name, value in scalars.items():
        # What tf.summary.scalar does, which needs the tensorboard package.
        tf.summary.write(name, tf.cast(value, tf.float32), metadata=SCALAR)
    self.writer.flush()
