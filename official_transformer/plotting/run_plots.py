"""Curves of training runs, and of the schedule that one would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_transformer.plotting import figures
from official_transformer.plotting.fonts import families_for

Curve = Sequence[tuple[int, float]]
# Panels, with the measurements that each shows, by their names in training; the
# second measurement of a panel is dashed.
_PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
  ("loss, nats a token", ("train/loss", "validation/loss")),
  (
    "BLEU",
    ("evaluation/sacrebleu_BLEU", "evaluation/bleu_uncased"),
  ),
  ("accuracy of tokens", ("train/accuracy", "train/accuracy_top5")),
  ("learning rate", ("train/learning_rate",)),
  ("gradient norm", ("train/gradient_norm",)),
  ("tokens a second", ("train/tokens_per_second",)),
)
_SHORT = {
  "train/loss": "training",
  "validation/loss": "validation",
  "evaluation/sacrebleu_BLEU": "sacreBLEU",
  "evaluation/bleu_uncased": "official, uncased",
  "train/accuracy": "training, best token",
  "train/accuracy_top5": "training, best five",
}


class RunCurves(NamedTuple):
  """The measured curves of a run.

  Attributes:
    name: name of the run.
    curves: steps and values, by the name of the measurement.
  """

  name: str
  curves: Mapping[str, Curve]


def panels_of(runs: Sequence[RunCurves]) -> list[tuple[str, tuple[str, ...]]]:
  """Returns the panels for which some run has numbers."""
  return [
    (title, names)
    for title, names in _PANELS
    if any(run.curves.get(name) for run in runs for name in names)
  ]


def draw_runs(figure: Any, runs: Sequence[RunCurves]) -> None:
  """Draws a panel for each kind of number, a colour for each run."""
  panels = panels_of(runs)
  columns = 2 if len(panels) > 1 else 1
  rows = -(-len(panels) // columns)
  for place, (title, names) in enumerate(panels):
    axes = figure.add_subplot(rows, columns, place + 1)
    axes.set_title(title, loc="left")
    for number, run in enumerate(runs):
      color = figures.COLORS[number % len(figures.COLORS)]
      for style, name in zip(("-", "--"), names, strict=False):
        if curve := run.curves.get(name):
          steps, values = zip(*curve, strict=True)
          label = " ".join(
            part
            for part in (
              run.name if len(runs) > 1 else "",
              _SHORT.get(name, "") if len(names) > 1 else "",
            )
            if part
          )
          if label.startswith("_"):  # matplotlib would leave it out.
            label = f" {label}"
          axes.plot(
            steps,
            values,
            style,
            color=color,
            label=label or None,
            linewidth=1.3,
            marker="o" if len(curve) < 3 else None,
            markersize=3,
          )
    axes.set_xlabel("step")
    axes.set_xlim(left=0)
    if axes.get_legend_handles_labels()[0]:
      axes.legend(fontsize=8)


def save_runs(
  runs: Sequence[RunCurves], path: str, formats: Sequence[str]
) -> list[str]:
  """Writes the curves of runs; returns the paths of the files.

  Raises:
    OSError: if the system refuses.
  """
  panels = panels_of(runs)
  columns = 2 if len(panels) > 1 else 1
  size = (4.6 * columns, 2.7 * -(-len(panels) // columns))
  with figures.figure(size, families_for(run.name for run in runs)) as figure:
    draw_runs(figure, runs)
    return figures.save(figure, path, formats)


class ScheduleCurve(NamedTuple):
  """The learning rate of a run that is to come.

  Attributes:
    name: name of the schedule in the legend.
    curve: steps and learning rates.
    warmup: updates until the learning rate peaks.
  """

  name: str
  curve: Curve
  warmup: int


def save_schedules(
  title: str,
  schedules: Sequence[ScheduleCurve],
  path: str,
  formats: Sequence[str],
) -> list[str]:
  """Writes one figure of learning rates; returns the paths of its files.

  Args:
    title: title of the figure.
    schedules: one curve each; the end of the warm-up is marked if there is
      only one.
    path: path of the files, without the ending.
    formats: some of `figures.FORMATS`.

  Raises:
    OSError: if the system refuses.
  """
  with figures.figure((6.0, 3.2)) as figure:
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    last = max(schedule.curve[-1][0] for schedule in schedules)
    for number, schedule in enumerate(schedules):
      color = figures.COLORS[number % len(figures.COLORS)]
      axes.plot(
        *zip(*schedule.curve, strict=True), color=color, label=schedule.name
      )
    if len(schedules) > 1:
      axes.legend(fontsize=8)
    elif (warmup := schedules[0].warmup) <= last:
      axes.axvline(warmup, color=figures.SOFT, linewidth=0.8, linestyle=":")
      axes.annotate(
        f"warm-up ends, {warmup:,}",
        (warmup, 0),
        xytext=(4, 4),
        textcoords="offset points",
        color=figures.SOFT,
        fontsize=8,
      )
    axes.set_xlabel("step")
    axes.set_ylabel("learning rate")
    axes.set_xlim(0, last)
    axes.set_ylim(bottom=0)
    return figures.save(figure, path, formats)
