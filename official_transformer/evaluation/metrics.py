"""sacreBLEU's metrics: BLEU, chrF and TER, with signatures and intervals.

Sources: Papineni et al. 2002, Popović 2015, Snover et al. 2006; Post 2018 for
signatures, Koehn 2004 for intervals.
"""

from __future__ import annotations

import dataclasses
import logging as python_logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import logging
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from official_transformer.errors import InputError
from official_transformer.evaluation.bleu_tokenizer import DEFAULT

TER_NAME = "ter"
METRICS = ("bleu", "chrf", TER_NAME)
# Words of a line: the table of edits has their square, 16 bytes each.
_LONGEST_FOR_TER = 4000
# Of TER, which counts edits, less is better.
LESS_IS_BETTER = ("TER",)
RESAMPLES = 1000
# The central 95% leave one out at either end.
LEAST_RESAMPLES = 40


class Interval(NamedTuple):
  """A 95% confidence interval.

  Attributes:
    mean: mean of the resamples, the centre of the interval.
    half_width: half the width of the central 95% of them.
  """

  mean: float
  half_width: float


class MetricScore(NamedTuple):
  """A score of sacreBLEU.

  Attributes:
    name: `BLEU`, `chrF2` or `TER`.
    score: score of the corpus, in percent.
    signature: sacreBLEU's signature, which belongs to every report of the
      score.
    interval: 95% interval by bootstrap resampling, if it was wanted.
  """

  name: str
  score: float
  signature: str
  interval: Interval | None = None


@dataclasses.dataclass(frozen=True)
class MetricSettings:
  """Choice of metrics, and how they are computed.

  Attributes:
    metrics: some of `METRICS`.
    tokenize: sacreBLEU's name of BLEU's tokenizer.
    resamples: bootstrap resamples of which intervals are taken; 0 takes none.
  """

  metrics: Sequence[str] = METRICS
  tokenize: str = DEFAULT
  resamples: int = RESAMPLES

  def __post_init__(self) -> None:
    if not self.metrics:
      raise InputError(f"no metric is named; there are: {', '.join(METRICS)}")
    if unknown := set(self.metrics) - set(METRICS):
      raise InputError(
        f"no metric {', '.join(sorted(unknown))}; there are: "
        + ", ".join(METRICS)
      )
    if self.resamples and self.resamples < LEAST_RESAMPLES:
      raise InputError(
        f"{self.resamples} resamples are too few for an interval of 95%: take "
        f"0, for none, or at least {LEAST_RESAMPLES}"
      )


class References:
  """Reference translations, one or more of each line.

  Attributes:
    streams: one list of lines for each, all of the same length.
  """

  def __init__(self, streams: Sequence[Sequence[str]]) -> None:
    """Keeps them.

    Raises:
      ValueError: if there are no references, or their numbers of lines differ.
    """
    if not streams or not streams[0]:
      raise ValueError("there are no references")
    for stream in streams[1:]:
      if len(stream) != len(streams[0]):
        raise ValueError(
          f"one reference has {len(streams[0])} lines, another {len(stream)}"
        )
    self.streams = [list(stream) for stream in streams]

  @property
  def first(self) -> list[str]:
    """The first of each line, which official BLEU takes."""
    return self.streams[0]

  def of_line(self, number: int) -> list[str]:
    """Returns the references of a line, counted from 0."""
    return [line for line in self._present(number) if line is not None]

  def _present(self, number: int) -> list[str | None]:
    """Returns a line's, with None for an empty one that is not its only one.

    sacreBLEU would take it for a translation.
    """
    found = [stream[number] for stream in self.streams]
    if not any(line.strip() for line in found):
      return [found[0], *(None for _ in found[1:])]
    return [line if line.strip() else None for line in found]

  def for_sacrebleu(self) -> list[list[str | None]]:
    """Returns the streams as sacreBLEU takes them."""
    lines = map(self._present, range(len(self.first)))
    return [list(stream) for stream in zip(*lines, strict=True)]

  def check(self, translations: Sequence[str]) -> None:
    """Raises a `ValueError` unless there is a translation for each line."""
    if len(translations) != len(self.first):
      raise ValueError(
        f"the translation has {len(translations)} lines and the reference "
        f"{len(self.first)}: line n of the one must belong to line n of the "
        "other"
      )


def without_heavy(
  settings: MetricSettings, lines: Iterable[str]
) -> MetricSettings:
  """Returns settings without TER, and warns, if it would need gigabytes.

  Its memory grows with the square of the longest line.

  Args:
    settings: the user's settings.
    lines: all translations and references.

  Raises:
    InputError: if nothing else was asked for.
  """
  if TER_NAME not in settings.metrics:
    return settings
  longest = max((len(line.split()) for line in lines), default=0)
  if longest <= _LONGEST_FOR_TER:
    return settings
  others = [name for name in settings.metrics if name != TER_NAME]
  reason = (
    f"TER is left out: a line has {longest} words, and of more than "
    f"{_LONGEST_FOR_TER} it takes gigabytes. It is meant for sentences: is "
    "this a document on one line?"
  )
  if not others:
    raise InputError(reason)
  logging.warning("%s", reason)
  return dataclasses.replace(settings, metrics=others)


def create_metrics(
  settings: MetricSettings, references: References
) -> dict[str, Any]:
  """Returns sacreBLEU's metrics, which know the references, by our names."""
  makers = {
    "bleu": lambda streams: BLEU(
      tokenize=settings.tokenize, references=streams
    ),
    "chrf": lambda streams: CHRF(references=streams),
    "ter": lambda streams: TER(references=streams),
  }
  streams = references.for_sacrebleu()
  return {name: makers[name](streams) for name in settings.metrics}


def corpus_scores(
  metrics: dict[str, Any], translations: Sequence[str], resamples: int
) -> list[MetricScore]:
  """Scores one translation.

  Args:
    metrics: metrics, from `create_metrics`.
    translations: as many lines as there are references.
    resamples: bootstrap resamples of which intervals are taken; 0 takes none.
  """
  lines = list(translations)
  if not resamples:
    found = [metric.corpus_score(lines, None) for metric in metrics.values()]
    return [
      MetricScore(f.name, float(f.score), str(metric.get_signature()))
      for f, metric in zip(found, metrics.values(), strict=True)
    ]
  # The interval of a metric fails if a resample scores 0; a test's interval
  # does not, and a test accepts a single system, too.
  python_logging.getLogger("sacrebleu").setLevel(python_logging.WARNING)
  signatures: Any
  results: Any
  signatures, results = PairedTest(
    [("", lines)], metrics, None, test_type="bs", n_samples=resamples
  )()
  return [
    MetricScore(
      name,
      float(results[name][0].score),
      str(signature),
      Interval(float(results[name][0].mean), float(results[name][0].ci)),
    )
    for name, signature in signatures.items()
  ]


def sentence_scores(
  settings: MetricSettings,
  references: References,
  translations: Sequence[str],
) -> dict[str, list[float]]:
  """Scores each line by itself.

  BLEU has as many orders as a line has: the four of a corpus would make 0 of a
  perfect line of two words.

  Returns:
    For each metric's name, a score for each line.
  """
  makers = {
    "bleu": BLEU(tokenize=settings.tokenize, effective_order=True),
    "chrf": CHRF(),
    "ter": TER(),
  }
  found: dict[str, list[float]] = {}
  for name in settings.metrics:
    scores = [
      makers[name].sentence_score(line, references.of_line(number))
      for number, line in enumerate(translations)
    ]
    found[scores[0].name] = [float(s.score) for s in scores]
  return found
