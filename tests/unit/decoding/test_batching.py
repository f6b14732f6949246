import numpy as np
import pytest

from official_transformer.decoding import batching
from official_transformer.decoding.options import BatchLimits
from official_transformer.errors import InputError


def test_results_come_in_the_callers_order_from_batches_by_length():
  seen = []

  def process(batch):
    seen.append([len(word) for word in batch])
    return [word.upper() for word in batch]

  words = ["aa", "bbbb", "c", "ddd", "ee"]
  found = batching.map_by_length(words, len, BatchLimits(lines=2), process)
  assert found == ["AA", "BBBB", "C", "DDD", "EE"]
  assert seen == [[4, 3], [2, 2], [1]]


def test_a_batch_holds_so_many_tokens_and_lines():
  lengths = [10, 100, 40, 40, 10, 250, 10, 10]
  assert batching.batches_by_length(lengths, BatchLimits(200)) == [
    [5], [1, 2], [3, 0, 4, 6, 7],
  ]  # fmt: skip
  assert batching.batches_by_length(lengths, BatchLimits(200, 2)) == [
    [5], [1, 2], [3, 0], [4, 6], [7],
  ]  # fmt: skip


def test_there_are_batches_for_all_workers():
  found = batching.batches_by_length([5] * 7, BatchLimits(), parts=3)
  assert found == [[0, 1, 2], [3, 4, 5], [6]]
  assert batching.batches_by_length([5], BatchLimits(), parts=3) == [[0]]
  assert batching.batches_by_length([], BatchLimits(), parts=3) == []


def test_windows_hold_so_many_items_of_such_a_size(monkeypatch):
  monkeypatch.setattr(batching, "WINDOW_ITEMS", 3)
  monkeypatch.setattr(batching, "WINDOW_SIZE", 10)
  found = list(batching.windows([1, 2, 3, 4, 9, 1, 30, 2], lambda n: n))
  assert found == [[1, 2, 3], [4, 9], [1, 30], [2]]
  assert list(batching.windows([], len)) == []


def test_padding_by_hand():
  np.testing.assert_array_equal(batching.pad([[5, 1], [1]]), [[5, 1], [1, 0]])
  np.testing.assert_array_equal(batching.pad([[5]], width=3), [[5, 0, 0]])
  np.testing.assert_array_equal(batching.pad([[5]], rows=2), [[5], [0]])
  assert batching.pad([[5]]).dtype == np.int32


@pytest.mark.parametrize("limits", [(0, None), (9, 0)])
def test_impossible_limits_are_refused(limits):
  with pytest.raises(InputError, match="must be at least 1"):
    BatchLimits(*limits)


@pytest.mark.parametrize(
  ("beam_size", "expected"),
  [(1, (2048, 128)), (4, (2048, 128)), (8, (1024, 64)), (10**6, (1, 1))],
)
def test_a_batch_holds_as_many_hypotheses_at_any_beam(beam_size, expected):
  limits = BatchLimits(2048, 128).for_beam(beam_size)
  assert (limits.tokens, limits.lines) == expected
