"""Translations and scores as lines of text, or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from official_transformer.decoding.translation import Hypothesis, Translation

if TYPE_CHECKING:
  from official_transformer.decoding.scorer import PairScore


def lines_of(
  translations: Iterable[Translation], output_format: str, n_best: int
) -> Iterator[str]:
  """Yields the output lines of translations, as they come.

  Args:
    translations: in the order of their lines.
    output_format: `text` or `jsonl`.
    n_best: hypotheses of each.
  """
  for translation in translations:
    if output_format == "text":
      yield from text_lines(translation, n_best)
    else:
      yield json_line(translation, n_best)


def text_lines(translation: Translation, n_best: int) -> Iterator[str]:
  """Yields `n_best` lines, best first; empty ones if fewer were found.

  Alignments, if there are any, follow ` ||| `, as Moses and Marian write them.
  """
  found = [
    h.text if h.alignment is None else f"{h.text} ||| {h.alignment}"
    for h in translation.hypotheses
  ]
  yield from (found + [""] * n_best)[:n_best]


def json_line(translation: Translation, n_best: int) -> str:
  """Returns one JSON object, of `fields_of`."""
  return json.dumps(fields_of(translation, n_best), ensure_ascii=False)


class OutputFields(NamedTuple):
  """Fields of a translation's output besides text and flags.

  Attributes:
    scores: `score` and `tokens`.
    alignments: `alignment`, in Pharaoh's format, with `source_words` and
      `target_words`, which it counts.
    attention: `attention` of the target's words to the source's, also with
      `source_words` and `target_words`; a long line that was cut has none.
  """

  scores: bool = True
  alignments: bool = True
  attention: bool = False


# But attention, which is long.
DEFAULT_FIELDS = OutputFields()


def fields_of(
  translation: Translation, n_best: int, include: OutputFields = DEFAULT_FIELDS
) -> dict[str, Any]:
  """Returns the output fields of a line.

  The fields are those of the best hypothesis (`translation` and the fields that
  `include` names; alignments and attention only if they exist), `flags` (see
  `flags_of`) and, with `n_best` above 1, all `hypotheses`, each with its own
  fields.
  """

  def fields(hypothesis: Hypothesis) -> dict[str, Any]:
    found: dict[str, Any] = {"translation": hypothesis.text}
    if include.scores:
      found |= {"score": _number(hypothesis.score), "tokens": hypothesis.tokens}
      if hypothesis.utility is not None:
        found["utility"] = round(hypothesis.utility, 4)
    alignment = hypothesis.alignment
    if alignment is None:
      return found
    if include.alignments or include.attention:
      found["source_words"] = alignment.source_words
      found["target_words"] = alignment.target_words
    if include.alignments:
      found["alignment"] = str(alignment)
    if include.attention and alignment.weights:
      found["attention"] = [
        [round(weight, 4) for weight in row] for row in alignment.weights
      ]
    return found

  best = fields(translation.hypotheses[0])
  answer: dict[str, Any] = {**best, "flags": flags_of(translation)}
  if translation.unmet:
    answer["unmet"] = list(translation.unmet)
  if n_best > 1:
    answer["hypotheses"] = [
      {**fields(h), "finished": h.finished} for h in translation.hypotheses
    ]
  return answer


def flags_of(translation: Translation) -> list[str]:
  """Returns the flags of a translation, such as `split`.

  `blank`: the line has nothing to translate. `split`: it was translated in
  several pieces, because it has several sentences or is long. `recased`: text
  in capitals or title case was translated as a sentence. `unfinished`: the best
  hypothesis, or one of its pieces, reached its limit without EOS. `unknown`:
  the translation has an unknown token, written as U+2047. `unmet`: it lacks a
  required phrase, or contains a forbidden one.
  """
  flags = {
    "blank": translation.pieces == 0,
    "split": translation.pieces > 1,
    "recased": translation.is_recased,
    "unfinished": not translation.finished,
    "unknown": translation.hypotheses[0].has_unknown,
    "unmet": bool(translation.unmet),
  }
  return [name for name, holds in flags.items() if holds]


def score_text_line(score: PairScore) -> str:
  """Returns log-probability, tokens and normalised score, between tabs."""
  return (
    f"{score.log_probability:.6f}\t{score.tokens}\t{score.normalized_score:.6f}"
  )


def score_json_line(score: PairScore) -> str:
  """Returns one JSON object."""
  return json.dumps(
    {
      "log_probability": _number(score.log_probability),
      "tokens": score.tokens,
      "normalized_score": _number(score.normalized_score),
      "token_log_probabilities": [
        _number(p) for p in score.token_log_probabilities
      ],
    }
  )


def _number(value: float) -> float | None:
  """Returns a number as JSON knows it: NaN is null."""
  return value if math.isfinite(value) else None
