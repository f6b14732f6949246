"""The flags of what scores translations."""

from __future__ import annotations

from absl import flags

from official_transformer.flag_groups.core import Effect, define

NO_TEST = "none"
_TOKENIZERS = (
  "What BLEU's tokens are cut by, by sacreBLEU's name: 13a, intl, zh, "
  "ja-mecab, ko-mecab, char, none, or spm, flores101 and flores200, which are "
  "downloaded. auto: zh for Chinese references, ja-mecab and ko-mecab for "
  "Japanese and Korean ones, else 13a."
)


def define_tokenize_flag(name: str, effect: Effect) -> None:
  """Defines what BLEU's tokens are cut by."""
  define(flags.DEFINE_string, name, "auto", _TOKENIZERS, effect)


def define_metrics_flag(effect: Effect) -> None:
  """Defines which metrics are measured."""
  define(
    flags.DEFINE_list,
    "metrics",
    "bleu,chrf,ter",
    "Which of sacreBLEU's metrics to measure.",
    effect,
  )


def define_certainty_flags(effect: Effect) -> None:
  """Defines how sure of scores one wants to be."""
  define(
    flags.DEFINE_integer,
    "resamples",
    1000,
    "Bootstrap resamples of which 95% intervals are taken; 0 takes none.",
    effect,
    lower_bound=0,
  )
  define(
    flags.DEFINE_list,
    "paired_test",
    "ar",
    "What tells a better translation from a luckier one: ar, paired "
    "approximate randomisation, or bs, paired bootstrap resampling, which "
    "calls equal ones different in 13% of the cases; both as ar,bs; or none.",
    effect,
  )
  define(
    flags.DEFINE_integer,
    "test_trials",
    0,
    "Trials of --paired_test. 0: sacreBLEU's own, 10,000 of ar, 1,000 of bs.",
    effect,
    lower_bound=0,
  )


def define_comet_flags(effect: Effect) -> None:
  """Defines where COMET is, for those who have it."""
  define(
    flags.DEFINE_string,
    "comet_model",
    None,
    "A COMET model's checkpoint, .ckpt, to score with too. Nothing is "
    "downloaded.",
    effect,
  )
  define(
    flags.DEFINE_string,
    "comet_command",
    "comet-score",
    "The program that runs it, which may be in an environment of its own.",
    effect.idle_if(lambda v: not v.comet_model, "there is no --comet_model"),
  )
  define(
    flags.DEFINE_integer,
    "comet_gpus",
    0,
    "GPUs that it may use.",
    effect.idle_if(lambda v: not v.comet_model, "there is no --comet_model"),
    lower_bound=0,
  )
