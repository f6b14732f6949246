"""Nearest entries of an embedding table.

Shapes: V vocabulary, D hidden size, W words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class NearestEntries(NamedTuple):
  """The entries nearest to a vector, the nearest first.

  Attributes:
    ids: ids of the entries.
    similarities: cosines of the entries.
  """

  ids: list[int]
  similarities: list[float]


def nearest_entries(
  table: np.ndarray, words: Sequence[Sequence[int]], number: int
) -> list[NearestEntries]:
  """Returns the entries of a table that are nearest to words.

  Args:
    table: [V, D].
    words: token ids of each; several are represented by the mean of their unit
      vectors. None of them is among the word's own neighbours.
    number: number of entries, at most.
  """
  norms = np.linalg.norm(table, axis=1, keepdims=True)
  directions = table / np.maximum(norms, 1e-12)
  found = []
  for ids in words:
    vector = directions[list(ids)].mean(0)
    vector = vector / max(float(np.linalg.norm(vector)), 1e-12)
    cosines = directions @ vector
    cosines[list(ids)] = -np.inf
    order = np.argsort(-cosines, kind="stable")[:number]
    best = [int(i) for i in order if np.isfinite(cosines[i])]
    found.append(NearestEntries(best, [float(cosines[i]) for i in best]))
  return found
