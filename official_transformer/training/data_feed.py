"""The batches of a run."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from absl import logging

from official_transformer.data.buckets import BatchShape
from official_transformer.data.check_cache import state_of
from official_transformer.data.data_pipeline import (
  Threads,
  dev_dataset,
  synthetic_dataset,
  train_dataset,
  uniform_dataset,
)
from official_transformer.data.prepared_data import PreparedData
from official_transformer.errors import InputError
from official_transformer.model_params import PAD_ID
from official_transformer.training.settings import TrainingSettings

_MEASURED_BATCHES = 20


class DataFeed:
  """Training and development batches of a data directory.

  Attributes:
    settings: settings of the run.
    data: training data; None for synthetic batches.

  Raises:
    InputError: if there is nothing to train on.
  """

  def __init__(
    self, settings: TrainingSettings, data: PreparedData | None
  ) -> None:
    self.settings = settings
    self.data = data
    self._state = data.state if data else []
    self._change: str | None = None
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
    """Number of training pairs that are too long."""
    assert self.data
    return self.data.train.count_longer(self.settings.batching.max_length)

  @property
  def has_development_data(self) -> bool:
    """Whether there is anything to validate on."""
    return bool(self.data and self.data.dev)

  @property
  def development_set(self) -> str | None:
    """Identity of what is validated on, if there is anything."""
    if not (self.data and self.data.dev):
      return None
    fingerprint = f"{self.data.dev.fingerprint:016x}"
    return f"{self.settings.validation_steps} batches of {fingerprint}"

  def training_batches(self, updates: int) -> tf.data.Dataset:
    """Returns endless batches, from the one after a number of updates."""
    if not self.data:
      return synthetic_dataset(self.settings.batching)
    first = updates * self.settings.batching.accumulate_steps
    batches = self._batches_as_prepared(first)
    if self.data.sampler:
      return self.data.sampler.resegment(batches, first)
    return batches

  def _batches_as_prepared(self, first: int) -> tf.data.Dataset:
    """Returns endless batches of the data, from one of them on."""
    assert self.data
    settings = self.settings
    return train_dataset(
      self.data.train.index,
      settings.batching,
      settings.seed,
      skip_batches=first,
      threads=Threads(
        settings.num_parallel_calls, settings.datasets_num_private_threads
      ),
      after_reading=self._check_unchanged,
    )

  def _check_unchanged(self) -> None:
    """Refuses data that others have taken the place of.

    Otherwise, the new records would be trained on as if they were the run's.

    Raises:
      InputError: if the records are others.
      OSError: if a shard is gone.
    """
    assert self.data
    state = state_of(self.data.train.paths)
    if state == self._state:
      return
    self._change = self.data.change()
    if self._change:
      raise InputError(self._change)
    self._state = state

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

  @functools.cached_property
  def largest_shapes(self) -> list[BatchShape]:
    """The shapes of the batches that may need most memory."""
    batching = self.settings.batching
    if not self.data:
      return batching.largest_batches([batching.max_length])
    return batching.largest_batches(self.data.train.lengths, self._growth())

  def _growth(self) -> float:
    """Returns how many times longer batches are with drawn segmentations.

    It is the maximum over some of the run's batches: the theoretical maximum,
    one token a character, is never reached.
    """
    assert self.data
    if not self.data.sampler:
      return 1.0
    plain = self._batches_as_prepared(0).take(_MEASURED_BATCHES)
    drawn = self.data.sampler.resegment(plain, 0)

    def widest(batch: tuple[np.ndarray, np.ndarray]) -> int:
      return max(ids.shape[1] for ids in batch)

    both = zip(
      plain.as_numpy_iterator(), drawn.as_numpy_iterator(), strict=True
    )
    return max(widest(new) / widest(old) for old, new in both)

  def largest_batches(self) -> list[tf.data.Dataset]:
    """Returns endless batches of each kind that may need most memory."""
    batching = self.settings.batching
    if not self.data:
      return [synthetic_dataset(batching)]
    return [uniform_dataset(batching, shape) for shape in self.largest_shapes]

  @functools.cached_property
  def development_batches(self) -> tf.data.Dataset:
    """The batches that a validation loss is taken over; read at each use."""
    assert self.data and self.data.dev
    settings = self.settings
    dataset = dev_dataset(self.data.dev.index, settings.batching)
    return dataset.take(settings.validation_steps)

  def warn_of_omissions(self) -> None:
    """Warns how many pairs are too long for training."""
    if self.data and self._longer:
      logging.warning(
        "%d of %d training pairs have a side of over --max_length=%d tokens "
        "and are left out",
        self._longer,
        self.data.train.pairs,
        self.settings.batching.max_length,
      )

  def change(self) -> str | None:
    """Returns the change of the data during the run, if there is one."""
    if self.data and not self._change:
      self._change = self.data.change()
    return self._change
