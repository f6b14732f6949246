"""Findings about parallel text before it is prepared.

Several processes check blocks of text; their results are added up.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from data_prep.encoding import filters
from data_prep.encoding.filters import FilterSettings, TextFilter
from data_prep.encoding.pair_encoder import fingerprint
from data_prep.reading.text_blocks import Block, split_columns
from official_transformer.text.scripts import main_script, script_shares
from official_transformer.text.text_form import NORMALIZATIONS, TextForm

# Characters that editors show as the end of a line, and files have inside one.
SEPARATORS = {
  "\0": "NULs",
  "\r": "carriage returns inside lines",
  "\t": "tabs",
  "\v": "vertical tabs",
  "\f": "form feeds",
  "\x1c": "file separators",
  "\x1d": "group separators",
  "\x1e": "record separators",
  "\x85": "U+0085 NEXT LINE",
  "\u2028": "U+2028 LINE SEPARATOR",
  "\u2029": "U+2029 PARAGRAPH SEPARATOR",
  "\u2581": "U+2581, which SentencePiece takes for a blank",
  "\ufeff": "byte order marks inside the text",
  "\ufffd": "U+FFFD, what an earlier conversion could not read",
}
_SHOWN = 5
FORMS = [TextForm(name) for name in NORMALIZATIONS if name != "none"]


class Place(NamedTuple):
  """A file and a line of it.

  Attributes:
    path: path of the file.
    line: line, from 1.
  """

  path: str
  line: int

  def __str__(self) -> str:
    return f"{self.path}, line {self.line}"


@dataclasses.dataclass
class SideFindings:
  """Findings about one side.

  Attributes:
    lines: how many.
    words: lines by their number of words.
    characters: lines by their number of characters.
    letters: how often each character occurs.
    carriage_returns: lines that end with one before the line feed.
    separators: lines by the characters of `SEPARATORS` that are in them.
    not_utf8: lines that are not UTF-8.
    first_not_utf8: where the first of these are.
    changed: lines that each of Unicode's normal forms would change.
  """

  lines: int = 0
  words: collections.Counter[int] = dataclasses.field(
    default_factory=collections.Counter
  )
  characters: collections.Counter[int] = dataclasses.field(
    default_factory=collections.Counter
  )
  letters: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  carriage_returns: int = 0
  separators: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  not_utf8: int = 0
  first_not_utf8: list[Place] = dataclasses.field(default_factory=list)
  changed: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )

  def add(self, other: SideFindings) -> None:
    """Adds the findings about the following lines."""
    self.lines += other.lines
    self.words += other.words
    self.characters += other.characters
    self.letters += other.letters
    self.carriage_returns += other.carriage_returns
    self.separators += other.separators
    self.not_utf8 += other.not_utf8
    self.changed += other.changed
    self.first_not_utf8 = [*self.first_not_utf8, *other.first_not_utf8][:_SHOWN]

  def look_at(
    self, lines: Iterable[bytes], path: str, first: int
  ) -> list[str | None]:
    """Checks lines; returns them as text, None where they are not UTF-8."""
    texts: list[str | None] = []
    for number, raw in enumerate(lines, start=first):
      self.lines += 1
      content = raw.removesuffix(b"\n")
      if content.endswith(b"\r"):
        self.carriage_returns += 1
        content = content[:-1]
      try:
        text = content.decode("utf-8")
      except UnicodeDecodeError:
        self.not_utf8 += 1
        if len(self.first_not_utf8) < _SHOWN:
          self.first_not_utf8.append(Place(path, number))
        texts.append(None)
        continue
      for character in SEPARATORS.keys() & set(text):
        self.separators[character] += 1
      text = text.strip()
      for form in FORMS:
        if form.apply(text) != text:
          self.changed[form.normalize] += 1
      self.words[len(text.split())] += 1
      self.characters[len(text)] += 1
      self.letters.update(text)
      texts.append(text)
    return texts

  def scripts(self) -> list[tuple[str, float]]:
    """Returns the scripts of the letters with their shares, most first."""
    return script_shares(self.letters)

  def main_script(self) -> str | None:
    """Returns the script of the text, to filter by; None if there is none."""
    return main_script(self.letters)


@dataclasses.dataclass
class TextFindings:
  """Findings about a corpus.

  Attributes:
    source: on one side.
    target: on the other.
    dropped: pairs that each filter alone would leave out, by its reason.
    pairs: fingerprints of pairs with text on both sides, uint64, in parts.
    sources: source lines of their sources.
    held_out: lines of other text that were met.
  """

  source: SideFindings = dataclasses.field(default_factory=SideFindings)
  target: SideFindings = dataclasses.field(default_factory=SideFindings)
  dropped: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  pairs: list[np.ndarray] = dataclasses.field(default_factory=list)
  sources: list[np.ndarray] = dataclasses.field(default_factory=list)
  held_out: set[str] = dataclasses.field(default_factory=set)

  def add(self, other: TextFindings) -> None:
    """Adds the findings about the following pairs."""
    self.source.add(other.source)
    self.target.add(other.target)
    self.dropped += other.dropped
    self.pairs += other.pairs
    self.sources += other.sources
    self.held_out |= other.held_out

  @property
  def usable(self) -> int:
    """Pairs with text on both sides."""
    return sum(map(len, self.pairs))

  def duplicates(self) -> tuple[int, int]:
    """Returns pairs, and sources, that have come before."""
    found = []
    for parts in (self.pairs, self.sources):
      everything = np.concatenate([np.zeros(0, np.uint64), *parts])
      found.append(len(everything) - len(np.unique(everything)))
    return found[0], found[1]


class TextCheck:
  """Looks at blocks of text; each process has one."""

  def __init__(
    self,
    scripts: tuple[str | None, str | None],
    form: TextForm,
    held_out: frozenset[str] = frozenset(),
  ) -> None:
    """Initializes the check.

    Args:
      scripts: the script of each side, if it has one; see `FilterSettings`.
      form: form into which lines are brought before the filters see them.
      held_out: lines of other text, in that form.
    """
    self._held_out = held_out
    self._form = form
    # One after another, each on all pairs: together, the first would hide the
    # others.
    self._filters = [
      TextFilter(one)
      for one in (
        FilterSettings(control_characters=True),
        FilterSettings(identical=True),
        FilterSettings(source_script=scripts[0]),
        FilterSettings(target_script=scripts[1]),
      )
    ]

  def check(self, block: Block) -> TextFindings:
    """Returns the findings about a block."""
    found = TextFindings()
    left_out = set(block.too_long)
    if block.targets is None:
      lacking = {
        row
        for row, side in enumerate(split_columns(block.sources))
        if side is None and block.sources[row].strip()
      }
      if lacking:
        found.dropped[filters.NOT_TWO_COLUMNS] = len(lacking)
        left_out |= lacking
    source_lines, target_lines = block.sides()
    first = block.first_line
    sources = found.source.look_at(source_lines, block.source_name, first)
    targets = found.target.look_at(target_lines, block.target_name, first)
    if block.too_long:
      found.dropped[filters.LONG_LINE] = len(block.too_long)
    pairs, alone = [], []
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
      if row in left_out or source is None or target is None:
        continue
      source, target = (
        self._form.apply(side).strip() for side in (source, target)
      )
      if not source or not target:
        reason = filters.EMPTY_TARGET if source else filters.EMPTY_SOURCE
        found.dropped[reason] += 1
        continue
      for one in self._filters:
        if (why := one.reason(source, target)) is not None:
          found.dropped[why] += 1
      if self._held_out and (
        met := {side for side in (source, target) if side in self._held_out}
      ):
        found.dropped[filters.HELD_OUT] += 1
        found.held_out |= met
      pairs.append(fingerprint(source, target))
      alone.append(fingerprint(source, ""))
    found.pairs.append(np.array(pairs, np.uint64))
    found.sources.append(np.array(alone, np.uint64))
    return found
