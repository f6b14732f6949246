"""Measures how often a test calls equal systems different.

    python benchmarks/significance.py --reference=test.de --translation=a.de \
      --translation=b.de --pairs=200

Equal systems are made of two real ones: for each sentence, chance decides which
of the two translations goes to which of the pair. Whatever a test then finds is
luck, and p < 0.05 should be found in 5% of the pairs.
"""

from __future__ import annotations

import argparse
import random

from official_transformer.evaluation.metrics import MetricSettings, References
from official_transformer.evaluation.significance import (
  SIGNIFICANT,
  TESTS,
  compare_with_first,
)
from official_transformer.text.text_files import read_parallel_files


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--reference", required=True)
  parser.add_argument("--translation", action="append", required=True)
  parser.add_argument("--pairs", type=int, default=200)
  parser.add_argument("--metrics", default="bleu,chrf")
  parser.add_argument("--seed", type=int, default=1)
  given = parser.parse_args()
  reference, one, two = read_parallel_files(
    [given.reference, *given.translation]
  )
  settings = MetricSettings(tuple(given.metrics.split(",")), resamples=0)
  rng = random.Random(given.seed)
  found: dict[tuple[str, str], int] = {}
  for _ in range(given.pairs):
    swapped = [rng.random() < 0.5 for _ in one]
    pair = [
      (
        name,
        [
          a if swap == first else b
          for a, b, swap in zip(one, two, swapped, strict=True)
        ],
      )
      for name, first in (("one", True), ("two", False))
    ]
    for test in TESTS:
      (compared,) = compare_with_first(
        pair, References([reference]), settings, test
      )
      for measured in compared.metrics:
        key = (test, measured.name)
        found[key] = found.get(key, 0) + (measured.p_value < SIGNIFICANT)
  for (test, metric), count in found.items():
    share = 100 * count / given.pairs
    print(f"{TESTS[test]}, {metric}: {count} of {given.pairs}, {share:.1f}%")


if __name__ == "__main__":
  main()
