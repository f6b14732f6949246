"""Options that guide a search, and options of sampling.

Without TensorFlow, which takes seconds to import: a mistyped flag is answered
before.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from official_transformer.errors import InputError

# Of strengths: beyond them float32 has no room for products and quotients.
_LARGEST = 1e6
_SMALLEST = 1e-6
_MOST_TOKENS = 2**31 - 1  # As int32 has room for.
# Of a translation, in tokens: far more than memory has room for.
_LONGEST = 2**20


@dataclasses.dataclass(frozen=True)
class SamplingRule:
  """Settings of sampling.

  The order is the one of Hugging Face and CTranslate2: first the temperature,
  then the k most probable tokens, then the fewest of these whose probabilities
  add up to p.

  Attributes:
    temperature: divides log-probabilities; above 0.
    top_k: tokens to draw from; 0 is all.
    top_p: total probability of the kept tokens, once it is reached; the token
      that crosses it stays (nucleus sampling, Holtzman et al. 2020).
  """

  temperature: float = 1.0
  top_k: int = 0
  top_p: float = 1.0


@dataclasses.dataclass(frozen=True)
class Sampling:
  """The rule, the seed and the number of samples.

  Attributes:
    rule: settings of the draw: temperature, `top_k` and `top_p`.
    seed: with the source, it decides the draws: equal lines get equal ones.
    number: number of translations of each line; None is the beam's size.
  """

  rule: SamplingRule = dataclasses.field(default_factory=SamplingRule)
  seed: int = 0
  number: int | None = None


class SearchFeatures(NamedTuple):
  """The parts that the graph of a guided search contains.

  Options that differ in numbers alone share a graph.

  Attributes:
    samples: how many are drawn of each line; 0 searches.
    draws_from_some: whether `top_k` or `top_p` leaves tokens out.
    bans_repetition: whether no n-gram may come twice.
    penalizes_repetition: whether tokens that there are become less probable.
    covers: whether attention to the source counts.
  """

  samples: int = 0
  draws_from_some: bool = False
  bans_repetition: bool = False
  penalizes_repetition: bool = False
  covers: bool = False


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """Options that guide a search; the defaults change nothing.

  Attributes:
    no_repeat_ngram_size: no hypothesis has an n-gram of so many tokens twice; 0
      allows it.
    repetition_penalty: logits of tokens that a hypothesis holds are divided by
      it if they are above 0, and multiplied if below (Keskar et al. 2019).
    min_length: tokens before a hypothesis may end.
    coverage_penalty: how much a hypothesis that ends loses for each part of the
      source that it has not attended to: `b * sum log(min(attention, 1))` over
      the source's tokens (Wu et al. 2016, equation 14), of the last layer's
      heads in the mean; a token that nothing attends to is not counted.
    forbidden: phrases that no translation has.
    sampling: how translations are drawn, instead of searched for.
    mbr: whether the hypothesis is chosen that is most like all the others
      (minimum Bayes risk), by chrF.
  """

  no_repeat_ngram_size: int = 0
  repetition_penalty: float = 1.0
  min_length: int = 0
  coverage_penalty: float = 0.0
  forbidden: tuple[str, ...] = ()
  sampling: Sampling | None = None
  mbr: bool = False

  def __post_init__(self) -> None:
    for name, value, holds, demand in (
      ("no_repeat_ngram_size", self.no_repeat_ngram_size,
       lambda v: 0 <= v <= _LONGEST, f"be in [0, {_LONGEST}]"),
      ("repetition_penalty", self.repetition_penalty,
       lambda v: _SMALLEST <= v <= _LARGEST,
       f"be in [{_SMALLEST:g}, {_LARGEST:g}]"),
      ("min_length", self.min_length, lambda v: 0 <= v <= _LONGEST,
       f"be in [0, {_LONGEST}]"),
      ("coverage_penalty", self.coverage_penalty,
       lambda v: 0 <= v <= _LARGEST, f"be in [0, {_LARGEST:g}]"),
    ):  # fmt: skip
      if not holds(value):
        raise InputError(f"{name} is {value}, must {demand}")
    if self.sampling and self.coverage_penalty:
      raise InputError(
        "coverage_penalty ranks the hypotheses of a search, and samples have "
        "no rank"
      )
    if self.sampling:
      rule = self.sampling.rule
      if not _SMALLEST <= rule.temperature <= _LARGEST:
        raise InputError(
          f"temperature is {rule.temperature}, must be in [{_SMALLEST:g}, "
          f"{_LARGEST:g}]"
        )
      if not 0 <= rule.top_k <= _MOST_TOKENS:
        raise InputError(
          f"top_k is {rule.top_k}, must be in [0, {_MOST_TOKENS}]"
        )
      if not 0 < rule.top_p <= 1:
        raise InputError(f"top_p is {rule.top_p}, must be in (0, 1]")
      number = self.sampling.number
      if number is not None and number < 1:
        raise InputError(f"number is {number}, must be at least 1")

  @property
  def changes_search(self) -> bool:
    """Whether the search is another than the model's own."""
    return self != dataclasses.replace(DEFAULT_SEARCH, mbr=self.mbr)

  def hypotheses(self, beam_size: int) -> int:
    """Returns how many hypotheses of a line there are at most."""
    return (self.sampling and self.sampling.number) or beam_size

  def features(self, beam_size: int) -> SearchFeatures:
    """Returns the parts that the graph of the search contains."""
    sampling = self.sampling
    return SearchFeatures(
      self.hypotheses(beam_size) if sampling else 0,
      bool(sampling and (sampling.rule.top_k or sampling.rule.top_p < 1)),
      self.no_repeat_ngram_size > 0,
      self.repetition_penalty != 1,
      self.coverage_penalty > 0,
    )


DEFAULT_SEARCH = SearchOptions()
