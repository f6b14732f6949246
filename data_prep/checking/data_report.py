"""A report on data: findings, problems, histograms."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from official_transformer.errors import InputError
from official_transformer.storage import file_system

_BARS = 40
_BINS = 12
_DRAWN_BINS = 50
_WIDEST = 100  # Characters of a line that is shown.


class Report:
  """The findings of a check, in the order of the report.

  Attributes:
    max_tokens: a side of more counts as too long.
    max_ratio: a pair of sides more unequal counts as that.
    worst: pairs to show of each kind.
    problems: faults that would make a training fail.
  """

  def __init__(self, max_tokens: int, max_ratio: float, worst: int) -> None:
    self.max_tokens = max_tokens
    self.max_ratio = max_ratio
    self.worst = worst
    self.problems: list[str] = []
    self._lines: list[str] = []
    self._histograms: dict[str, np.ndarray] = {}

  def title(self, text: str) -> None:
    """Begins a part."""
    self._lines += ["", text]

  def say(self, text: str) -> None:
    """Adds a line."""
    self._lines.append(f"  {text}")

  def problem(self, text: str) -> None:
    """Reports a problem that would break a training."""
    self.problems.append(text)
    self.say(f"PROBLEM: {text}")

  def table(
    self, head: Sequence[str], rows: Iterable[Sequence[object]]
  ) -> None:
    """Shows a table, its first column to the left."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
      first, *others = (
        cell.rjust(width) if number else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
      )
      self.say("  ".join([first, *others]).rstrip())

  def shares(self, counts: Mapping[str, int], total: int) -> None:
    """Shows how many of all there are of each."""
    self.table(
      ("", "pairs", "share"),
      [(name, n, f"{n / max(total, 1):.3%}") for name, n in counts.items()],
    )

  def histogram(self, name: str, values: np.ndarray) -> None:
    """Shows how often values occur, and keeps them to be drawn.

    Args:
      name: name of the values.
      values: numbers, at least one.
    """
    self._histograms[name] = values
    edges = _edges(values, _BINS)
    # Larger values count for the last bin.
    counts, _ = np.histogram(np.minimum(values, edges[-1]), edges)
    self.title(
      f"{name}: median {np.median(values):.4g}, 99% at most "
      f"{_most(values):.4g}, largest {values.max():.4g}"
    )
    for count, low in zip(counts, edges, strict=False):
      bar = "#" * round(_BARS * count / max(counts.max(), 1))
      self.say(f"from {low:8.4g} {count:10d} {bar}".rstrip())

  def pairs(self, title: str, pairs: Iterable[tuple[str, str, str]]) -> None:
    """Shows pairs, each after its peculiarity."""
    for number, (odd, source, target) in enumerate(pairs):
      if not number:
        self.title(title)
      self.say(odd)
      for side in (source, target):
        more = "..." if len(side) > _WIDEST else ""
        self.say(f"    {side[:_WIDEST]}{more}")

  def draw(self, directory: str) -> None:
    """Draws the histograms, after `check_drawing`.

    Raises:
      OSError: if the system refuses.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for name, values in self._histograms.items():
      figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
      edges = _edges(values, _DRAWN_BINS)
      axes.hist(np.minimum(values, edges[-1]), bins=edges, color="#3465a4")
      axes.set_title(name)
      axes.set_ylabel("pairs")
      axes.spines[["top", "right"]].set_visible(False)
      path = os.path.join(directory, name.replace(" ", "_") + ".png")
      with file_system.open_file(path, "wb") as stream:
        figure.savefig(stream, dpi=150, format="png")
      pyplot.close(figure)

  def text(self) -> str:
    """Returns the whole report."""
    end = (
      [f"{len(self.problems)} would break a training:"]
      + [f"  {problem}" for problem in self.problems]
      if self.problems
      else ["Nothing here would break a training."]
    )
    return "\n".join([*self._lines, "", *end]).lstrip("\n")


def check_drawing(directory: str) -> None:
  """Makes a directory for pictures.

  Raises:
    InputError: if matplotlib is not installed.
    OSError: if the system refuses.
  """
  try:
    importlib.import_module("matplotlib")
  except ImportError as error:
    raise InputError(
      f"--plot_dir needs more packages ({error}): pip install "
      "'official-transformer[plots]'"
    ) from None
  file_system.make_directories(directory)


def _most(values: np.ndarray) -> float:
  """Returns the 99th percentile, which bounds a histogram."""
  return float(np.quantile(values, 0.99, method="higher"))


def _edges(values: np.ndarray, bins: int) -> np.ndarray:
  """Returns the edges of at most so many bins; whole ones of whole numbers."""
  least, most = float(values.min()), _most(values)
  width = (most - least) / bins or 1.0
  if np.issubdtype(values.dtype, np.integer):
    width = max(np.ceil((most - least + 1) / bins), 1)
    most += 1
  count = max(int(np.ceil((most - least) / width)), 1)
  return least + width * np.arange(count + 1)
