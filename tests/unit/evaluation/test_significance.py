import random

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from official_transformer.evaluation.metrics import MetricSettings, References
from official_transformer.evaluation.significance import (
  BOOTSTRAP,
  RANDOMIZATION,
  MetricComparison,
  compare_with_first,
)

WORDS = "one two three four five six seven eight nine ten".split()
SETTINGS = MetricSettings(metrics=("bleu", "chrf", "ter"))


def texts(number=60, seed=0):
  """A reference, and two translations, the second of them the worse."""
  rng = random.Random(seed)
  reference = [
    " ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(number)
  ]

  def spoil(line, share):
    return " ".join(
      rng.choice(WORDS) if rng.random() < share else word
      for word in line.split()
    )

  return (
    reference,
    [spoil(line, 0.2) for line in reference],
    [spoil(line, 0.5) for line in reference],
  )


@pytest.mark.parametrize(
  ("test", "trials"), [(RANDOMIZATION, 300), (BOOTSTRAP, 200)]
)
def test_it_is_sacrebleus(test, trials):
  reference, good, bad = texts()
  found = compare_with_first(
    [("good", good), ("bad", bad)],
    References([reference]),
    SETTINGS,
    test,
    trials,
  )
  signatures, results = PairedTest(
    [("good", good), ("bad", bad)],
    {
      "bleu": BLEU(references=[reference]),
      "chrf": CHRF(references=[reference]),
      "ter": TER(references=[reference]),
    },
    None,
    test_type=test,
    n_samples=trials,
  )()
  (comparison,) = found
  assert comparison.different_lines > 40
  assert [m.name for m in comparison.metrics] == ["BLEU", "chrF2", "TER"]
  for metric in comparison.metrics:
    first, second = results[metric.name]
    assert metric.p_value == second.p_value
    assert metric.difference == second.score - first.score
    assert metric.signature == str(signatures[metric.name])
    assert f"{test}:{trials}" in metric.signature
    assert metric.is_significant


def test_identical_translations_are_called_so():
  reference, good, bad = texts(20)
  identical, different = compare_with_first(
    [("first", good), ("same", list(good)), ("other", bad)],
    References([reference]),
    SETTINGS,
    RANDOMIZATION,
    50,
  )
  assert identical.is_identical
  assert identical.metrics == []
  assert (different.system, different.baseline) == ("other", "first")
  assert not different.is_identical
  assert len(different.metrics) == 3


def test_too_few_lines_that_differ_decide_nothing():
  """With five of them no p can be below 2^-4; sacreBLEU's own is 0.0099."""
  reference, good, _ = texts(20)
  for changed, decidable in ((5, False), (6, True)):
    other = [
      "one two three" if n < changed else line for n, line in enumerate(good)
    ]
    (found,) = compare_with_first(
      [("a", good), ("b", other)],
      References([reference]),
      SETTINGS,
      RANDOMIZATION,
      100,
    )
    assert found.different_lines == changed
    assert found.metrics[0].is_decidable == decidable
    assert found.metrics[0].p_value < 0.05
    assert found.metrics[0].is_significant == decidable


def test_no_difference_is_not_significant_and_blanks_are_none():
  reference, good, _ = texts(20)
  blanks = [f"{line} " if n < 9 else line for n, line in enumerate(good)]
  (found,) = compare_with_first(
    [("a", good), ("b", blanks)], References([reference]), SETTINGS, "ar", 50
  )
  assert found.is_identical
  same = MetricComparison("BLEU", 0.0, 0.0001, "", False)
  assert not same.is_significant


def test_all_identical_needs_no_test():
  reference, good, _ = texts(5)
  (found,) = compare_with_first(
    [("a", good), ("b", good)], References([reference]), SETTINGS, BOOTSTRAP
  )
  assert found.is_identical


def test_systems_that_are_equal_are_seldom_called_different():
  """Of 40, two are expected below 0.05, and 7 in one case of a hundred."""
  rng = random.Random("others")
  found = 0
  settings = MetricSettings(metrics=("bleu",))
  for trial in range(40):
    reference, one, _ = texts(40, trial)
    other = [
      " ".join(
        rng.choice(WORDS) if rng.random() < 0.2 else word
        for word in line.split()
      )
      for line in reference
    ]
    (comparison,) = compare_with_first(
      [("one", one), ("other", other)],
      References([reference]),
      settings,
      RANDOMIZATION,
      200,
    )
    found += comparison.metrics[0].is_significant
  assert found <= 7
