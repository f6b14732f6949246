"""The report of a run before its first update."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from official_transformer.data.buckets import BatchShape
from official_transformer.hardware.memory import available_bytes
from official_transformer.hardware.processor import is_fast_dtype
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.directory import (
  LOGS,
  ModelDirectory,
)
from official_transformer.model_params import TransformerParams
from official_transformer.training.failures import failures_are_logged
from official_transformer.training.reporting.memory import estimate_step_bytes
from official_transformer.training.reporting.summaries import SummaryWriter
from official_transformer.training.settings import (
  MEMORY_ADVICE,
  TrainingSettings,
)
from official_transformer.training.strategy import Distribution


def describe_run(
  transformer: Transformer,
  settings: TrainingSettings,
  shapes: Sequence[BatchShape],
  distribution: Distribution,
) -> None:
  """Logs the settings of the run, and warnings about them.

  Args:
    transformer: model that is trained.
    settings: settings of the run.
    shapes: shapes of the batches that may need most memory.
    distribution: the devices and processes that share a batch.
  """
  params = transformer.params
  log_configuration(params, settings)
  log_size(transformer, settings, shapes, distribution)
  warn_of_settings(params, settings)
  if not settings.enable_checkpointing:
    logging.warning("no checkpoints: the model will be lost")


def log_configuration(
  params: TransformerParams, settings: TrainingSettings
) -> None:
  """Logs every parameter and every setting, as resolved."""
  for title, record in (("parameters", params), ("run", settings)):
    fields = ", ".join(_resolved(dataclasses.asdict(record)))
    logging.info("%s: %s", title, fields)


def log_size(
  transformer: Transformer,
  settings: TrainingSettings,
  shapes: Sequence[BatchShape],
  distribution: Distribution,
) -> None:
  """Logs how large the model, an update and its memory are.

  Args:
    transformer: the model.
    settings: settings of the run.
    shapes: shapes of the batches that may need most memory.
    distribution: the devices and processes that share a batch.
  """
  parts: dict[str, int] = {}
  for variable in transformer.trainable_variables:
    name = variable.path.split("/")[1].removesuffix("_stack")
    parts[name] = parts.get(name, 0) + math.prod(variable.shape)
  frozen = sum(
    math.prod(variable.shape)
    for variable in transformer.non_trainable_variables
  )
  total = sum(parts.values())
  logging.info(
    "%s trainable parameters: %s",
    f"{total:,}",
    ", ".join(f"{name} {size:,}" for name, size in parts.items()),
  )
  batching, replicas = settings.batching, distribution.replicas
  logging.info(
    "an update takes up to %d tokens a side: %d batches of %d, over %d "
    "replicas",
    batching.tokens_per_update,
    batching.accumulate_steps,
    batching.batch_size,
    replicas,
  )
  largest = [
    (-(-shape.sentences // replicas), shape.length) for shape in shapes
  ]
  logging.info(
    "the largest batches hold %s a replica; they are tried first",
    " or ".join(f"{n} sentences of {length} tokens" for n, length in largest),
  )
  available = available_bytes() if distribution.on_cpu else None
  needed = distribution.replicas_here * max(
    estimate_step_bytes(transformer.params, settings, total, frozen, *each)
    for each in largest
  )
  if available is not None and needed > available:
    logging.warning(
      "a training step needs up to %.1f GB besides TensorFlow itself, and "
      "%.1f GB are free; %s",
      needed / 1e9,
      available / 1e9,
      MEMORY_ADVICE,
    )


def warn_of_settings(
  params: TransformerParams, settings: TrainingSettings
) -> None:
  """Warns of settings that may disappoint.

  A learning rate that would still rise when the run ends; a dtype in which
  nothing here computes faster.
  """
  if params.learning_rate_warmup_steps > settings.train_steps / 2:
    logging.warning(
      "the learning rate warms up for %d steps, over half of the %d of this "
      "run, in which the model may learn little; for a new model, pass "
      "--params_override=learning_rate_warmup_steps=%d",
      params.learning_rate_warmup_steps,
      settings.train_steps,
      max(1, settings.train_steps // 5),
    )
  dtype = settings.execution.dtype
  if not is_fast_dtype(dtype):
    logging.warning(
      "--dtype=%s: this processor has no fast units for it%s; --dtype=fp32 "
      "takes more memory and less time",
      dtype,
      ", so products are in float32" if dtype == "bf16" else "",
    )


def _resolved(values: Mapping[str, Any]) -> Iterator[str]:
  """Yields `name=value` for all values, also those of nested records."""
  for name, value in values.items():
    if isinstance(value, dict):
      yield from _resolved(value)
    else:
      yield f"{name}={value}"


def open_summaries(
  directory: ModelDirectory,
  transformer: Transformer,
  settings: TrainingSettings,
  distribution: Distribution,
) -> SummaryWriter:
  """Returns the writer for TensorBoard, with the run's settings written."""
  summaries = SummaryWriter(
    directory.join(LOGS), settings.tensorboard_histograms
  )
  with failures_are_logged("TensorBoard's record of hyper-parameters"):
    summaries.write_hyperparameters(
      {
        **dataclasses.asdict(transformer.params),
        **dataclasses.asdict(settings.batching),
        "dtype": settings.execution.dtype,
        "seed": settings.seed,
        "train_steps": settings.train_steps,
        "replicas": distribution.replicas,
      }
    )
  return summaries
