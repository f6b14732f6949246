import numpy as np

from official_transformer.decoding import batching


def test_results_come_in_the_callers_order_from_batches_by_length():
  seen = []

  def process(batch):
    seen.append([len(word) for word in batch])
    return [word.upper() for word in batch]

  words = ["aa", "bbbb", "c", "ddd", "ee"]
  found = batching.map_by_length(words, len, 2, process)
  assert found == ["AA", "BBBB", "C", "DDD", "EE"]
  assert seen == [[4, 3], [2, 2], [1]]


def test_long_items_come_in_smaller_batches():
  sizes = []
  limit = batching.FULL_BATCH_LINE_LENGTH
  items = [limit, limit, 4 * limit, limit + 1]
  batching.map_by_length(
    items, lambda n: n, 2, lambda b: sizes.append(len(b)) or list(b)
  )
  assert sizes == [1, 1, 2]


def test_windows_hold_so_many_batches(monkeypatch):
  monkeypatch.setattr(batching, "BATCHES_PER_WINDOW", 2)
  assert list(batching.windows(range(7), 2)) == [[0, 1, 2, 3], [4, 5, 6]]


def test_padding_by_hand():
  np.testing.assert_array_equal(batching.pad([[5, 1], [1]]), [[5, 1], [1, 0]])
  np.testing.assert_array_equal(batching.pad([[5]], width=3), [[5, 0, 0]])
  assert batching.pad([[5]]).dtype == np.int32
