"""The batches of a run."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator

import tensorflow as tf
from absl import logging

from official_transformer.data.data_pipeline import (
  Threads,
  dev_dataset,
  synthetic_dataset,
  train_dataset,
  uniform_dataset,
)
from official_transformer.data.prepared_data import PreparedData
from official_transformer.data.record_check import READ_ERRORS
from official_transformer.errors import InputError
from official_transformer.model_params import PAD_ID
from official_transformer.training.settings import TrainingSettings


class DataFeed:
  """Training and development batches of a data directory.

  Attributes:
    settings: the run's.
    data: what there is to train on; None for synthetic batches.

  Raises:
    InputError: if there is nothing to train on.
  """

  def __init__(
    self, settings: TrainingSettings, data: PreparedData | None
  ) -> None:
    self.settings = settings
    self.data = data
    # Without any, a run would wait for its first batch for ever.
    if data and not data.train.pairs:
      raise InputError(f"no pair in {data.data_dir} can be used")
    if data and data.train.pairs == self._longer:
      raise InputError(
        f"no pair in {data.data_dir} has both sides within "
        f"--max_length={settings.batching.max_length} tokens; raise it"
      )

  @property
  def _longer(self) -> int:
    """How many training pairs are too long."""
    assert self.data
    return self.data.train.count_longer(self.settings.batching.max_length)

  @property
  def has_development_data(self) -> bool:
    """Whether there is anything to validate on."""
    return bool(self.data and self.data.dev)

  def training_batches(self, updates: int) -> tf.data.Dataset:
    """Returns endless batches, after those of a run's finished updates."""
    settings = self.settings
    if not self.data:
      return synthetic_dataset(settings.batching)
    first = updates * settings.batching.accumulate_steps
    batches = train_dataset(
      self.data.train.index,
      settings.batching,
      settings.seed,
      skip_batches=first,
      threads=Threads(
        settings.num_parallel_calls, settings.datasets_num_private_threads
      ),
    )
    if self.data.sampler:
      return self.data.sampler.resegment(batches, first)
    return batches

  def lines_of_update(self, step: int) -> Iterator[str]:
    """Yields the ids of an update's pairs, a line of JSON each.

    Args:
      step: the update, counted from 1.
    """
    number = self.settings.batching.accumulate_steps
    batches = self.training_batches(step - 1).take(number).as_numpy_iterator()
    for index, batch in enumerate(batches, start=(step - 1) * number):
      for sides in zip(*batch, strict=True):
        inputs, targets = (ids[ids != PAD_ID].tolist() for ids in sides)
        line = {"batch": index, "inputs": inputs, "targets": targets}
        yield json.dumps(line) + "\n"

  @property
  def largest_lengths(self) -> list[int]:
    """The lengths of examples whose batches may need most memory."""
    batching = self.settings.batching
    if not self.data:
      return [batching.max_length]
    return batching.largest_lengths(self.data.train.lengths)

  def largest_batches(self) -> list[tf.data.Dataset]:
    """Returns endless batches of each kind that may need most memory."""
    batching = self.settings.batching
    if not self.data:
      return [synthetic_dataset(batching)]
    return [
      uniform_dataset(batching, length) for length in self.largest_lengths
    ]

  @functools.cached_property
  def development_batches(self) -> tf.data.Dataset:
    """The batches that a validation loss is taken over; read at each use."""
    assert self.data and self.data.dev
    settings = self.settings
    dataset = dev_dataset(self.data.dev.index, settings.batching)
    return dataset.take(settings.validation_steps)

  def warn_of_omissions(self) -> None:
    """Says how many pairs are too long to be trained on."""
    if self.data and self._longer:
      logging.warning(
        "%d of %d training pairs have a side of over --max_length=%d tokens "
        "and are left out",
        self._longer,
        self.data.train.pairs,
        self.settings.batching.max_length,
      )

  @contextlib.contextmanager
  def damage_is_the_users(self) -> Iterator[None]:
    """Makes one clear error of data that were damaged during the run."""
    try:
      yield
    except READ_ERRORS:
      if not self.data:
        raise
      self.data.check_again()
      raise  # It has another cause.
