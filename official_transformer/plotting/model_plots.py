"""Pictures of a model's positions and of neighbours in its embeddings.

Shapes: P positions, D hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from official_transformer.plotting import figures
from official_transformer.plotting.fonts import families_for


def save_positions(
  encoding: np.ndarray, path: str, formats: Sequence[str]
) -> list[str]:
  """Writes the position encoding, and how alike positions are by it.

  Args:
    encoding: [P, D], sines in the first half, cosines in the second.
    path: path of the files, without the ending.
    formats: some of `figures.FORMATS`.

  Raises:
    OSError: if the system refuses.
  """
  positions, size = encoding.shape
  with figures.figure((11.0, 3.4)) as figure:
    first, second, third = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    image = first.imshow(
      encoding,
      aspect="auto",
      cmap="RdBu_r",
      vmin=-1,
      vmax=1,
      interpolation="nearest",
    )
    first.set_title("timing signal", loc="left")
    first.set_xlabel(f"dimension: sines to {size // 2 - 1}, then cosines")
    first.set_ylabel("position")
    figure.colorbar(image, ax=first, pad=0.02).outline.set_visible(False)
    products = encoding @ encoding.T / (size / 2)
    image = second.imshow(
      products, cmap="viridis", interpolation="nearest", aspect="auto"
    )
    second.set_title("dot products, of D/2", loc="left")
    second.set_xlabel("position")
    second.set_ylabel("position")
    figure.colorbar(image, ax=second, pad=0.02).outline.set_visible(False)
    # cos(a) cos(b) + sin(a) sin(b) = cos(a - b): positions do not matter.
    third.plot(np.arange(positions), products[0], color=figures.COLORS[0])
    third.set_title("by distance", loc="left")
    third.set_xlabel("positions apart")
    third.set_ylim(top=1.02)
    third.set_xlim(0, positions - 1)
    return figures.save(figure, path, formats)


class Neighbours(NamedTuple):
  """The neighbours of a word in an embedding.

  Attributes:
    word: as it was asked for.
    pieces: pieces that it is made of; of several, the mean is meant.
    entries: the vocabulary's, the nearest first.
    similarities: cosines.
  """

  word: str
  pieces: list[str]
  entries: list[str]
  similarities: list[float]


def save_neighbours(
  found: Sequence[Neighbours], path: str, formats: Sequence[str]
) -> list[str]:
  """Writes a panel for each word; returns the paths of the files.

  Raises:
    InputError: if no font has the words' characters.
    OSError: if the system refuses.
  """
  columns = min(4, len(found))
  rows = -(-len(found) // columns)
  tallest = max(len(n.entries) for n in found)
  size = (2.9 * columns, rows * (0.7 + 0.21 * tallest))
  families = families_for(t for n in found for t in (n.word, *n.entries))
  with figures.figure(size, families) as figure:
    for place, neighbours in enumerate(found):
      axes = figure.add_subplot(rows, columns, place + 1)
      places = np.arange(len(neighbours.entries))
      axes.barh(places, neighbours.similarities, color=figures.COLORS[5])
      axes.set_yticks(places, neighbours.entries)
      axes.invert_yaxis()
      axes.set_xlim(0, 1)
      axes.set_xlabel("cosine")
      axes.set_title(neighbours.word, loc="left")
      axes.tick_params(axis="y", length=0)
    return figures.save(figure, path, formats)
