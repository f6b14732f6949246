import itertools

import numpy as np
import pytest

from official_transformer.data import data_order, record_index
from official_transformer.data.buckets import Batching
from official_transformer.data.data_order import DataOrder
from official_transformer.data.record_index import RecordIndex

# 7 windows of an epoch, some of their buckets met once in several epochs.
RECORDS = 533
BATCHING = Batching(96, 30)


@pytest.fixture
def index(monkeypatch):
  monkeypatch.setattr(record_index, "CHUNK_RECORDS", 8)
  monkeypatch.setattr(data_order, "WINDOW_CHUNKS", 10)
  rng = np.random.default_rng(0)
  lengths = rng.integers(2, 12, RECORDS)
  lengths[:9] = 30  # A bucket of 3 a batch.
  lengths[9:11] = 22  # Of 4 a batch: two epochs fill one.
  lengths[11:20] = 31  # Too long.
  lengths[20:23] = 0  # Not usable.
  rng.shuffle(lengths)
  sizes = rng.integers(40, 200, RECORDS)
  return RecordIndex.of(
    ["a", "b", "c"],
    np.split(lengths, [200, 201]),
    np.split(sizes, [200, 201]),
  )


def batches(order, skipped, number):
  """Returns batches of record numbers, and the window each was made in."""
  start = order.start(skipped)
  waiting = start.waiting
  found = []
  for plan in order.plans(start):
    pool = np.concatenate([waiting, order.index.records_of(plan.chunks)])
    first = 0
    for end in plan.ends:
      found.append(pool[plan.places[first:end]].tolist())
      first = end
    waiting = pool[plan.waiting]
    if len(found) >= number:
      return found[:number]
  return found


def test_an_order_goes_on_at_any_batch(index):
  order = DataOrder(index, BATCHING, seed=3)
  whole = batches(order, 0, 700)
  assert len(whole) == 700
  for skipped in [*range(0, 80), 150, 151, 260, 333, 499, 600]:
    assert batches(order, skipped, 5) == whole[skipped : skipped + 5]


def test_an_epoch_brings_each_record_once(index):
  order = DataOrder(index, BATCHING, seed=3)
  used = (index.lengths > 0) & (index.lengths <= 30)
  assert used.sum() == RECORDS - 12
  drawn = list(itertools.chain(*batches(order, 0, 700)))
  counts = np.bincount(drawn, minlength=RECORDS)
  epochs = len(drawn) // used.sum()
  assert epochs > 8
  assert not counts[~used].any()
  # What waits in a bucket came, or comes, an epoch later than the rest.
  assert set(counts[used]) <= {epochs - 1, epochs, epochs + 1}


def test_batches_hold_examples_of_one_bucket_each(index):
  for batch in batches(DataOrder(index, BATCHING, seed=3), 0, 200):
    lengths = index.lengths[batch]
    found = np.searchsorted(BATCHING.bounds, lengths, side="right")
    assert len(set(found)) == 1
    assert len(batch) == BATCHING.sizes[found[0]]


def test_windows_and_what_is_in_them_change_with_epoch_and_seed(index):
  def first_window(seed, epoch):
    order = DataOrder(index, BATCHING, seed)
    start = order.start(0)._replace(epoch=epoch)
    plan = next(order.plans(start))
    pool = index.records_of(plan.chunks)
    return pool[plan.places].tolist()

  drawn = [first_window(*which) for which in [(3, 0), (3, 1), (4, 0), (3, 0)]]
  assert drawn[0] == drawn[3]
  assert len({tuple(order) for order in drawn}) == 3
  assert len({frozenset(order) for order in drawn}) == 3


def test_without_a_seed_all_come_once_in_the_order_of_the_files(index):
  order = DataOrder(index, BATCHING, seed=None)
  drawn = batches(order, 0, 10**6)
  used = np.flatnonzero((index.lengths > 0) & (index.lengths <= 30))
  assert sorted(itertools.chain(*drawn)) == used.tolist()
  assert all(batch == sorted(batch) for batch in drawn)
  full = [len(b) == BATCHING.sentences_of(index.lengths[b[0]]) for b in drawn]
  # The last of each bucket, in the order of the buckets.
  assert full.index(False) >= full.count(True)


def test_the_order_is_the_same_everywhere():
  """By hand, of SplitMix64's published numbers: its first of state 0."""
  assert data_order._mixed(np.zeros(1, np.uint64))[0] == 0xE220A8397B1DCDAF


def test_nothing_to_order_is_refused(index):
  with pytest.raises(ValueError, match="no record"):
    DataOrder(index, Batching(64, 1), seed=1).start(0)
