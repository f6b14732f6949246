"""The batches of a run."""

import pytest
from runs import settings

from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.training.data_feed import DataFeed

# 14 of 8 tokens are more tokens than 12 of 9, those 12 more squares.
SHAPES = {
  False: [[(12, 9)] * 2, [(14, 8)] * 2],
  True: [[(8, 16)] * 2],
}


@pytest.mark.parametrize("static", [False, True])
def test_the_largest_batches_are_of_the_type_of_all(reversals, static):
  """Else TensorFlow would trace the step twice, which takes seconds."""
  run = settings(reversals, 1, batching=Batching(128, 16, static))
  feed = DataFeed(run, read_prepared_data(reversals, 20, with_dev=False))
  tried = feed.largest_batches()
  for batches in tried:
    assert batches.element_spec == feed.training_batches(0).element_spec
  shapes = [
    [tuple(side.shape) for side in next(iter(batches))] for batches in tried
  ]
  assert shapes == SHAPES[static]
