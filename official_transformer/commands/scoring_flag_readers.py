"""What the flags of scoring say, as the records that evaluation takes.

sacreBLEU takes a moment to import: nothing else waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from absl import flags

from official_transformer.commands.scoring_flags import NO_TEST
from official_transformer.errors import InputError

if TYPE_CHECKING:
  from official_transformer.evaluation.comet import Comet
  from official_transformer.evaluation.contest import ContestSettings

FLAGS = flags.FLAGS


def check_tokenizer(name: str) -> str:
  """Returns what `--tokenize` or `--bleu_tokenize` says.

  Raises:
    InputError: if sacreBLEU has none of that name, or it cannot be used here.
  """
  from official_transformer.evaluation.bleu_tokenizer import (
    AUTO,
    TOKENIZERS,
    problem_of,
  )

  asked = FLAGS[name].value
  if asked not in TOKENIZERS:
    raise InputError(
      f"--{name}={asked}: there is none of that name; there are: "
      + ", ".join(TOKENIZERS)
    )
  if asked != AUTO and (problem := problem_of(asked)):
    raise InputError(f"--{name}={asked} cannot be used: {problem}")
  return asked


def read_contest_settings(
  tokenize_flag: str, sentences: bool = False
) -> ContestSettings:
  """Reads how translations are scored and compared.

  Args:
    tokenize_flag: the name of the flag that says what BLEU's tokens are cut by.
    sentences: whether each line is scored by itself, too.

  Raises:
    InputError: if a flag names what there is not.
  """
  from official_transformer.evaluation.contest import ContestSettings
  from official_transformer.evaluation.metrics import METRICS, MetricSettings

  return ContestSettings(
    MetricSettings(
      tuple(FLAGS.metrics) if "metrics" in FLAGS else METRICS,
      resamples=FLAGS.resamples,
    ),
    check_tokenizer(tokenize_flag),
    _read_tests(),
    FLAGS.test_trials,
    sentences,
    _read_comet(),
  )


def _read_tests() -> tuple[str, ...]:
  from official_transformer.evaluation.significance import TESTS

  asked = [test for test in FLAGS.paired_test if test]
  if asked == [NO_TEST]:
    return ()
  if not asked or not set(asked) <= set(TESTS):
    raise InputError(
      f"--paired_test={','.join(asked)}: give {' or '.join(TESTS)}, both "
      f"between a comma, or {NO_TEST}"
    )
  return tuple(dict.fromkeys(asked))


def _read_comet() -> Comet | None:
  from official_transformer.evaluation.comet import Comet

  if not FLAGS.comet_model:
    return None
  comet = Comet(FLAGS.comet_model, FLAGS.comet_command, FLAGS.comet_gpus)
  comet.check()
  return comet
