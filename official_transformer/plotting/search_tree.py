"""A beam search as a tree: from left to right, step by step, best on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from official_transformer.plotting import figures
from official_transformer.plotting.fonts import families_for

_ACROSS, _DOWN = 1.15, 0.36  # Inches from node to node.
_LARGEST = 100.0


class Node(NamedTuple):
  """A continuation that a step has considered.

  Attributes:
    parent: the number of the node before it, in the step before; None at first.
    label: piece of the continuation.
    note: text below the piece, such as its score.
    kind: `kept`, `finished` or `pruned`.
    is_best: whether the best hypothesis goes through it.
  """

  parent: int | None
  label: str
  note: str
  kind: str
  is_best: bool


def draw_tree(figure: Any, title: str, steps: Sequence[Sequence[Node]]) -> None:
  """Draws the nodes of all steps, and how they follow from each other."""
  axes = figure.add_subplot()
  axes.set_title(title, loc="left")
  for number, nodes in enumerate(steps, start=1):
    # The best path is drawn last: on top.
    for place, node in sorted(
      enumerate(nodes), key=lambda item: item[1].is_best
    ):
      _draw_edge(axes, number, place, node)
      _draw_node(axes, number, place, node)
  axes.text(0, 0, "start", ha="center", va="center", color=figures.SOFT)
  tallest = max(map(len, steps), default=1)
  axes.set_xlim(-0.5, len(steps) + 0.6)
  axes.set_ylim(tallest - 0.4, -0.7)
  axes.set_xticks(range(1, len(steps) + 1), range(1, len(steps) + 1))
  axes.set_xlabel("step")
  axes.set_yticks([])
  for spine in axes.spines.values():
    spine.set_visible(False)
  axes.tick_params(length=0)


def _draw_edge(axes: Any, number: int, place: int, node: Node) -> None:
  style = {
    "pruned": {"color": "#d0d0d0", "linewidth": 0.6},
    "kept": {"color": "#8a8a8a", "linewidth": 0.9},
    "finished": {"color": "#8a8a8a", "linewidth": 0.9},
  }[node.kind]
  if node.is_best:
    style = {"color": figures.COLORS[0], "linewidth": 2.0}
  start = 0 if node.parent is None else node.parent
  axes.plot(
    [number - 1 + 0.3, number - 0.36], [start, place], zorder=1, **style
  )


def _draw_node(axes: Any, number: int, place: int, node: Node) -> None:
  color = figures.INK if node.kind != "pruned" else "#a8a8a8"
  # Over the ends of edges, where a piece is long.
  box: dict[str, Any] = {
    "boxstyle": "square,pad=0.1",
    "facecolor": "white",
    "edgecolor": "none",
  }
  if node.kind == "finished":
    box = {
      "boxstyle": "round,pad=0.25",
      "facecolor": "#e4f2ec",
      "edgecolor": figures.COLORS[2],
      "linewidth": 0.8,
    }
  axes.text(
    number - 0.02,
    place - 0.08,
    node.label,
    ha="center",
    va="center",
    fontsize=8,
    color=color,
    bbox=box,
    zorder=3,
    fontweight="bold" if node.is_best else "normal",
  )
  axes.text(
    number - 0.02,
    place + 0.3,
    node.note,
    ha="center",
    va="center",
    fontsize=5.5,
    color=color,
    zorder=3,
  )


def save_tree(
  title: str,
  steps: Sequence[Sequence[Node]],
  path: str,
  formats: Sequence[str],
) -> list[str]:
  """Writes a tree; returns the paths of the files.

  Raises:
    InputError: if no font has the pieces' characters.
    OSError: if the system refuses.
  """
  families = families_for([title, *(n.label for nodes in steps for n in nodes)])
  tallest = max(map(len, steps), default=1)
  size = (
    min(_LARGEST, 1.0 + _ACROSS * (len(steps) + 1)),
    1.1 + _DOWN * (tallest + 1),
  )
  with figures.figure(size, families) as figure:
    draw_tree(figure, title, steps)
    return figures.save(figure, path, formats)
