"""Flags of scoring, for all commands that score translations.

sacreBLEU takes a moment to import: nothing else waits for it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from official_transformer.commands.flag_records import Options, flag
from official_transformer.errors import InputError

if TYPE_CHECKING:
  from official_transformer.evaluation.comet import Comet
  from official_transformer.evaluation.system_comparison import (
    ComparisonSettings,
  )

NO_TEST = "none"
TOKENIZE_HELP = (
  "sacreBLEU's tokenizer for BLEU: 13a, intl, zh, "
  "ja-mecab, ko-mecab, char, none, or spm, flores101 and flores200, which are "
  "downloaded. auto: zh for Chinese references; ja-mecab and ko-mecab for "
  "Japanese and Korean ones, or char where these are not installed and for "
  "other scripts without blanks; else 13a."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoringOptions(Options):
  """Flags of intervals, significance tests and COMET."""

  heading = "Scores, and how sure they are"

  resamples: int = flag(
    1000,
    "Bootstrap resamples for 95% intervals; 0 computes no intervals.",
    lower_bound=0,
  )
  paired_test: tuple[str, ...] = flag(
    ("ar",),
    "Paired significance tests of two translations: ar, approximate "
    "randomisation; bs, bootstrap resampling, which calls equal systems "
    "different in 14% of the cases; both as ar,bs; or none.",
  )
  test_trials: int = flag(
    0,
    "Trials of --paired_test. 0: sacreBLEU's own, 10,000 of ar, 1,000 of bs.",
    lower_bound=0,
  )
  comet_model: str | None = flag(
    None,
    "A COMET model's checkpoint, .ckpt, to score with too. Nothing is "
    "downloaded.",
    path=True,
  )
  comet_command: str = flag(
    "comet-score",
    "COMET's program, which may be in an environment of its own.",
    (lambda v: not v.comet_model, "there is no --comet_model"),
    path=True,
  )
  comet_gpus: int = flag(
    0,
    "GPUs that COMET may use.",
    (lambda v: not v.comet_model, "there is no --comet_model"),
    lower_bound=0,
  )

  @property
  def tests(self) -> tuple[str, ...]:
    """The tests of significance to make."""
    from official_transformer.evaluation.significance import TESTS

    asked = [test for test in self.paired_test if test]
    if asked == [NO_TEST]:
      return ()
    if not asked or not set(asked) <= set(TESTS):
      raise InputError(
        f"--paired_test={','.join(asked)}: give {' or '.join(TESTS)}, both "
        f"between a comma, or {NO_TEST}"
      )
    return tuple(dict.fromkeys(asked))

  @property
  def comet(self) -> Comet | None:
    """COMET, or None if it is not asked for.

    Raises:
      InputError: if its program or its model is missing.
    """
    from official_transformer.evaluation.comet import Comet

    if not self.comet_model:
      return None
    comet = Comet(self.comet_model, self.comet_command, self.comet_gpus)
    comet.check()
    return comet


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetricsOptions(ScoringOptions):
  """Flags of scoring, and the flag of the metrics."""

  metrics: tuple[str, ...] = flag(
    ("bleu", "chrf", "ter"), "Which of sacreBLEU's metrics to measure."
  )


def are_json(lines: Sequence[str]) -> bool:
  """Returns whether lines are JSON objects, which are no translations."""
  if not lines or not lines[0].startswith("{"):
    return False
  try:
    return all(isinstance(json.loads(line), dict) for line in lines[:10])
  except (ValueError, RecursionError):
    return False


def check_tokenizer(name: str, asked: str) -> str:
  """Returns a tokenizer of BLEU, if there is one of that name.

  Args:
    name: name of the flag.
    asked: value of the flag.

  Raises:
    InputError: if sacreBLEU has none of that name, or it cannot be used here.
  """
  from official_transformer.evaluation.bleu_tokenizer import (
    AUTO,
    TOKENIZERS,
    problem_of,
  )

  if asked not in TOKENIZERS:
    raise InputError(
      f"--{name}={asked}: there is none of that name; there are: "
      + ", ".join(TOKENIZERS)
    )
  if asked != AUTO and (problem := problem_of(asked)):
    raise InputError(f"--{name}={asked} cannot be used: {problem}")
  return asked


def comparison_settings(
  options: ScoringOptions, tokenizer: str, sentences: bool = False
) -> ComparisonSettings:
  """Returns how translations are scored and compared.

  Args:
    options: the command line as a record.
    tokenizer: tokenizer of BLEU, which has been checked.
    sentences: whether each line is scored by itself, too.

  Raises:
    InputError: if an option has an impossible value, such as an unknown test,
      or COMET's model or program is missing.
  """
  from official_transformer.evaluation.metrics import METRICS, MetricSettings
  from official_transformer.evaluation.system_comparison import (
    ComparisonSettings,
  )

  chosen = options.metrics if isinstance(options, MetricsOptions) else METRICS
  return ComparisonSettings(
    MetricSettings(chosen, resamples=options.resamples),
    tokenizer,
    options.tests,
    options.test_trials,
    sentences,
    options.comet,
  )
