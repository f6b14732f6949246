"""Attention as heat maps: all heads side by side, or their means.

Shapes: L layers, N heads, R rows, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from official_transformer.plotting import figures
from official_transformer.plotting.fonts import families_for

_CELL = 0.19  # Inches: a line of text of the size below.
_SMALL = 6.5
# More, and the labels of a grid would be dust; and a picture may have no side
# of more than 2^16 pixels.
_MOST_LABELS = 480
_LARGEST = 60.0


class HeatMap(NamedTuple):
  """The content of a heat map.

  Attributes:
    title: title of the picture.
    weights: [L, N, R, C], each row adding up to 1.
    rows: labels of the rows, R.
    columns: columns of the columns, C.
    row_name: label of the rows' axis.
    column_name: label of the columns' axis.
  """

  title: str
  weights: np.ndarray
  rows: Sequence[str]
  columns: Sequence[str]
  row_name: str
  column_name: str


class Attention(Protocol):
  """The attention of a line; see `decoding.attention.LineAttention`."""

  @property
  def source(self) -> list[str]:
    """The source's pieces, S."""

  @property
  def target(self) -> list[str]:
    """The target's, T."""

  @property
  def inputs(self) -> list[str]:
    """The pieces that the decoder reads, T."""

  @property
  def encoder(self) -> np.ndarray:
    """[L, N, S, S]."""

  @property
  def decoder(self) -> np.ndarray:
    """[L, N, T, T]."""

  @property
  def cross(self) -> np.ndarray:
    """[L, N, T, S]."""


def heat_maps_of(found: Attention) -> dict[str, HeatMap]:
  """Returns the heat maps of a line, by the part of the model."""
  return {
    "encoder": HeatMap(
      "The encoder's attention to the source",
      found.encoder,
      found.source,
      found.source,
      "source",
      "attends to the source",
    ),
    "decoder": HeatMap(
      "The decoder's attention to what it has written",
      found.decoder,
      found.target,
      found.inputs,
      "about to write",
      "attends to what it reads",
    ),
    "cross": HeatMap(
      "The decoder's attention to the source",
      found.cross,
      found.target,
      found.source,
      "about to write",
      "attends to the source",
    ),
  }


def draw_heads(figure: Any, heat_map: HeatMap) -> None:
  """Draws a grid: a row of maps for each layer, a column for each head.

  All are one picture with gaps: hundreds of axes would take a minute.
  """
  layers, heads, rows, columns = heat_map.weights.shape
  # A gap of one cell around each map.
  grid = np.full([layers * (rows + 1) - 1, heads * (columns + 1) - 1], np.nan)
  for layer, head in np.ndindex(layers, heads):
    top, left = layer * (rows + 1), head * (columns + 1)
    grid[top : top + rows, left : left + columns] = heat_map.weights[
      layer, head
    ]
  axes = _show(figure, grid, heat_map)
  middle = (rows - 1) / 2
  places = [layer * (rows + 1) for layer in range(layers)]
  if grid.shape[0] <= _MOST_LABELS and grid.shape[1] <= _MOST_LABELS:
    _label_rows(
      axes,
      [p + r for p in places for r in range(rows)],
      list(heat_map.rows) * layers,
    )
    tops = [head * (columns + 1) for head in range(heads)]
    _label_columns(
      axes,
      [t + c for t in tops for c in range(columns)],
      list(heat_map.columns) * heads,
    )
  for layer, place in enumerate(places):
    axes.text(
      grid.shape[1] + 0.3,
      place + middle,
      f"layer {layer}",
      rotation=270,
      va="center",
      ha="left",
      color=figures.SOFT,
    )
  for head in range(heads):
    axes.text(
      head * (columns + 1) + (columns - 1) / 2,
      -1.3,
      f"head {head}",
      ha="center",
      va="bottom",
      color=figures.SOFT,
    )


def draw_means(figure: Any, heat_map: HeatMap) -> None:
  """Draws the mean over the heads of each layer, and over all of them."""
  by_layer = heat_map.weights.mean(1)
  maps = [*by_layer, by_layer.mean(0)]
  columns = len(heat_map.columns)
  grid = np.full([len(heat_map.rows), len(maps) * (columns + 1) - 1], np.nan)
  for number, weights in enumerate(maps):
    left = number * (columns + 1)
    grid[:, left : left + columns] = weights
  axes = _show(figure, grid, heat_map)
  if max(grid.shape) <= _MOST_LABELS:
    _label_rows(axes, list(range(len(heat_map.rows))), heat_map.rows)
    places = [
      n * (columns + 1) + c for n in range(len(maps)) for c in range(columns)
    ]
    _label_columns(axes, places, list(heat_map.columns) * len(maps))
  for number in range(len(maps)):
    name = f"layer {number}" if number < len(by_layer) else "all layers"
    axes.text(
      number * (columns + 1) + (columns - 1) / 2,
      -1.0,
      name,
      ha="center",
      va="bottom",
      color=figures.SOFT,
    )


def size_of(heat_map: HeatMap, with_heads: bool) -> tuple[float, float]:
  """Returns the width and height, in inches, that a picture needs."""
  layers, heads, rows, columns = heat_map.weights.shape
  if with_heads:
    down, across = layers * (rows + 1), heads * (columns + 1)
  else:
    down, across = rows, (layers + 1) * (columns + 1)
  margin = _CELL * 0.55 * max(map(len, (*heat_map.rows, *heat_map.columns)))
  width, height = across * _CELL + margin + 0.8, down * _CELL + margin + 1.0
  shrink = min(1.0, _LARGEST / max(width, height))
  return (
    min(_LARGEST, max(5.2, width * shrink)),
    min(_LARGEST, max(2.4, height * shrink)),
  )


def save_heat_map(
  heat_map: HeatMap,
  path: str,
  formats: Sequence[str],
  kinds: Sequence[str] = ("heads", "mean"),
) -> list[str]:
  """Writes `PATH.heads` and `PATH.mean`, or one of them, in each format.

  Returns:
    The paths of the files.

  Raises:
    InputError: if no font has the labels' characters.
    OSError: if the system refuses.
  """
  paths = []
  families = families_for([*heat_map.rows, *heat_map.columns])
  for name in kinds:
    draw = {"heads": draw_heads, "mean": draw_means}[name]
    size = size_of(heat_map, draw is draw_heads)
    with figures.figure(size, families) as figure:
      draw(figure, heat_map)
      paths += figures.save(figure, f"{path}.{name}", formats)
  return paths


def render_means(heat_map: HeatMap, kind: str) -> bytes:
  """Returns the picture of `draw_means` as the bytes of a file.

  Raises:
    InputError: if no font has the labels' characters.
  """
  families = families_for([*heat_map.rows, *heat_map.columns])
  with figures.figure(size_of(heat_map, False), families) as figure:
    draw_means(figure, heat_map)
    return figures.encode(figure, kind)


def _show(figure: Any, grid: np.ndarray, heat_map: HeatMap) -> Any:
  """Draws the cells; returns the axes."""
  axes = figure.add_subplot()
  image = axes.imshow(
    grid, cmap="Blues", vmin=0, vmax=1, aspect="equal", interpolation="nearest"
  )
  axes.set_title(heat_map.title, pad=24, loc="left")
  axes.set_ylabel(heat_map.row_name)
  axes.set_xlabel(heat_map.column_name)
  axes.set_xticks([])
  axes.set_yticks([])
  for spine in axes.spines.values():
    spine.set_visible(False)
  bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.04, aspect=30)
  bar.outline.set_visible(False)
  bar.set_ticks([0, 0.5, 1])
  return axes


def _label_rows(
  axes: Any, places: Sequence[int], labels: Sequence[str]
) -> None:
  axes.set_yticks(places, labels, fontsize=_SMALL)
  axes.tick_params(axis="y", length=0)


def _label_columns(
  axes: Any, places: Sequence[int], labels: Sequence[str]
) -> None:
  axes.set_xticks(places, labels, fontsize=_SMALL, rotation=90)
  axes.tick_params(axis="x", length=0)
