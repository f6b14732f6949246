"""Whether one system is better than another, or only luckier on this text.

Both tests are sacreBLEU's. Of systems that are equal, paired bootstrap
resampling finds p < 0.05 in 14% of the cases, approximate randomisation in 5%:
it is the default. Sources: Koehn 2004; Riezler and Maxwell 2005.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from sacrebleu.significance import PairedTest

from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  create_metrics,
)

RANDOMIZATION = "ar"
BOOTSTRAP = "bs"
TESTS = {
  RANDOMIZATION: "paired approximate randomisation",
  BOOTSTRAP: "paired bootstrap resampling",
}
# Trials, or resamples: sacreBLEU's defaults.
TRIALS = {RANDOMIZATION: 10_000, BOOTSTRAP: 1_000}
SIGNIFICANT = 0.05


class MetricComparison(NamedTuple):
  """A system compared with the first, by one metric.

  Attributes:
    name: name of the metric.
    difference: score of this system minus that of the first.
    p_value: how probable as large a difference is of equal systems.
    signature: signature of the test.
    is_decidable: whether there is a difference, and enough lines differ to
      distinguish it from chance. k differing lines can be exchanged in 2^k
      ways, two of which give a difference of the observed size: an exact p is
      never below 2^(1-k). sacreBLEU's p can be lower, because it does not count
      outcomes of equal size.
  """

  name: str
  difference: float
  p_value: float
  signature: str
  is_decidable: bool = True

  @property
  def is_significant(self) -> bool:
    """Whether it is hardly luck, by custom."""
    return self.is_decidable and self.p_value < SIGNIFICANT


class Comparison(NamedTuple):
  """A system compared with the first, by one test.

  Attributes:
    system: name of the system.
    baseline: name of the first system.
    test: one of `TESTS`.
    lines: whose translations are compared.
    different_lines: lines in which the two systems differ. Without any, no test
      is made.
    metrics: result of each metric; empty for identical translations.
  """

  system: str
  baseline: str
  test: str
  lines: int
  different_lines: int
  metrics: list[MetricComparison]

  @property
  def is_identical(self) -> bool:
    """Whether both have translated all lines alike, but for blanks."""
    return self.different_lines == 0


def compare_with_first(
  systems: Sequence[tuple[str, Sequence[str]]],
  references: References,
  settings: MetricSettings,
  test: str,
  trials: int = 0,
) -> list[Comparison]:
  """Compares all systems with the first.

  Args:
    systems: names and translations.
    references: references of as many lines.
    settings: the metrics.
    test: one of `TESTS`.
    trials: 0 is sacreBLEU's own number.

  Returns:
    One for each system but the first.
  """
  (baseline, first), *others = systems
  different = [
    # No metric counts blanks at the ends.
    sum(a.strip() != b.strip() for a, b in zip(first, lines, strict=True))
    for _, lines in others
  ]
  tested = [system for system, n in zip(others, different, strict=True) if n]
  found: list[list[MetricComparison]] = []
  if tested:
    found = _test(
      [(baseline, first), *tested],
      references,
      settings,
      test,
      trials or TRIALS[test],
    )
  results = iter(found)
  comparisons = []
  for (name, _), n in zip(others, different, strict=True):
    metrics = [
      m._replace(
        is_decidable=m.difference != 0 and 2.0 ** (1 - n) < SIGNIFICANT
      )
      for m in (next(results) if n else [])
    ]
    comparisons.append(Comparison(name, baseline, test, len(first), n, metrics))
  return comparisons


def _test(
  systems: Sequence[tuple[str, Sequence[str]]],
  references: References,
  settings: MetricSettings,
  test: str,
  trials: int,
) -> list[list[MetricComparison]]:
  """Returns sacreBLEU's test of each system but the first."""
  # It logs every step.
  logging.getLogger("sacrebleu").setLevel(logging.WARNING)
  signatures: Any
  results: Any
  signatures, results = PairedTest(
    [(name, list(lines)) for name, lines in systems],
    create_metrics(settings, references),
    references=None,  # The metrics know them.
    test_type=test,
    n_samples=trials,
  )()
  names = [name for name in results if name != "System"]
  found = []
  for place in range(1, len(systems)):
    comparisons = []
    for name in names:
      first, result = results[name][0], results[name][place]
      comparisons.append(
        MetricComparison(
          name,
          float(result.score - first.score),
          float(result.p_value),
          str(signatures[name]),
        )
      )
    found.append(comparisons)
  return found
