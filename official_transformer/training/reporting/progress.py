"""Progress of a run: a bar on a terminal, log messages elsewhere."""

from __future__ import annotations

import collections
import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tqdm
from absl import logging

from official_transformer.training.step.training_step import StepResult

# Values that a report derives from an update's logs; the others are metrics.
_DERIVED = {
  *StepResult._fields,
  "input_seconds",
  "skipped_updates",
  "steps",
  "streak",
}

# Results of updates that are kept at most; a number is read later, so that no
# update waits for a device.
_MOST_PENDING = 1000


class ProgressReport(keras.callbacks.Callback):
  """A progress bar on a terminal, a log line every so often elsewhere.

  Both show the loss, the learning rate, source and target tokens a second
  (without padding), the share of the time that was spent waiting for data, and
  the time left.

  Attributes:
    first_step: updates made before this run.
    last_step: updates made when it ends.
    log_steps: updates between two reports.
    with_throughput: whether reports have tokens a second, and the end of
      training is reported with their mean.
    replicas: replicas that share the work.
    on_report: takes the numbers of each report, by name, and the step.
    step: updates made so far.
  """

  def __init__(
    self,
    first_step: int,
    last_step: int,
    log_steps: int,
    with_throughput: bool = True,
    replicas: int = 1,
    on_report: Callable[[Mapping[str, float], int], None] | None = None,
  ) -> None:
    super().__init__()
    self.first_step = first_step
    self.last_step = last_step
    self.log_steps = log_steps
    self.with_throughput = with_throughput
    self.replicas = replicas
    self.on_report = on_report
    self.step = first_step
    self._pending: list[Mapping[str, Any]] = []
    # Over the updates since the last report that are not pending any more.
    self._sums: dict[str, float] = collections.defaultdict(float)

  def on_train_begin(self, logs: Any = None) -> None:
    """Starts the clock and the bar."""
    self._started = self._reported = time.monotonic()
    self._paused = 0.0
    self._tokens = 0
    self._waited = 0.0
    self._skipped = 0
    self._bar = tqdm.tqdm(
      total=self.last_step,
      initial=self.first_step,
      unit="step",
      file=sys.stderr,
      disable=not sys.stderr.isatty(),
      dynamic_ncols=True,
    )

  def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
    """Collects the result of one or several updates; reports at times."""
    self.step += int(logs.get("steps", 1))
    self._pending.append(logs)
    if len(self._pending) >= _MOST_PENDING:
      self._add_pending()
    if self.step % self.log_steps == 0 or self.step == self.last_step:
      self._report()

  def on_train_end(self, logs: Any = None) -> None:
    """Closes the bar; sums the run up."""
    if self._pending or self._sums:  # Stopped between two reports.
      self._report()
    self._bar.close()
    if not self.with_throughput:
      return
    seconds = max(time.monotonic() - self._started - self._paused, 1e-9)
    speed = self._tokens / seconds
    message = (
      f"{self.step - self.first_step} steps, {self._tokens} source and target "
      f"tokens, {speed:.0f} tokens/s"
    )
    if self.replicas > 1:
      message += f" ({speed / self.replicas:.0f} a replica)"
    if not math.isnan(self._waited):
      wait = 100 * self._waited / seconds
      message += f", {wait:.1f}% of the time waiting for data"
    if self._skipped:
      message += f", {self._skipped} updates skipped"
    logging.info("%s", message)

  @contextlib.contextmanager
  def paused(self) -> Iterator[None]:
    """Leaves the body's time out of the reported speed, and the bar away."""
    started = time.monotonic()
    self._bar.clear()  # The bar occupies the line of the next message.
    yield
    seconds = time.monotonic() - started
    self._paused += seconds
    self._reported += seconds

  def _report(self) -> None:
    now = time.monotonic()
    numbers = self._numbers(max(now - self._reported, 1e-9))
    self.model.reset_metrics()
    per_step = (now - self._started - self._paused) / (
      self.step - self.first_step
    )
    fields = self._fields(numbers)
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
    if self.on_report:
      self.on_report(numbers, self.step)
    self._sums.clear()
    self._reported = now

  def _numbers(self, seconds: float) -> dict[str, float]:
    """Returns the numbers of the updates since the last report."""
    self._add_pending()
    sums, last = self._sums, self._last
    tokens, waited = int(sums["tokens"]), sums["waited"]
    self._tokens += tokens
    self._waited += waited
    numbers = {
      "loss": sums["loss"] / sums["steps"],
      "learning_rate": float(last["learning_rate"]),
    }
    if self.with_throughput:
      numbers["tokens_per_second"] = tokens / seconds
      if not math.isnan(waited):
        numbers["input_wait"] = waited / seconds
    numbers["gradient_norm"] = float(last["gradient_norm"])
    self._skipped = int(last["skipped_updates"])
    numbers["skipped_updates"] = self._skipped
    # The others are metrics, as means since the last report.
    metrics = [name for name in last if name not in _DERIVED]
    return numbers | {name: float(last[name]) for name in metrics}

  def _add_pending(self) -> None:
    """Adds the pending updates to the sums; keeps the last one's results."""
    for logs in self._pending:
      steps = int(logs.get("steps", 1))
      self._sums["steps"] += steps
      self._sums["loss"] += steps * float(logs["loss"])
      self._sums["waited"] += float(logs.get("input_seconds", 0.0))
      for side in ("source_tokens", "target_tokens"):
        self._sums["tokens"] += int(logs.get(side, 0))
      self._last = logs
    self._pending.clear()

  def _fields(self, numbers: Mapping[str, float]) -> dict[str, str]:
    """Returns the fields of a report's line, by name."""
    fields = {
      "loss": f"{numbers['loss']:.4f}",
      "rate": f"{numbers['learning_rate']:.2e}",
    }
    shown = {*fields, "learning_rate"}
    if "tokens_per_second" in numbers:
      speed = numbers["tokens_per_second"]
      fields["tokens/s"] = f"{speed:.0f}"
      if self.replicas > 1:
        fields["a replica"] = f"{speed / self.replicas:.0f}"
    if "input_wait" in numbers:
      fields["input wait"] = f"{100 * numbers['input_wait']:.1f}%"
    if self._skipped:
      fields["skipped"] = str(self._skipped)
    shown |= {"tokens_per_second", "input_wait"}
    shown |= {"skipped_updates", "gradient_norm"}
    for name in numbers:
      if name not in shown:
        fields[name] = f"{numbers[name]:.4f}"
    return fields
