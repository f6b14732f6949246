"""Figures: how all of them look, and how they become files.

A picture is the same bytes whenever it is made of the same numbers.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

from official_transformer.errors import InputError
from official_transformer.storage.durable_files import write_bytes

FORMATS = ("png", "svg")
# Okabe and Ito's colours, which colour-blind readers can distinguish, too.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
INK, SOFT = "#222222", "#777777"
_STYLE = {
  "font.size": 9,
  "axes.spines.top": False,
  "axes.spines.right": False,
  "axes.edgecolor": SOFT,
  "axes.labelcolor": INK,
  "xtick.color": INK,
  "ytick.color": INK,
  "axes.titlesize": 10,
  "axes.grid": False,
  "legend.frameon": False,
  # Text is text, dollars and all.
  "text.parse_math": False,
  "figure.dpi": 100,
  # Text is stored as text, and names inside the file are the same each time.
  "svg.fonttype": "none",
  "svg.hashsalt": "official_transformer",
}

# Pixels a side of the largest pictures; memory grows with the square.
_MOST_PIXELS = 4500
_DOTS_PER_INCH = 150
_NAME = re.compile(rb'id="([a-z]?[0-9a-f]{10})"')


def check_installed() -> None:
  """Raises an `InputError` if matplotlib is not installed."""
  try:
    import matplotlib  # noqa: F401
  except ImportError as error:
    raise InputError(
      f"pictures are drawn by matplotlib, which cannot be imported ({error}): "
      "pip install 'official-transformer[plots]'"
    ) from None


def check_formats(formats: Iterable[str]) -> None:
  """Raises an `InputError` unless all are of `FORMATS`, and can be made."""
  if unknown := [f for f in formats if f not in FORMATS]:
    raise InputError(
      f"no pictures of the format {unknown[0]!r}; there are: "
      + ", ".join(FORMATS)
    )
  check_installed()


@contextlib.contextmanager
def figure(
  size: tuple[float, float], families: Iterable[str] = ()
) -> Iterator[Any]:
  """Gives a figure to draw on, in the project's style.

  Args:
    size: width and height in inches.
    families: families of fonts, in the order they are asked for a character.

  Yields:
    A `matplotlib.figure.Figure`, which no screen shows.
  """
  import matplotlib
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  style: dict[str, Any] = dict(_STYLE)
  if families := list(families):
    style["font.family"] = families
  with matplotlib.rc_context(style):
    made = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(made)
    yield made


def save(figure: Any, path: str, formats: Iterable[str] = FORMATS) -> list[str]:
  """Writes a figure, within the body of `figure`.

  Args:
    figure: the finished figure.
    path: path of the files, without the ending.
    formats: some of `FORMATS`.

  Returns:
    The paths of the files.

  Raises:
    OSError: if the system refuses.
  """
  paths = []
  for kind in formats:
    paths.append(f"{path}.{kind}")
    write_bytes(paths[-1], encode(figure, kind))
  return paths


def encode(figure: Any, kind: str) -> bytes:
  """Returns a figure as the bytes of a file, within the body of `figure`."""
  buffer = io.BytesIO()
  # Neither a date nor a version.
  metadata: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}}
  dots = min(_DOTS_PER_INCH, _MOST_PIXELS / max(figure.get_size_inches()))
  figure.savefig(buffer, format=kind, metadata=metadata[kind], dpi=dots)
  content = buffer.getvalue()
  if kind == "svg":
    # Some of its names are made of addresses in memory.
    names = dict.fromkeys(_NAME.findall(content))
    for number, name in enumerate(names):
      content = content.replace(name, b"n%d" % number)
  return content
