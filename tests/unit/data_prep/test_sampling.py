import pytest

from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.pair_encoder import PairCleaner
from data_prep.reading import sampling as lib
from data_prep.reading.text_blocks import Block
from official_transformer.errors import InputError
from official_transformer.text.text_form import TextForm


def blocks(sizes, first_line=b"0"):
  first = 0
  for number, size in enumerate(sizes):
    lines = [b"%d\n" % n for n in range(first, first + size)]
    if not first:
      lines[0] = first_line + b"\n"
    yield Block(number, first, "one", "other", first + 1, lines, lines)
    first += size


def sample(sizes, most, seed=1, **settings):
  cleaner = PairCleaner(TextForm(), FilterSettings(**settings))
  found = lib.sample_pairs(blocks(sizes), cleaner, most, seed)
  return [
    pair for c in found for pair in zip(c.sources, c.targets, strict=True)
  ]


@pytest.mark.parametrize("most", [0, 50, 1000])
def test_few_pairs_are_all_taken_in_their_order(most):
  assert sample([20, 30], most) == [(str(n), str(n)) for n in range(50)]


def test_a_sample_is_even_and_does_not_depend_on_the_blocks():
  found = sample([1000] * 20, 500)
  assert len(found) == 500
  numbers = [int(source) for source, _ in found]
  assert numbers == sorted(numbers)
  # Five deviations of a hypergeometric distribution around a half.
  assert abs(sum(n < 10_000 for n in numbers) - 250) < 5 * 11.1
  assert sample([7000, 13_000], 500) == found
  assert sample([20_000], 500, seed=2) != found


def test_what_is_filtered_out_is_not_replaced():
  found = sample([100], 100, identical=True)
  assert not found


def test_bad_bytes_are_named_wherever_they_are():
  cleaner = PairCleaner(TextForm(), FilterSettings())
  with pytest.raises(InputError, match="one, line 1: not UTF-8"):
    list(lib.sample_pairs(blocks([5000], b"\xff"), cleaner, 3, 1))
