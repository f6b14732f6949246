"""What is searched for, besides what the model finds most probable."""

from __future__ import annotations

import dataclasses

from official_transformer.errors import InputError
from official_transformer.search.rules import (
  SamplingRule,
  SearchControls,
)


@dataclasses.dataclass(frozen=True)
class Sampling:
  """How translations are drawn.

  Attributes:
    rule: from what of the model's distribution.
    seed: with the source, it decides the draws: equal lines get equal ones.
  """

  rule: SamplingRule = dataclasses.field(default_factory=SamplingRule)
  seed: int = 0


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """How a search is guided; the defaults leave it as it is.

  Attributes:
    no_repeat_ngram_size: as in `SearchControls`, like the next two.
    repetition_penalty: likewise.
    min_length: likewise.
    coverage_penalty: as in `SearchRequest`.
    forbidden: phrases that no translation has.
    sampling: how translations are drawn, instead of searched for.
    mbr: whether the hypothesis is chosen that is most like all the others
      (minimum Bayes risk), by chrF.
    by_line: whether lines come with constraints of their own.
  """

  no_repeat_ngram_size: int = 0
  repetition_penalty: float = 1.0
  min_length: int = 0
  coverage_penalty: float = 0.0
  forbidden: tuple[str, ...] = ()
  sampling: Sampling | None = None
  mbr: bool = False
  by_line: bool = False

  def __post_init__(self) -> None:
    for name, value, holds, demand in (
      ("no_repeat_ngram_size", self.no_repeat_ngram_size, lambda v: v >= 0,
       "not be below 0"),
      ("repetition_penalty", self.repetition_penalty, lambda v: v > 0,
       "be above 0"),
      ("min_length", self.min_length, lambda v: v >= 0, "not be below 0"),
      ("coverage_penalty", self.coverage_penalty, lambda v: v >= 0,
       "not be below 0"),
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
      if not rule.temperature > 0:
        raise InputError(f"temperature is {rule.temperature}, must be above 0")
      if rule.top_k < 0:
        raise InputError(f"top_k is {rule.top_k}, must not be below 0")
      if not 0 < rule.top_p <= 1:
        raise InputError(f"top_p is {rule.top_p}, must be in (0, 1]")

  @property
  def controls(self) -> SearchControls:
    """What holds for all sentences, of what changes candidates."""
    return SearchControls(
      self.no_repeat_ngram_size, self.repetition_penalty, self.min_length
    )

  @property
  def changes_search(self) -> bool:
    """Whether the search is another than the model's own."""
    return self != SearchOptions(mbr=self.mbr)
