"""The batches of a run."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from runs import settings

from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.training.data_feed import DataFeed

# 14 of 8 tokens are more tokens than 12 of 9, those 12 more squares.
SHAPES = {
  False: [[(12, 9)] * 2, [(14, 8)] * 2],
  True: [[(8, 16)] * 2],
}


def feed_of(reversals, batching):
  """Returns the batches of a run over `reversals`."""
  run = settings(reversals, 1, batching=batching)
  return DataFeed(run, read_prepared_data(reversals, 20, with_dev=False))


@pytest.mark.parametrize("static", [False, True])
def test_the_largest_batches_are_of_the_type_of_all(reversals, static):
  """Else TensorFlow would trace the step twice, which takes seconds."""
  feed = feed_of(reversals, Batching(128, 16, static))
  tried = feed.largest_batches()
  for batches in tried:
    assert batches.element_spec == feed.training_batches(0).element_spec
  shapes = [
    [tuple(side.shape) for side in next(iter(batches))] for batches in tried
  ]
  assert shapes == SHAPES[static]


class Lengthening:
  """Stands for a `SubwordSampler`: all becomes half as long again."""

  def resegment(self, batches, first):
    def lengthen(ids):
      return tf.concat([ids, ids[:, : tf.shape(ids)[1] // 2]], axis=1)

    return batches.map(lambda *sides: tuple(map(lengthen, sides)))


def test_the_largest_batches_are_those_of_drawn_segmentations(reversals):
  run = settings(reversals, 1, batching=Batching(128, 24))
  data = read_prepared_data(reversals, 20, with_dev=False)
  plain = DataFeed(run, data)
  feed = DataFeed(run, dataclasses.replace(data, sampler=Lengthening()))

  def sizes(batches):
    for batch in batches.as_numpy_iterator():
      rows, length = batch[0].shape[0], max(ids.shape[1] for ids in batch)
      yield rows * length, rows * length**2

  def largest(feed):
    tried = [size for b in feed.largest_batches() for size in sizes(b.take(1))]
    return tuple(map(max, zip(*tried, strict=True)))

  trained = list(sizes(feed.training_batches(0).take(60)))
  assert max(s for s, _ in trained) > largest(plain)[0]
  assert max(s for s, _ in trained) <= largest(feed)[0]
  assert max(s for _, s in trained) <= largest(feed)[1]


@pytest.mark.parametrize("accumulate_steps", [1, 2])
def test_a_resumed_run_gets_the_batches_that_come_next(
  reversals, accumulate_steps
):
  feed = feed_of(
    reversals, Batching(128, 16, accumulate_steps=accumulate_steps)
  )
  updates = 3
  whole = feed.training_batches(0).take((updates + 2) * accumulate_steps)
  expected = list(whole.as_numpy_iterator())[updates * accumulate_steps :]
  resumed = feed.training_batches(updates).take(len(expected))
  assert not np.array_equal(*(next(iter(d))[0] for d in (whole, resumed)))
  for batch, wanted in zip(resumed.as_numpy_iterator(), expected, strict=True):
    for side, wanted_side in zip(batch, wanted, strict=True):
      np.testing.assert_array_equal(side, wanted_side)
