import pytest

from official_transformer.data.buckets import Batching, bucket_boundaries
from official_transformer.errors import InputError


def test_boundaries_by_hand():
  # b -> max(b + 1, int(1.1 b)): below 20 it goes by one, then by a tenth.
  assert bucket_boundaries(24) == [*range(8, 21), 22]
  expected = [8]
  while expected[-1] < 256:
    expected.append(max(expected[-1] + 1, int(expected[-1] * 1.1)))
  assert bucket_boundaries(256) == expected[:-1]


def test_batch_sizes_by_hand():
  sizes = Batching(100, 10).sizes
  # Buckets end below 8 and 9 and with 10 included: 8, 9, 11 tokens at most.
  assert sizes == [12, 11, 9]


def test_a_batch_that_holds_no_sentence_is_refused():
  with pytest.raises(InputError, match=r"--batch_size=200.*--max_length=256"):
    Batching(200, 256)


def test_replicas_get_equal_shares():
  assert Batching(100, 10, batch_divisor=2).sizes == [12, 10, 8]


def test_static_batches_have_one_size():
  batching = Batching(100, 10, static_batch=True, batch_divisor=4)
  assert (batching.bounds, batching.sizes) == ([11], [8])


@pytest.mark.parametrize("static", [False, True])
def test_replicas_need_a_sentence_each(static):
  Batching(64, 16, static, batch_divisor=3)
  with pytest.raises(InputError, match="5 sentences, one a replica"):
    Batching(64, 16, static, batch_divisor=5)


def test_batches_counted_by_hand():
  # Buckets of lengths below 8, of 8, and of 9 and 10: 12, 11 and 9 sentences.
  histogram = {1: 20, 7: 5, 8: 11, 9: 8, 10: 10, 11: 99}
  assert Batching(100, 10).count_updates(histogram) == 2 + 1 + 2
