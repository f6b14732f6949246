"""Filters of training pairs, with the reasons they report.

All filters are off by default, except for pairs that training cannot use: each
side of a pair needs text from which the tokenizer makes at least one token.

Usual bounds: Moses' clean-corpus-n, 80 to 250 words and a ratio of 9 or 1.5;
OpusFilter, 100 words and a ratio of 3. Here lengths and ratios are in tokens,
which exist in every language.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

from official_transformer.errors import InputError
from official_transformer.text.scripts import SCRIPTS, Script
from official_transformer.text.text_files import read_lines
from official_transformer.text.text_form import TextForm

# The reasons, as data.json has them.
NOT_UTF8 = "not UTF-8"
NOT_TWO_COLUMNS = "not two columns"
LONG_LINE = "line of over 64 KiB"
CONTROL = "control characters"
IDENTICAL = "identical sides"
HELD_OUT = "in held-out text"
TOO_LONG = "too many tokens"
RATIO = "length ratio"
DUPLICATE = "duplicate"


EMPTY_SOURCE, EMPTY_TARGET = "empty source", "empty target"
SOURCE_WITHOUT_TOKENS = "source without tokens"
TARGET_WITHOUT_TOKENS = "target without tokens"
SOURCE_SCRIPT, TARGET_SCRIPT = "source script", "target script"


@dataclasses.dataclass(frozen=True)
class FilterSettings:
  """Rules for pairs to leave out, besides those with an empty side.

  Attributes:
    invalid_utf8: `error`, or `drop` pairs with bytes that are not UTF-8.
    control_characters: whether to drop pairs that hold any, tabs excepted.
    identical: whether to drop pairs whose sides are the same.
    duplicates: whether to keep only the first of equal pairs.
    held_out: text files; pairs one side of which is a line of them are dropped.
    max_tokens: tokens of each side, EOS included; 0 is no limit.
    max_ratio: ratio of the longer side's tokens to the shorter's; 0 is no
      limit.
    source_script: script that most letters of the source must have; None is
      any.
    target_script: script that most letters of the target must have; None is
      any.
    script_share: how many of the letters that is.

  Raises:
    InputError: if a script is unknown, or `max_ratio` is between 0 and 1.
  """

  invalid_utf8: str = "error"
  control_characters: bool = False
  identical: bool = False
  duplicates: bool = False
  held_out: Sequence[str] = ()
  max_tokens: int = 0
  max_ratio: float = 0.0
  source_script: str | None = None
  target_script: str | None = None
  script_share: float = 0.5

  def to_json(self) -> dict[str, Any]:
    """Returns the entries of data.json: the filters that are on."""
    return {
      field.name: getattr(self, field.name)
      for field in dataclasses.fields(self)
      if getattr(self, field.name) != field.default
    }

  def __post_init__(self) -> None:
    for side in ("source", "target"):
      script = getattr(self, f"{side}_script")
      if script is not None and script not in SCRIPTS:
        raise InputError(
          f"--{side}_script={script} is unknown; it is one of "
          f"{', '.join(SCRIPTS)}"
        )
    if 0 < self.max_ratio < 1:
      raise InputError(
        f"--max_length_ratio={self.max_ratio} would leave out every pair: it "
        "is the longer side's length by the shorter's, at least 1"
      )


class TextFilter:
  """Judges pairs of lines before they are tokenized.

  Attributes:
    settings: rules for pairs to leave out.
  """

  def __init__(
    self, settings: FilterSettings, held_out: frozenset[str] = frozenset()
  ) -> None:
    """Prepares the filters.

    Args:
      settings: rules for pairs to leave out.
      held_out: the lines of `settings.held_out`, from `read_held_out`.
    """
    self.settings = settings
    self._held_out = held_out
    self._scripts = [
      (reason, Script(name))
      for reason, name in (
        (SOURCE_SCRIPT, settings.source_script),
        (TARGET_SCRIPT, settings.target_script),
      )
      if name is not None
    ]

  @property
  def takes_all(self) -> bool:
    """Whether every pair with text on both sides passes."""
    settings = self.settings
    return not (
      settings.control_characters
      or settings.identical
      or self._held_out
      or self._scripts
    )

  def reason(self, source: str, target: str) -> str | None:
    """Returns why a pair is left out; None if it is not.

    Args:
      source: without blanks at its ends, in the data's form.
      target: without blanks at its ends, in the data's form.
    """
    if not source:
      return EMPTY_SOURCE
    if not target:
      return EMPTY_TARGET
    settings = self.settings
    if settings.control_characters and (
      _CONTROL.search(source) or _CONTROL.search(target)
    ):
      return CONTROL
    if settings.identical and source == target:
      return IDENTICAL
    if self._held_out and (
      source in self._held_out or target in self._held_out
    ):
      return HELD_OUT
    for reason, script in self._scripts:
      text = source if reason == SOURCE_SCRIPT else target
      if script.share(text) < settings.script_share:
        return reason
    return None


def token_reason(
  settings: FilterSettings, source_tokens: int, target_tokens: int
) -> str | None:
  """Returns why a pair is left out for its tokens; None if it is not.

  Args:
    settings: rules for pairs to leave out.
    source_tokens: number of source tokens, EOS included.
    target_tokens: number of target tokens, EOS included.
  """
  if source_tokens < 2:
    # Of characters without width, for instance, the tokenizer keeps none.
    return SOURCE_WITHOUT_TOKENS
  if target_tokens < 2:
    return TARGET_WITHOUT_TOKENS
  longer = max(source_tokens, target_tokens)
  if settings.max_tokens and longer > settings.max_tokens:
    return TOO_LONG
  if settings.max_ratio:
    shorter = min(source_tokens, target_tokens)
    if longer - 1 > settings.max_ratio * (shorter - 1):
      return RATIO
  return None


def read_held_out(paths: Iterable[str], form: TextForm) -> frozenset[str]:
  """Returns all lines of some files, as pairs are compared with them."""
  lines = (
    form.apply(line).strip()
    for path in paths
    for line in read_lines(path, replace_invalid=True)
  )
  return frozenset(line for line in lines if line)


# C0 and C1 except the tab, and marks that change the direction of text.
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
