"""A comparison of systems as text, as JSON, and as a table for LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from official_transformer.evaluation.metrics import (
  LESS_IS_BETTER,
  MetricScore,
)
from official_transformer.evaluation.scores import VARIANTS
from official_transformer.evaluation.significance import (
  SIGNIFICANT,
  TESTS,
  Comparison,
)
from official_transformer.evaluation.system_comparison import (
  System,
  SystemComparison,
)

_LATEX = {
  "\\": r"\textbackslash{}",
  "~": r"\textasciitilde{}",
  "^": r"\textasciicircum{}",
  **{c: f"\\{c}" for c in "&%$#_{}"},
}


def as_text(
  compared: SystemComparison, variants: Sequence[str] = VARIANTS
) -> str:
  """Returns lines to read.

  Args:
    compared: one system's lines are its scores alone.
    variants: which of the official scores to show, `uncased` or `cased`.
  """
  if len(compared.systems) == 1:
    return compared.systems[0].scores.report(variants)
  parts = [
    f"{system.name}\n{system.scores.report(variants)}"
    for system in compared.systems
  ]
  parts += ["\n".join(_comparison_lines(c)) for c in compared.comparisons]
  return "\n\n".join(parts)


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
  heading = f"{comparison.system} beside {comparison.baseline}"
  if comparison.is_identical:
    yield f"{heading}: identical, line for line"
    return
  yield (
    f"{heading}: {TESTS[comparison.test]}; {comparison.different_lines} of "
    f"{comparison.lines} lines differ"
  )
  for found in comparison.metrics:
    verdict = "" if found.is_significant else ", which may be luck"
    if not found.is_decidable:
      verdict = ", but too few lines differ to tell"
    yield (
      f"{found.name}|{found.signature} {found.difference:+.2f}, "
      f"p = {found.p_value:.4f}{verdict}"
    )


def as_json(
  compared: SystemComparison, variants: Sequence[str] = VARIANTS
) -> str:
  """Returns one JSON object, indented."""
  return json.dumps(
    fields_of(compared, variants), ensure_ascii=False, indent=1, allow_nan=False
  )


def fields_of(
  compared: SystemComparison, variants: Sequence[str] = VARIANTS
) -> dict[str, Any]:
  """Returns the whole comparison as a dictionary for JSON."""
  return {
    "tokenizer": {
      "name": compared.tokenizer.name,
      "reason": compared.tokenizer.reason,
    },
    "references": compared.references,
    "systems": [
      _system_fields(system, variants) for system in compared.systems
    ],
    "comparisons": [
      {
        "system": c.system,
        "baseline": c.baseline,
        "test": c.test,
        "lines": c.lines,
        "different_lines": c.different_lines,
        "identical": c.is_identical,
        "metrics": [
          {
            "name": m.name,
            "difference": m.difference,
            "p_value": m.p_value,
            "significant": m.is_significant,
            "decidable": m.is_decidable,
            "signature": m.signature,
          }
          for m in c.metrics
        ],
      }
      for c in compared.comparisons
    ],
  }


def _system_fields(system: System, variants: Sequence[str]) -> dict[str, Any]:
  official = {"uncased": system.scores.uncased, "cased": system.scores.cased}
  fields: dict[str, Any] = {
    "name": system.name,
    "lines": len(system.lines),
    "official_bleu": {name: official[name] for name in variants},
    "metrics": [_metric_fields(found) for found in system.scores.sacrebleu],
  }
  if comet := system.scores.comet:
    fields["comet"] = {"model": comet.model, "score": comet.score}
  if system.sentences:
    columns = system.sentences
    fields["sentences"] = [
      dict(zip(columns, row, strict=True))
      for row in zip(*columns.values(), strict=True)
    ]
  return fields


def _metric_fields(found: MetricScore) -> dict[str, Any]:
  fields: dict[str, Any] = {
    "name": found.name,
    "score": found.score,
    "signature": found.signature,
  }
  if found.interval:
    fields["mean"], fields["confidence"] = found.interval
  return fields


def as_latex(
  compared: SystemComparison, variants: Sequence[str] = VARIANTS
) -> str:
  """Returns a table: `booktabs`, best scores bold, a dagger for p < 0.05."""
  columns = list(_latex_columns(compared, variants))
  lines = [
    r"\begin{tabular}{l" + "r" * len(columns) + "}",
    r"\toprule",
    " & ".join(["System", *(heading for heading, _ in columns)]) + r" \\",
    r"\midrule",
  ]
  for number, system in enumerate(compared.systems):
    cells = [cells[number] for _, cells in columns]
    lines.append(" & ".join([_escaped(system.name), *cells]) + r" \\")
  lines += [r"\bottomrule", r"\end{tabular}"]
  notes = [
    f"{s.name}|{s.signature}" for s in compared.systems[0].scores.sacrebleu
  ]
  if any(s.interval for s in compared.systems[0].scores.sacrebleu):
    notes.append("± is half a 95% interval, by bootstrap resampling")
  tests = {c.test: c for c in compared.comparisons if c.metrics}
  for test, comparison in tests.items():
    notes.append(
      f"{_mark(test)}: p < {SIGNIFICANT:g} against {comparison.baseline}, "
      f"{TESTS[test]}, {comparison.metrics[0].signature}"
    )
  return "\n".join([*lines, *(f"% {note}" for note in notes)])


def _mark(test: str) -> str:
  return {"ar": r"$^\dagger$", "bs": r"$^\ddagger$"}[test]


def _latex_columns(
  compared: SystemComparison, variants: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
  """Yields headings, each with its cells."""
  scores = [system.scores for system in compared.systems]
  for variant in variants:
    values = [getattr(found, variant) for found in scores]
    yield f"BLEU ({variant})", _column([f"{v:.2f}" for v in values], values)
  for place, metric in enumerate(scores[0].sacrebleu):
    found = [s.sacrebleu[place] for s in scores]
    texts = [
      f"{score.score:.2f}"
      + (rf" $\pm$ {score.interval.half_width:.2f}" if score.interval else "")
      + _marks(compared, system.name, metric.name)
      for score, system in zip(found, compared.systems, strict=True)
    ]
    less = metric.name in LESS_IS_BETTER
    yield metric.name, _column(texts, [f.score for f in found], less)
  comets = [s.comet.score for s in scores if s.comet]
  if comets:
    yield "COMET", _column([f"{value:.4f}" for value in comets], comets)


def _column(
  texts: list[str], values: list[float], less_is_better: bool = False
) -> list[str]:
  """Returns cells, the best of several bold."""
  best = min(values) if less_is_better else max(values)
  return [
    rf"\textbf{{{text}}}" if len(values) > 1 and value == best else text
    for text, value in zip(texts, values, strict=True)
  ]


def _marks(compared: SystemComparison, system: str, metric: str) -> str:
  """Returns the marks of the tests in which a system differs from the first."""
  return "".join(
    _mark(c.test)
    for c in compared.comparisons
    if c.system == system
    for m in c.metrics
    if m.name == metric and m.is_significant
  )


def _escaped(text: str) -> str:
  return "".join(_LATEX.get(c, c) for c in text)


def sentence_table(compared: SystemComparison) -> Iterator[str]:
  """Yields lines with tabs between: a heading, then each line's scores."""
  columns: list[tuple[str, list[float]]] = []
  for system in compared.systems:
    prefix = f"{system.name} " if len(compared.systems) > 1 else ""
    columns += [(prefix + name, s) for name, s in system.sentences.items()]
  yield "\t".join(["line", *(name for name, _ in columns)])
  for number, row in enumerate(
    zip(*(scores for _, scores in columns), strict=True), start=1
  ):
    yield "\t".join([str(number), *(f"{value:.4f}" for value in row)])


FORMATS = {"text": as_text, "json": as_json, "latex": as_latex}
