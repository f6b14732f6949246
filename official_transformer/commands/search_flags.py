"""The flags of what is searched for, besides what the model finds best."""

from __future__ import annotations

from absl import flags

from official_transformer.flag_groups.core import (
  define,
  read_by,
  start_section,
)

_PREDICTING = read_by("predict")
_SAMPLING = _PREDICTING.idle_if(
  lambda v: not v.sample, "nothing is drawn without --sample"
)


def define_leading_flags() -> None:
  """Defines samples, phrases, prefixes, penalties, and how one is chosen."""
  start_section("Decoding: samples, phrases, penalties")
  _define_sampling_flags()
  _define_phrase_flags()
  _define_penalty_flags()


def _define_sampling_flags() -> None:
  define(
    flags.DEFINE_bool,
    "sample",
    False,
    "Draw translations from the model's distribution instead of searching for "
    "the best: --n_best of them, or --beam_size to choose from by --mbr.",
    _PREDICTING,
  )
  define(
    flags.DEFINE_float,
    "temperature",
    1.0,
    "Divides log-probabilities before a token is drawn: below 1, probable ones "
    "become more so.",
    _SAMPLING,
  )
  define(
    flags.DEFINE_integer,
    "top_k",
    0,
    "Draw from so many tokens, the most probable; 0 is all.",
    _SAMPLING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_float,
    "top_p",
    1.0,
    "Then from the fewest that sum up to this probability.",
    _SAMPLING,
  )
  define(
    flags.DEFINE_integer,
    "sample_seed",
    0,
    "With a line's text and the number of samples it decides what is drawn: "
    "the same in any batch, and for equal lines.",
    _SAMPLING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_bool,
    "mbr",
    False,
    "Of all hypotheses, or samples, choose the one that is most like the "
    "others by chrF (minimum Bayes risk).",
    _PREDICTING,
  )


def _define_phrase_flags() -> None:
  define(
    flags.DEFINE_string,
    "prefix_file",
    None,
    "What each line's translation begins with: a line for each line.",
    _PREDICTING,
    path=True,
  )
  define(
    flags.DEFINE_string,
    "required_phrases",
    None,
    "What each line's translation holds: a file with a line for each line, "
    "phrases between tabs. One that is missing is told, as unmet.",
    _PREDICTING,
    path=True,
  )
  define(
    flags.DEFINE_string,
    "forbidden_phrases",
    None,
    "A file of phrases, one a line, that no translation holds as whole words.",
    _PREDICTING,
    path=True,
  )


def _define_penalty_flags() -> None:
  define(
    flags.DEFINE_integer,
    "no_repeat_ngram_size",
    0,
    "No translation holds so many tokens in a row twice; 0 allows it.",
    _PREDICTING,
    lower_bound=0,
  )
  define(
    flags.DEFINE_float,
    "repetition_penalty",
    1.0,
    "Makes tokens that a translation holds already less probable: positive "
    "logits are divided by it, negative ones multiplied.",
    _PREDICTING,
  )
  define(
    flags.DEFINE_float,
    "coverage_penalty",
    0.0,
    "How much a translation loses for each part of the source that it has not "
    "attended to (Wu et al. 2016); .2 was theirs.",
    _PREDICTING,
    lower_bound=0.0,
  )
  define(
    flags.DEFINE_integer,
    "min_length",
    0,
    "Tokens that a translation has at least.",
    _PREDICTING,
    lower_bound=0,
  )
