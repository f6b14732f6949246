"""Several translations of one text, scored and compared with the first."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from official_transformer.evaluation.bleu_tokenizer import (
  AUTO,
  TokenizerChoice,
  choose_tokenizer,
)
from official_transformer.evaluation.comet import Comet
from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  sentence_scores,
  without_heavy,
)
from official_transformer.evaluation.scores import Scores, score
from official_transformer.evaluation.significance import (
  RANDOMIZATION,
  Comparison,
  compare_with_first,
)

# Among the metrics, of each line.
COMET = "COMET"


@dataclasses.dataclass(frozen=True)
class ComparisonSettings:
  """Metrics and tests of a comparison.

  Attributes:
    metrics: metrics, and their options; the tokenizer is not read.
    tokenize: BLEU's tokenizer: `auto`, or sacreBLEU's name of it.
    tests: tests of significance, some of `significance.TESTS`.
    trials: trials of each; 0 is sacreBLEU's own number.
    sentences: whether each line is scored, too.
    comet: a COMET model, if there is one.
  """

  metrics: MetricSettings = dataclasses.field(default_factory=MetricSettings)
  tokenize: str = AUTO
  tests: Sequence[str] = (RANDOMIZATION,)
  trials: int = 0
  sentences: bool = False
  comet: Comet | None = None


@dataclasses.dataclass(frozen=True)
class System:
  """One of the translations.

  Attributes:
    name: name of the system, such as its file's.
    lines: one for each of the source.
    scores: scores of all lines together.
    sentences: scores of each line, by metric; empty if they were not
      wanted.
  """

  name: str
  lines: list[str]
  scores: Scores
  sentences: Mapping[str, list[float]]


@dataclasses.dataclass(frozen=True)
class SystemComparison:
  """Scores of the systems, and tests of their differences.

  Attributes:
    systems: in the order they were given.
    comparisons: comparisons of each with the first, by each test.
    tokenizer: BLEU's tokenizer, and why it was chosen.
    references: the most references that a line has.
  """

  systems: list[System]
  comparisons: list[Comparison]
  tokenizer: TokenizerChoice
  references: int


def compare_systems(
  systems: Sequence[tuple[str, Sequence[str]]],
  references: References,
  settings: ComparisonSettings,
  sources: Sequence[str] | None = None,
) -> SystemComparison:
  """Scores translations, and compares them with the first.

  Args:
    systems: names and translations.
    references: references of as many lines.
    settings: how.
    sources: source lines of as many lines; COMET needs them.

  Raises:
    InputError: if a tokenizer is asked for that is not there.
    RunError: if COMET fails.
    ValueError: if numbers of lines differ.
  """
  tokenizer = choose_tokenizer(settings.tokenize, references.first)
  metrics = without_heavy(
    dataclasses.replace(settings.metrics, tokenize=tokenizer.name),
    itertools.chain(*references.streams, *(lines for _, lines in systems)),
  )
  scores = [score(references, lines, metrics) for _, lines in systems]
  if settings.comet:
    assert sources is not None
    told = settings.comet.score(
      sources, references.first, [lines for _, lines in systems]
    )
    scores = [
      dataclasses.replace(found, comet=comet)
      for found, comet in zip(scores, told, strict=True)
    ]
  comparisons: list[Comparison] = []
  if len(systems) > 1:
    for test in settings.tests:
      found = compare_with_first(
        systems, references, metrics, test, settings.trials
      )
      # An identical system is listed once, not for each test.
      comparisons += [
        c for c in found if test == settings.tests[0] or not c.is_identical
      ]
  return SystemComparison(
    [
      System(
        name,
        list(lines),
        found,
        _sentences(metrics, references, lines, found)
        if settings.sentences
        else {},
      )
      for (name, lines), found in zip(systems, scores, strict=True)
    ],
    comparisons,
    tokenizer,
    len(references.streams),
  )


def _sentences(
  metrics: MetricSettings,
  references: References,
  lines: Sequence[str],
  found: Scores,
) -> dict[str, list[float]]:
  """Returns the scores of each line, by metric; COMET's are known already."""
  scores = sentence_scores(metrics, references, lines)
  return {**scores, COMET: found.comet.lines} if found.comet else scores
