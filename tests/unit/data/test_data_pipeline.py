import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from written_shards import write_shards

from official_transformer.data import data_order, record_index
from official_transformer.data import data_pipeline as lib
from official_transformer.data.buckets import Batching
from official_transformer.data.data_directory import shard_paths
from official_transformer.data.record_check import check_records

NUMBER = 300


def pair(i):
  """A pair whose first source id tells it apart; sides differ in length."""
  length = 2 + i % 25
  return [i + 2] * length + [1], [7] * (2 + i * 7 % 25) + [1]


def indexed(directory):
  return check_records(shard_paths(str(directory), "train"), 400).index


@pytest.fixture(scope="module")
def index(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp("data"))
  pairs = [pair(i) for i in range(NUMBER)]
  write_shards(pairs, directory, "x", "train", 3, seed=1)
  return indexed(directory)


def take(dataset, count):
  return [(x.numpy(), y.numpy()) for x, y in dataset.take(count)]


def numbers(batches):
  return [int(row[0]) - 2 for x, _ in batches for row in x]


def test_batches_keep_the_budget_and_lose_nothing(index):
  dataset = lib.train_dataset(index, Batching(128, 30), seed=1)
  batches = take(dataset, 200)
  for x, y in batches:
    assert max(x.shape[1], y.shape[1]) * x.shape[0] <= 128
    for row_x, row_y in zip(x, y, strict=True):
      expected = pair(int(row_x[0]) - 2)
      assert row_x[row_x != 0].tolist() == expected[0]
      assert row_y[row_y != 0].tolist() == expected[1]


def test_each_example_comes_once_an_epoch(index):
  """Counted over many epochs; those not out yet wait in a bucket."""
  epochs = 20
  # Every batch is full, so examples come in multiples of the bucket's size.
  dataset = lib.train_dataset(index, Batching(128, 30), seed=1)
  seen = collections.Counter()
  for x, _ in itertools.islice(dataset, 2000):
    seen.update((x.numpy()[:, 0] - 2).tolist())
    if sum(seen.values()) >= epochs * NUMBER:
      break
  assert len(seen) == NUMBER
  assert max(seen.values()) - min(seen.values()) <= 2


def test_the_seed_decides_the_order(index):
  first = numbers(take(lib.train_dataset(index, Batching(128, 30), seed=1), 60))
  again = numbers(take(lib.train_dataset(index, Batching(128, 30), seed=1), 60))
  other = numbers(take(lib.train_dataset(index, Batching(128, 30), seed=2), 60))
  assert first == again
  assert first != other


@pytest.mark.parametrize("seed", [0, 3])
def test_the_order_does_not_depend_on_the_process(index, seed):
  orders = []
  for global_seed in (0, 7):
    tf.random.set_seed(global_seed)
    dataset = lib.train_dataset(index, Batching(128, 30), seed=seed)
    orders.append(numbers(take(dataset, 20)))
  assert orders[0] == orders[1]


def test_the_order_does_not_depend_on_the_machine(index):
  orders = [
    numbers(
      take(
        lib.train_dataset(
          index, Batching(128, 30), seed=1, threads=lib.Threads(threads)
        ),
        60,
      )
    )
    for threads in (0, 1, 7)
  ]
  assert orders[0] == orders[1] == orders[2]


def test_epochs_hold_the_same_examples_in_other_orders(tmp_path):
  # Of one length, and a batch size that divides their number: batches end
  # where epochs do.
  pairs = [([n + 2, 5, 1], [5, 5, 1]) for n in range(60)]
  write_shards(pairs, str(tmp_path), "x", "train", 3, seed=1)
  order = lib.train_dataset(indexed(tmp_path), Batching(80, 30), seed=1)
  drawn = numbers(take(order, 18))
  epochs = [drawn[start : start + 60] for start in (0, 60, 120)]
  assert all(sorted(epoch) == list(range(60)) for epoch in epochs)
  assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


def test_a_resumed_run_goes_on_where_it_stopped(index):
  whole = take(lib.train_dataset(index, Batching(128, 30), seed=5), 50)
  rest = take(
    lib.train_dataset(index, Batching(128, 30), seed=5, skip_batches=20), 30
  )
  for (x, y), (u, v) in zip(whole[20:], rest, strict=True):
    np.testing.assert_array_equal(x, u)
    np.testing.assert_array_equal(y, v)


def test_a_run_goes_on_amid_many_windows(tmp_path, monkeypatch):
  """What waits for a window lies in more chunks than are read at once."""
  monkeypatch.setattr(record_index, "CHUNK_RECORDS", 4)
  monkeypatch.setattr(lib, "CHUNK_RECORDS", 4)
  for module in (lib, data_order):
    monkeypatch.setattr(module, "WINDOW_CHUNKS", 3)
  pairs = [pair(i) for i in range(NUMBER)]
  write_shards(pairs, str(tmp_path), "x", "train", 3, seed=1)
  index = indexed(tmp_path)
  assert len(index.counts) > 70
  batching = Batching(400, 30)
  whole = take(lib.train_dataset(index, batching, seed=5), 40)
  for skipped in (1, 17, 30):
    rest = take(lib.train_dataset(index, batching, 5, skipped), 5)
    for (x, y), (u, v) in zip(whole[skipped:], rest, strict=False):
      np.testing.assert_array_equal(x, u)
      np.testing.assert_array_equal(y, v)
  assert len(set(numbers(whole))) > NUMBER // 2


def test_long_examples_are_left_out(index):
  drawn = take(lib.train_dataset(index, Batching(128, 10), seed=1), 50)
  assert all(max(x.shape[1], y.shape[1]) <= 10 for x, y in drawn)


def test_dev_batches_come_once_with_all_examples(index):
  drawn = numbers(take(lib.dev_dataset(index, Batching(128, 30)), -1))
  assert sorted(drawn) == list(range(NUMBER))


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("divisor", [1, 3])
def test_batches_of_epochs_are_counted_before_they_are_read(
  tmp_path, static, divisor
):
  rng = np.random.default_rng(0)
  pairs = [
    ([2] * (n - 1) + [1], [2, 1])
    for n in rng.integers(2, 20, size=100).tolist()
  ]
  write_shards(pairs, str(tmp_path), "x", "train", 2, seed=1)
  index = indexed(tmp_path)
  histogram = index.histogram()
  assert sum(histogram.values()) == 100
  batching = Batching(64, 16, static, divisor)
  count = batching.count_updates(
    {length: 3 * n for length, n in histogram.items()}
  )
  dataset = lib.train_dataset(index, batching, seed=1)
  sentences = [x.shape[0] for x, _ in dataset.take(count)]
  assert all(n % divisor == 0 for n in sentences)
  # What three epochs leave over fills no batch of any bucket.
  short = 3 * sum(n for length, n in histogram.items() if length <= 16)
  left_over = short - sum(sentences)
  assert 0 <= left_over <= sum(size - 1 for size in batching.sizes)


def test_synthetic_batches_are_ones():
  (batch,) = lib.synthetic_dataset(Batching(64, 16)).take(1)
  for side in batch:
    np.testing.assert_array_equal(side, np.ones([4, 16]))


def test_private_threads_change_no_batch(index):
  def draw(threads):
    return lib.train_dataset(
      index, Batching(128, 30), seed=1, threads=lib.Threads(private=threads)
    )

  assert numbers(take(draw(None), 20)) == numbers(take(draw(1), 20))
  assert draw(2).options().threading.private_threadpool_size == 2
