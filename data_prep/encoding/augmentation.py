"""Training pairs as people write them: capitals, typing errors, joined lines.

Translation models that have seen only edited text fail on text in capitals and
on typing errors (Belinkov and Bisk 2018; Khayrallah and Koehn 2018), and leave
out sentences of a line that has several sentences. Some training pairs are
therefore rewritten: the source as a user might type it, the target as it should
be answered.
"""

from __future__ import annotations

import dataclasses
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from official_transformer.errors import InputError
from official_transformer.text.sentences import (
  are_set_apart,
  ends_a_sentence,
  without_last_mark,
)
from official_transformer.text.words import is_mark, stands_alone

# The shares that `all` abbreviates. Translating cuts lines into sentences and
# treats capitals by itself: a model needs little of both.
ALL = "upper:.01,title:.03,lower:.02,typos:.2,endpunct:.03,merge:.03"

# No joined line has more characters on a side, and no more pairs.
_LONGEST = 600
_MOST_PAIRS = 4
# One typing error for so many characters, and at least one.
_TYPO_EVERY = 40
# Fixed, and not the pattern of `text.letter_case`, which knows soft hyphens:
# the same text and seed make the same data in every version.
_WORD_BEGINS = re.compile(r"(?<![\w'\u2019\u0300-\u036f])\w")
# Of letters' scripts, by the first word of the letters' names.
_FULL_STOPS = {
  **dict.fromkeys(("LATIN", "CYRILLIC", "GREEK", "HANGUL"), "."),
  **dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), "\u3002"),
}
# Where typing errors are: in words, but not at their first letters.
_INNER_LETTER = re.compile(r"(?<=[^\W\d_])[^\W\d_]")
# Of an English keyboard.
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
  key: row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
  for row in _ROWS
  for place, key in enumerate(row)
}


@dataclasses.dataclass(frozen=True)
class Augmentation:
  """Shares of training pairs to rewrite, by kind.

  Attributes:
    upper: share of pairs in capitals, on both sides.
    title: share with a capital at the beginning of each word, on both sides.
    lower: share without capitals, on both sides.
    typos: share whose source has typing errors.
    endpunct: share whose last mark is left out, on both sides; a line without a
      mark gets a full stop.
    merge: share that is joined with the pairs that follow to one line, if all
      are whole sentences.
    passes: how often the training text is taken, each time with other pairs
      rewritten in other ways.
    seed: decides all that is drawn.

  Raises:
    InputError: if a share is not from 0 to 1.
  """

  upper: float = 0.0
  title: float = 0.0
  lower: float = 0.0
  typos: float = 0.0
  endpunct: float = 0.0
  merge: float = 0.0
  passes: int = 1
  seed: int = 1

  def __post_init__(self) -> None:
    for kind in KINDS:
      share = getattr(self, kind)
      if not 0 <= share <= 1:
        raise InputError(f"--augment: {kind}:{share:g} is no share from 0 to 1")
    if self.upper + self.title + self.lower > 1:
      raise InputError(
        "--augment: upper, title and lower are shares of all pairs, and no "
        "pair has two of them: together they must be at most 1"
      )

  @classmethod
  def parse(cls, text: str, passes: int, seed: int) -> Augmentation:
    """Reads kinds and their shares, such as `upper:.05,merge:.1`.

    Args:
      text: kinds with their shares, between commas; `all`; or nothing.
      passes: how often the text is taken.
      seed: decides all draws.

    Raises:
      InputError: if a kind is unknown, or has no share.
    """
    shares: dict[str, float] = {}
    for part in (ALL if text == "all" else text).split(",") if text else ():
      kind, _, share = part.strip().partition(":")
      if kind not in KINDS:
        raise InputError(
          f"--augment: {kind!r:.50} is none of {', '.join(KINDS)}; it takes "
          f"kinds with their shares, such as {ALL}, or all, which stands for "
          "these"
        )
      if kind in shares:
        raise InputError(f"--augment: {kind} is named twice")
      try:
        shares[kind] = float(share)
      except ValueError:
        raise InputError(
          f"--augment: {part.strip()!r:.50} has no share from 0 to 1, as "
          f"{kind}:.05 has"
        ) from None
    return cls(**shares, passes=passes, seed=seed)

  @property
  def is_plain(self) -> bool:
    """Whether no text is changed."""
    return not any(getattr(self, kind) for kind in KINDS)

  def to_json(self) -> dict[str, Any]:
    """Returns the entries of data.json; none if one pass takes plain text."""
    if self.is_plain and self.passes == 1:
      return {}
    return dataclasses.asdict(self)


KINDS = tuple(
  field.name
  for field in dataclasses.fields(Augmentation)
  if field.name not in ("passes", "seed")
)


class Rewritten(NamedTuple):
  """The replacement of one pair, or of several neighbouring pairs.

  Attributes:
    first: the first pair's place in the sequence that it was drawn from.
    pairs: number of pairs that it replaces.
    source: one line.
    target: one line.
  """

  first: int
  pairs: int
  source: str
  target: str


class Augmenter:
  """Draws which pairs are rewritten, and rewrites them."""

  def __init__(self, augmentation: Augmentation) -> None:
    self._augmentation = augmentation

  def rewrite(
    self, sources: Sequence[str], targets: Sequence[str], number: int
  ) -> Iterator[Rewritten]:
    """Yields the replacements of rewritten pairs.

    The draws for a pair depend on the seed, the pass and the pair's own text.

    Args:
      sources: one line each, without blanks at the ends.
      targets: as many.
      number: number of the pass, from 0.
    """
    if self._augmentation.is_plain:
      return
    place = 0
    while place < len(sources):
      draw = self._generator(number, sources[place], targets[place])
      end = place + 1
      if draw.random() < self._augmentation.merge:
        end = _end_of_joined(sources, targets, place, draw)
      before = _joined(sources[place:end]), _joined(targets[place:end])
      after = self._rewritten(*before, draw)
      if end > place + 1 or after != before:
        yield Rewritten(place, end - place, *after)
      place = end

  def apply(
    self, sources: Sequence[str], targets: Sequence[str], number: int
  ) -> Iterator[tuple[str, str]]:
    """Yields all pairs, rewritten ones in the places of the original ones."""
    pairs = list(zip(sources, targets, strict=True))
    found = self.rewrite(sources, targets, number)
    put = put_in_place(
      pairs, ((one, (one.source, one.target)) for one in found)
    )
    return (pair for _, pair in put)

  def _generator(self, number: int, source: str, target: str) -> random.Random:
    seed = f"{self._augmentation.seed} {number} {source}\n{target}"
    # The same in every process, unlike the result of `hash`.
    return random.Random(seed.encode("utf-8", "surrogatepass"))

  def _rewritten(
    self, source: str, target: str, draw: random.Random
  ) -> tuple[str, str]:
    shares = self._augmentation
    if draw.random() < shares.endpunct:
      source, target = _other_end(source, target)
    kind = draw.random()
    if kind < shares.upper:
      source, target = source.upper(), target.upper()
    elif kind < shares.upper + shares.title:
      source, target = _titled(source), _titled(target)
    elif kind < shares.upper + shares.title + shares.lower:
      source, target = source.lower(), target.lower()
    if draw.random() < shares.typos:
      source = _mistyped(source, draw)
    return source, target


Item = TypeVar("Item")


def put_in_place(
  items: Sequence[Item], rewritten: Iterable[tuple[Rewritten, Item]]
) -> Iterator[tuple[int, Item]]:
  """Yields a sequence with others in the place of some of its items.

  Args:
    items: items of the pairs, in their order.
    rewritten: items that replace some pairs, in the same order.

  Yields:
    The place of the first pair of an item, and the item.
  """
  place = 0
  for one, item in rewritten:
    yield from enumerate(items[place : one.first], start=place)
    yield one.first, item
    place = one.first + one.pairs
  yield from enumerate(items[place:], start=place)


def _end_of_joined(
  sources: Sequence[str],
  targets: Sequence[str],
  first: int,
  draw: random.Random,
) -> int:
  """Returns where the pairs end that are joined with the first.

  Two are joined with probability 1/2, else three with 1/2, else four; fewer if
  the line would be too long. Nothing follows a line that does not end as a
  sentence does: it may be a heading.
  """
  end = first + 1
  lengths = [len(sources[first]), len(targets[first])]
  while end < min(first + _MOST_PAIRS, len(sources)):
    if not all(ends_a_sentence(side[end - 1]) for side in (sources, targets)):
      break
    lengths = [
      n + 1 + len(side[end])
      for n, side in zip(lengths, (sources, targets), strict=True)
    ]
    if max(lengths) > _LONGEST:
      break
    end += 1
    if draw.random() < 0.5:
      break
  return end


def _joined(lines: Sequence[str]) -> str:
  """Returns sentences on one line, as their script has it."""
  text = lines[0]
  for line in lines[1:]:
    text += " " + line if are_set_apart(text, line) else line
  return text


def _other_end(source: str, target: str) -> tuple[str, str]:
  """Returns a pair without its last marks, or with some; both sides alike."""
  short = without_last_mark(source), without_last_mark(target)
  if all(short) and short[0] != source and short[1] != target:
    return short
  stops = _full_stop(source), _full_stop(target)
  if all(stops):
    return source + stops[0], target + stops[1]
  return source, target


def _full_stop(line: str) -> str:
  """Returns the full stop that goes behind a letter; none if it is unsure."""
  script = unicodedata.name(line[-1], "").partition(" ")[0]
  return _FULL_STOPS.get(script, "") if line[-1].isalpha() else ""


def _titled(line: str) -> str:
  """Returns a line in which each word begins with a capital."""
  return _WORD_BEGINS.sub(lambda found: found[0].upper(), line)


def _mistyped(line: str, draw: random.Random) -> str:
  """Returns a line with typing errors.

  Two letters are swapped, or one is left out, doubled, or replaced by a
  neighbour on the keyboard. Letters that are words, as in Chinese, and letters
  with marks are kept.
  """
  places = [
    found.start()
    for found in _INNER_LETTER.finditer(line)
    if not any(
      stands_alone(near) or is_mark(near)
      for near in line[found.start() - 1 : found.start() + 2]
    )
  ]
  errors = min(max(len(line) // _TYPO_EVERY, 1), len(places))
  drawn = {places[_below(len(places), draw)] for _ in range(errors)}
  last = len(line) + 1
  for place in sorted(drawn, reverse=True):
    if place < last - 1:  # A swap changes the letter before, too.
      line, last = _with_error(line, place, _below(4, draw), draw), place
  return line


def _with_error(line: str, place: int, kind: int, draw: random.Random) -> str:
  """Returns a line with an error at a letter that is not its word's first."""
  before, letter, after = line[:place], line[place], line[place + 1 :]
  if kind == 0:
    return before[:-1] + letter + before[-1] + after
  if kind == 1:
    return before + after
  near = _NEIGHBOURS.get(letter.lower(), "")
  if kind == 2 or not near:
    return before + letter + letter + after
  other = near[_below(len(near), draw)]
  return before + (other.upper() if letter.isupper() else other) + after


def _below(bound: int, draw: random.Random) -> int:
  """Draws a number from 0 to bound - 1; the same in all versions of Python."""
  return int(draw.random() * bound)
