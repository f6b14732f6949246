"""The content of a report, as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from official_transformer.evaluation import breakdowns, comparison_formats
from official_transformer.evaluation.breakdowns import Group, NgramCount
from official_transformer.evaluation.metrics import (
  METRICS,
  MetricSettings,
  References,
)
from official_transformer.evaluation.sentence_warnings import (
  MEANINGS,
  warnings_of,
)
from official_transformer.evaluation.system_comparison import (
  COMET,
  ComparisonSettings,
  SystemComparison,
  compare_systems,
)

if TYPE_CHECKING:
  from official_transformer.decoding.attention import LineAttention

# TER takes as long as all else.
_OF_GROUPS = ("bleu", "chrf")
# Weights are rounded to hundredths.
_STEPS = 100


@dataclasses.dataclass(frozen=True)
class Reported:
  """One of the translations.

  Attributes:
    name: name of the system, such as its file's.
    lines: one for each source.
    unfinished: whether the model ended each translation at its limit; None if
      unknown.
  """

  name: str
  lines: list[str]
  unfinished: list[bool] | None = None


@dataclasses.dataclass(frozen=True)
class ReportRequest:
  """The files and settings of a report.

  Attributes:
    title: title of the page.
    sources: lines.
    references: reference translations, one or more for each source.
    systems: one, or two that are compared.
    settings: settings of the comparison; its `sentences` and the list of its
      metrics are not read, because all metrics score all lines.
    frequency_text: lines in which words are counted; None takes the references.
    frequency_name: name of the text in which words are counted.
  """

  title: str
  sources: list[str]
  references: References
  systems: list[Reported]
  settings: ComparisonSettings
  frequency_text: Iterable[str] | None = None
  frequency_name: str = "the references"


def score_systems(request: ReportRequest) -> SystemComparison:
  """Scores the systems, and each of their lines, by all metrics."""
  metrics = dataclasses.replace(request.settings.metrics, metrics=METRICS)
  settings = dataclasses.replace(
    request.settings, metrics=metrics, sentences=True
  )
  systems = [(system.name, system.lines) for system in request.systems]
  return compare_systems(systems, request.references, settings, request.sources)


def report_data(
  request: ReportRequest,
  compared: SystemComparison,
  attention: Mapping[int, LineAttention],
) -> dict[str, Any]:
  """Returns all that the page shows.

  Args:
    request: contents of the report.
    compared: result of `score_systems`.
    attention: attention of some lines, counted from 0.
  """
  lines = [system.lines for system in request.systems]
  counts = breakdowns.count_ngrams(lines, request.references.first)
  comparison = comparison_formats.fields_of(compared)
  for system in comparison["systems"]:
    del system["sentences"]
  return {
    "title": request.title,
    "comparison": comparison,
    "groups": _group_lists(request, lines, compared.tokenizer.name),
    "ngrams": _ngram_lists(counts, len(lines)),
    "sources": request.sources,
    "lengths": [
      len(breakdowns.plain_words(line)) for line in request.references.first
    ],
    "references": [
      request.references.of_line(n) for n in range(len(request.sources))
    ],
    "lines": lines,
    "scores": [
      {
        name: [round(value, 4 if name == COMET else 1) for value in values]
        for name, values in system.sentences.items()
      }
      for system in compared.systems
    ],
    "warnings": [
      warnings_of(request.sources, system.lines, system.unfinished)
      for system in request.systems
    ],
    "meanings": MEANINGS,
    "attention": {
      str(number): _attention(found) for number, found in attention.items()
    },
  }


def _group_lists(
  request: ReportRequest, lines: list[list[str]], tokenize: str
) -> list[dict[str, Any]]:
  """Returns the scores of groups of sentences, and of n-grams by order."""
  settings = MetricSettings(_OF_GROUPS, tokenize, 0)
  text = request.frequency_text or request.references.first
  return [
    {
      "title": "By length of the reference, in words",
      "rows": _groups(
        breakdowns.by_length(lines, request.references, settings)
      ),
    },
    {
      "title": "By how often the reference's rarest word is in "
      + request.frequency_name,
      "rows": _groups(
        breakdowns.by_rarest_word(lines, request.references, settings, text)
      ),
    },
    {
      "title": "Words and phrases that the references have, too",
      "rows": _orders(
        breakdowns.by_order(lines, request.references, settings.tokenize)
      ),
    },
  ]


def _groups(groups: Sequence[Group]) -> list[dict[str, Any]]:
  return [
    {
      "name": group.name,
      "lines": group.lines,
      "scores": [
        {name: round(value, 2) for name, value in scores.items()}
        for scores in group.scores
      ],
    }
    for group in groups
  ]


def _orders(precisions: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
  """Returns BLEU's precisions like groups: every metric's bar is the same."""
  return [
    {
      "name": f"{order + 1} word{'s' if order else ''}",
      "lines": None,
      "scores": [
        {"precision": round(system[order], 2)} for system in precisions
      ],
    }
    for order in range(4)
  ]


def _ngram_lists(
  counts: list[NgramCount], systems: int
) -> list[dict[str, Any]]:
  lists = []

  def add(title: str, value: Any) -> None:
    rows = breakdowns.most(counts, value)
    lists.append(
      {
        "title": title,
        "rows": [
          {
            "ngram": c.ngram,
            "inReferences": c.in_references,
            "matched": c.matched,
            "inTranslations": c.in_translations,
          }
          for c in rows
        ],
      }
    )

  if systems == 2:
    add(
      "Found by A more often than by B", lambda c: c.matched[0] - c.matched[1]
    )
    add(
      "Found by B more often than by A", lambda c: c.matched[1] - c.matched[0]
    )
  for place in range(systems):
    name = f" by {'AB'[place]}" if systems == 2 else ""
    add(f"Missed{name}", lambda c, n=place: c.in_references - c.matched[n])
    add(
      f"Made without a reference{name}",
      lambda c, n=place: c.in_translations[n] - c.matched[n],
    )
  return lists


def choose_lines(
  compared: SystemComparison, number: int, usable: Sequence[bool]
) -> list[int]:
  """Returns the lines whose attention is worth a look, from 0.

  Of two systems, these are the lines whose chrF differs most; of one, the lines
  with the lowest chrF.

  Args:
    compared: scores of one or two systems, and of each of their lines.
    number: largest number of lines to return.
    usable: for each line, whether it may be chosen.
  """
  name = next(n for n in compared.systems[0].sentences if n.startswith("chrF"))
  scores = [np.array(system.sentences[name]) for system in compared.systems]
  value = abs(scores[0] - scores[1]) if len(scores) == 2 else -scores[0]
  order = np.argsort(-value, kind="stable")
  return [int(n) for n in order if usable[n]][:number]


def _attention(found: LineAttention) -> dict[str, Any]:
  """Returns the attention to the source, of each layer, its heads' mean."""
  weights = found.cross.mean(1)
  return {
    "source": found.source,
    "target": found.target,
    "layers": np.rint(weights * _STEPS).astype(int).tolist(),
  }
