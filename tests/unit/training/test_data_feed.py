"""The batches of a run."""

import pytest
from runs import settings

from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.training.data_feed import DataFeed


@pytest.mark.parametrize("static", [False, True])
def test_the_longest_batches_are_of_the_type_of_all(reversals, static):
  """Else TensorFlow would trace the step twice, which takes seconds."""
  run = settings(reversals, 1, batching=Batching(128, 16, static))
  feed = DataFeed(run, read_prepared_data(reversals, 20, with_dev=False))
  tried = feed.longest_batches()
  assert tried.element_spec == feed.training_batches(0).element_spec
  # Of the bucket of the longest examples: up to 10 tokens excluded.
  shape = (8, 16) if static else (12, 9)
  assert [tuple(side.shape) for side in next(iter(tried))] == [shape] * 2
