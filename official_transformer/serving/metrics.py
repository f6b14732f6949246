"""Metrics of the service for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import prometheus_client
from prometheus_client import multiprocess

MULTIPROCESS_DIR = "PROMETHEUS_MULTIPROC_DIR"
# Label of most metrics; its value is empty if directions have no names.
_DIRECTION = ["direction"]
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
  """Counts of one process; several of a service are added up.

  Attributes:
    registry: registry of this process.
  """

  def __init__(self) -> None:
    self.registry = prometheus_client.CollectorRegistry()
    self.requests = prometheus_client.Counter(
      "translation_requests_total",
      "Requests to /translate, by the status they were answered with.",
      ["status"],
      registry=self.registry,
    )
    self.lines = prometheus_client.Counter(
      "translation_lines_total",
      "Lines, and parts of long ones, that were handed to the model.",
      _DIRECTION,
      registry=self.registry,
    )
    self.tokens = prometheus_client.Counter(
      "translation_source_tokens_total",
      "Source tokens that were handed to the model.",
      _DIRECTION,
      registry=self.registry,
    )
    self.seconds = prometheus_client.Histogram(
      "translation_request_seconds",
      "From a request's last byte to its answer.",
      buckets=_SECONDS,
      registry=self.registry,
    )
    self.batch_lines = prometheus_client.Histogram(
      "translation_batch_lines",
      "Lines of a batch.",
      _DIRECTION,
      buckets=_SIZES,
      registry=self.registry,
    )
    self.in_progress = self._gauge(
      "translation_requests_in_progress",
      "Requests to /translate that are not answered yet.",
      "livesum",
      [],
    )
    self.queued_tokens = self._gauge(
      "translation_queued_tokens", "Source tokens in the queue.", "livesum"
    )
    self.model_step = self._gauge(
      "translation_model_step",
      "Updates that the model in use has seen.",
      "livemin",
    )
    self.reloads = self._gauge(
      "translation_model_reloads", "Models that replaced another.", "livesum"
    )
    self.failed_reloads = self._gauge(
      "translation_model_failed_reloads",
      "Models that could not be loaded.",
      "livesum",
    )

  def _gauge(
    self,
    name: str,
    text: str,
    mode: Literal["livesum", "livemin"],
    labels: Sequence[str] = _DIRECTION,
  ) -> prometheus_client.Gauge:
    return prometheus_client.Gauge(
      name, text, labels, registry=self.registry, multiprocess_mode=mode
    )

  def on_batch(
    self, direction: str, lines: int, tokens: int, queued_tokens: int
  ) -> None:
    """Counts a batch, and sets the number of waiting tokens."""
    self.queued_tokens.labels(direction).set(queued_tokens)
    self.batch_lines.labels(direction).observe(lines)
    self.lines.labels(direction).inc(lines)
    self.tokens.labels(direction).inc(tokens)

  def text(self) -> bytes:
    """Returns the measurements of all processes."""
    registry = self.registry
    if MULTIPROCESS_DIR in os.environ:
      registry = prometheus_client.CollectorRegistry()
      multiprocess.MultiProcessCollector(registry)
    return prometheus_client.generate_latest(registry)


def forget_process(pid: int, directory: str) -> None:
  """Removes the metrics of a process that has ended."""
  multiprocess.mark_process_dead(pid, directory)


CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
