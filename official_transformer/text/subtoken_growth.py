"""Growing a subtoken vocabulary from the counts of tokens.

Computes the result of upstream's `_generate_subtokens`, entry for entry, with
arrays instead of dictionaries of strings. All substrings of all tokens are
nodes of a tree; the ancestors of a substring are its prefixes, one level a
character. Each level is built from the one before, without substrings that are
too rare to be chosen.

Shapes: P characters of all tokens, one token after the other; N_n nodes of
level n; O_n places at which one of them occurs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

_ITERATIONS = 4


class _Level(NamedTuple):
  """The substrings of one length that occur often enough.

  Attributes:
    places: int64 [O], where they begin.
    nodes: int64 [O], which of them it is.
    parents: int64 [N], index of each node's prefix in the level before.
    examples: int64 [N], a place at which it occurs.
  """

  places: np.ndarray
  nodes: np.ndarray
  parents: np.ndarray
  examples: np.ndarray


class SubtokenGrowth:
  """Finds vocabularies for the tokens of a text.

  Attributes:
    text: all tokens, one after the other.
  """

  def __init__(self, token_counts: Mapping[str, int]) -> None:
    """Prepares the search.

    Args:
      token_counts: how often each escaped token occurs; none is empty.
    """
    self.text = "".join(token_counts)
    lengths = np.fromiter(map(len, token_counts), np.int64, len(token_counts))
    counts = np.fromiter(token_counts.values(), np.float64, len(token_counts))
    self._characters = np.frombuffer(
      self.text.encode("utf-32-le"), np.uint32
    ).astype(np.int64)
    ends = np.cumsum(lengths)
    self._starts = ends - lengths
    # [P]: for each character, the end and the count of its token. Sums of
    # counts are whole numbers below 2^53, which float64 represents exactly.
    self._ends = np.repeat(ends, lengths)
    self._counts = np.repeat(counts, lengths)

  def grow(self, min_count: int) -> list[tuple[int, str]]:
    """Returns the subtokens of two characters and more, and the letters.

    Every iteration cuts all tokens with the vocabulary so far, greedily into
    the longest, and counts all substrings that begin at a cut. Longer ones are
    chosen first, if they occur `min_count` times; each takes its occurrences
    away from its prefixes.

    Returns:
      Pairs of count and entry. Every letter that occurs is an entry, with the
      count that longer entries leave it.
    """
    levels = self._levels(min_count)
    steps = np.ones(len(self.text), np.int64)
    for _ in range(_ITERATIONS):
      is_cut = self._cut(steps)
      counts = [self._count(level, is_cut) for level in levels]
      chosen = _choose(levels, counts, min_count)
      steps = np.ones_like(steps)
      for n, (level, which) in enumerate(zip(levels, chosen, strict=True)):
        places = level.places[which[level.nodes]]
        steps[places] = n + 1
    return self._entries(levels, counts, chosen)

  @functools.cached_property
  def _first_level(self) -> _Level:
    """Returns all characters, however rare."""
    places = np.arange(len(self.text))
    return _level(places, self._characters, np.zeros(len(places), np.int64))

  def _levels(self, min_count: int) -> list[_Level]:
    """Returns the tree of substrings that may be chosen."""
    levels = [self._first_level]
    while True:
      last, length = levels[-1], len(levels)
      # Wherever the cuts are, a substring occurs no more often than this.
      most = np.bincount(
        last.nodes, self._counts[last.places], len(last.parents)
      )
      keep = (most[last.nodes] >= min_count) & (
        last.places + length < self._ends[last.places]
      )
      places, parents = last.places[keep], last.nodes[keep]
      if not len(places):
        return levels
      levels.append(_level(places, self._characters[places + length], parents))

  def _cut(self, steps: np.ndarray) -> np.ndarray:
    """Returns where tokens are cut, bool [P].

    Args:
      steps: int64 [P], the length of the longest subtoken that begins there.
    """
    is_cut = np.zeros(len(steps), bool)
    at, ends = self._starts, self._ends[self._starts]
    while len(at):
      is_cut[at] = True
      at = at + steps[at]
      within = at < ends
      at, ends = at[within], ends[within]
    return is_cut

  def _count(self, level: _Level, is_cut: np.ndarray) -> np.ndarray:
    """Returns how often each node begins at a cut, float64 [N]."""
    at_cut = is_cut[level.places]
    return np.bincount(
      level.nodes[at_cut],
      self._counts[level.places[at_cut]],
      len(level.parents),
    )

  def _entries(
    self,
    levels: Sequence[_Level],
    counts: Sequence[np.ndarray],
    chosen: Sequence[np.ndarray],
  ) -> list[tuple[int, str]]:
    """Returns the letters, and the chosen of other levels."""
    entries = []
    for n, level in enumerate(levels):
      which = chosen[n] if n else np.ones_like(chosen[n])
      for count, at in zip(
        counts[n][which].tolist(), level.examples[which].tolist(), strict=True
      ):
        entries.append((int(count), self.text[at : at + n + 1]))
    return entries


def _level(
  places: np.ndarray, characters: np.ndarray, parents: np.ndarray
) -> _Level:
  """Returns the level below some nodes.

  Args:
    places: int64 [O], where the substrings begin.
    characters: int64 [O], their last.
    parents: int64 [O], the nodes of all before it.
  """
  # A character has at most 21 bits.
  keys, examples, nodes = np.unique(
    (parents << 21) | characters, return_index=True, return_inverse=True
  )
  return _Level(places, nodes, keys >> 21, places[examples])


def _choose(
  levels: Sequence[_Level], counts: list[np.ndarray], min_count: int
) -> list[np.ndarray]:
  """Chooses nodes, the longest first, and takes them from their prefixes.

  Args:
    levels: the tree.
    counts: counts of each level's nodes, which are reduced in place.
    min_count: how often one must occur.

  Returns:
    bool [N] of each level; none of the first.
  """
  chosen = []
  taken: np.ndarray = np.zeros(0)
  for n in range(len(levels) - 1, -1, -1):
    if n + 1 < len(levels):
      counts[n] -= taken
    which = counts[n] >= min_count
    if n:
      # Longer entries reduce the counts of their shorter prefixes.
      passed = np.where(which, counts[n], 0.0)
      if n + 1 < len(levels):
        passed = passed + taken
      taken = np.bincount(levels[n].parents, passed, len(levels[n - 1].parents))
    else:
      which[:] = False
    chosen.append(which)
  return chosen[::-1]
