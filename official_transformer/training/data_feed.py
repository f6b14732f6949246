"""The batches of a run, and what can be wrong with its data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
from absl import logging

from official_transformer.data import data_directory
from official_transformer.data.data_pipeline import (
  damaged_shards,
  dev_dataset,
  has_examples,
  synthetic_dataset,
  train_dataset,
  uniform_dataset,
)
from official_transformer.errors import InputError
from official_transformer.training.settings import TrainingSettings


class DataFeed:
  """Training and development batches of a data directory.

  Attributes:
    settings: the run's.

  Raises:
    InputError: where there is nothing to train on.
  """

  def __init__(self, settings: TrainingSettings) -> None:
    self.settings = settings
    self._train_shards: list[str] = []
    self._dev_shards: list[str] = []
    if settings.synthetic:
      return
    self._train_shards = data_directory.shard_paths(
      settings.data_dir, data_directory.TRAIN_TAG
    )
    with self.damage_is_the_users():
      usable = has_examples(self._train_shards, settings.batching.max_length)
    if not usable:
      raise InputError(
        f"no pair in {settings.data_dir} has both sides within "
        f"--max_length={settings.batching.max_length} tokens; raise it"
      )
    self._dev_shards = self._find_dev_shards()

  @property
  def has_development_data(self) -> bool:
    """Whether there is anything to validate on."""
    return bool(self._dev_shards)

  def training_batches(self, updates: int) -> tf.data.Dataset:
    """Returns endless batches, after those of a run's finished updates."""
    settings = self.settings
    skip = updates * settings.batching.accumulate_steps
    if settings.synthetic:
      return synthetic_dataset(settings.batching)
    return train_dataset(
      self._train_shards,
      settings.batching,
      settings.seed,
      skip_batches=skip,
      num_parallel_calls=settings.num_parallel_calls,
      private_threads=settings.private_threads,
    )

  @property
  def longest_example(self) -> int:
    """The tokens of the longest example that is trained on, at most."""
    limit = self.settings.batching.max_length
    description = data_directory.read_description(self.settings.data_dir)
    if self.settings.synthetic or not description:
      return limit
    lengths = description[data_directory.TRAIN_TAG]["length_histogram"]
    return max(int(n) for n in lengths if int(n) <= limit)

  def longest_batches(self) -> tf.data.Dataset:
    """Returns endless batches of the bucket that needs most memory."""
    settings = self.settings
    if settings.synthetic:
      return synthetic_dataset(settings.batching)
    return uniform_dataset(settings.batching, self.longest_example)

  def development_batches(self) -> tf.data.Dataset:
    """Returns the batches that a validation loss is taken over."""
    settings = self.settings
    dataset = dev_dataset(self._dev_shards, settings.batching)
    return dataset.take(settings.validation_steps)

  def warn_of_omissions(self) -> None:
    """Says how many pairs are too long to be trained on."""
    settings = self.settings
    description = data_directory.read_description(settings.data_dir)
    if settings.synthetic or not description:
      return
    max_length = settings.batching.max_length
    longer = data_directory.count_longer(description, max_length)
    if longer:
      logging.warning(
        "%d of %d training pairs have a side of over --max_length=%d tokens "
        "and are left out",
        longer,
        data_directory.count_longer(description, 0),
        max_length,
      )

  @contextlib.contextmanager
  def damage_is_the_users(self) -> Iterator[None]:
    """Makes one clear error of shards that cannot be read."""
    try:
      yield
    except (tf.errors.DataLossError, tf.errors.NotFoundError):
      damaged = damaged_shards(self._train_shards)
      if not damaged:
        raise
      raise InputError(
        f"damaged: {', '.join(damaged)}; prepare the data again"
      ) from None

  def _find_dev_shards(self) -> list[str]:
    """Returns the development shards, or none where there are none."""
    if not self.settings.validation_steps:
      return []
    try:
      return data_directory.shard_paths(
        self.settings.data_dir, data_directory.DEV_TAG
      )
    except InputError as error:
      logging.warning("no validation loss: %s", error)
      return []
