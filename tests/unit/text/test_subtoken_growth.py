"""Against the same rules in dictionaries of strings, as upstream has them."""

import collections
import random

import pytest

from official_transformer.text.subtoken_growth import SubtokenGrowth


def plainly_grown(token_counts, min_count):
  """Returns the entries that `grow` is to return, as a set."""
  letters = {c for token in token_counts for c in token}
  subtokens, longest = letters, 1
  for _ in range(4):
    counts = collections.Counter()
    for token, count in token_counts.items():
      start = 0
      while start < len(token):
        end = min(len(token), start + longest)
        while token[start:end] not in subtokens:
          end -= 1
        for stop in range(start + 1, len(token) + 1):
          counts[token[start:stop]] += count
        start = end
    by_length = collections.defaultdict(list)
    for subtoken, count in counts.items():
      if count >= min_count:
        by_length[len(subtoken)].append(subtoken)
    longest = max(by_length, default=1)
    chosen = []
    for length in range(longest, 1, -1):
      for subtoken in by_length[length]:
        count = counts[subtoken]
        if count >= min_count:
          chosen.append((count, subtoken))
          for end in range(1, length):
            counts[subtoken[:end]] -= count
    subtokens = letters | {subtoken for _, subtoken in chosen}
  return {*chosen, *((counts[c], c) for c in letters)}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("min_count", [1, 2, 5, 40, 10_000])
def test_entries_and_counts(seed, min_count):
  rng = random.Random(seed)
  letters = "ab\u4e2d\U0001f600"[: 2 + seed % 3]
  tokens = {
    "".join(rng.choices(letters, k=rng.randint(0, 9))) + "_": rng.randint(1, 9)
    for _ in range(60)
  }
  found = SubtokenGrowth(tokens).grow(min_count)
  assert len(found) == len(set(found))
  assert set(found) == plainly_grown(tokens, min_count)


def test_the_same_growth_serves_several_counts():
  tokens = {"abab_": 5, "ab_": 7, "b_": 1}
  growth = SubtokenGrowth(tokens)
  for min_count in (5, 1, 5):
    assert set(growth.grow(min_count)) == plainly_grown(tokens, min_count)
