"""The batches that a resumed run goes on with."""

import dataclasses

import numpy as np
import pytest
from runs import settings

from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.training.data_feed import DataFeed


@pytest.mark.parametrize("accumulate_steps", [1, 2])
def test_a_resumed_run_gets_the_batches_that_come_next(
  reversals, accumulate_steps
):
  run = settings(reversals, 1)
  batching = dataclasses.replace(
    run.batching, accumulate_steps=accumulate_steps
  )
  run = dataclasses.replace(run, batching=batching)
  feed = DataFeed(run, read_prepared_data(reversals, 20, with_dev=False))
  updates = 3
  whole = feed.training_batches(0).take((updates + 2) * accumulate_steps)
  expected = list(whole.as_numpy_iterator())[updates * accumulate_steps :]
  resumed = feed.training_batches(updates).take(len(expected))
  assert not np.array_equal(*(next(iter(d))[0] for d in (whole, resumed)))
  for batch, wanted in zip(resumed.as_numpy_iterator(), expected, strict=True):
    for side, wanted_side in zip(batch, wanted, strict=True):
      np.testing.assert_array_equal(side, wanted_side)
