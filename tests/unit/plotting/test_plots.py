import math

import numpy as np
import pytest

from official_transformer.model.embedding_neighbours import nearest_entries
from official_transformer.model.model_utils import get_position_encoding
from official_transformer.plotting import figures
from official_transformer.plotting.model_plots import (
  Neighbours,
  save_neighbours,
  save_positions,
)
from official_transformer.plotting.run_plots import (
  RunCurves,
  ScheduleCurve,
  draw_runs,
  panels_of,
  save_runs,
  save_schedules,
)
from official_transformer.plotting.search_tree import Node, draw_tree, save_tree

LOSS = {"train/loss": [(10, 5.0), (20, 4.0)], "validation/loss": [(20, 4.5)]}
BLEU = {"evaluation/sacrebleu_BLEU": [(20, 12.0)]}


def test_there_is_a_panel_for_what_was_measured():
  assert [t for t, _ in panels_of([RunCurves("a", LOSS)])] == [
    "loss, nats a token"
  ]
  both = [RunCurves("a", LOSS), RunCurves("b", BLEU)]
  assert [t for t, _ in panels_of(both)] == ["loss, nats a token", "BLEU"]
  assert panels_of([RunCurves("a", {"other": [(1, 1.0)]})]) == []


def test_curves_are_of_the_runs_numbers():
  runs = [RunCurves("a", {**LOSS, **BLEU}), RunCurves("b", LOSS)]
  with figures.figure((8, 4)) as figure:
    draw_runs(figure, runs)
    first, second = figure.axes
    lines = [line.get_xydata().tolist() for line in first.lines]
    labels = [t.get_text() for t in first.get_legend().get_texts()]
  assert lines == [[[10, 5], [20, 4]], [[20, 4.5]]] * 2
  assert labels == ["a training", "a validation", "b training", "b validation"]
  assert len(second.lines) == 1


def test_pictures_are_the_same_bytes_each_time(tmp_path):
  signal = np.array(get_position_encoding(12, 8))
  near = [Neighbours("Hund", ["▁Hund"], ["▁Hunde", "▁Katze"], [0.7, 0.4])]
  tree = [
    [Node(None, "▁Ein", "-0.1", "kept", True)],
    [
      Node(0, "</s>", "score -0.2", "finished", True),
      Node(0, "x", "-9", "pruned", False),
    ],
  ]
  for place in ("one", "two"):
    directory = tmp_path / place
    directory.mkdir()
    kinds = ("png", "svg")
    save_runs([RunCurves("r", LOSS)], f"{directory}/run", kinds)
    rate = ScheduleCurve("s", [(0, 0.0), (9, 0.1)], 4)
    save_schedules("s", [rate], f"{directory}/rate", kinds)
    save_positions(signal, f"{directory}/positions", kinds)
    save_neighbours(near, f"{directory}/near", kinds)
    save_tree("Ein", tree, f"{directory}/tree", kinds)
  paths = list((tmp_path / "one").iterdir())
  assert len(paths) == 10
  for path in paths:
    assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_tree_shows_every_candidate():
  steps = [
    [Node(None, "a", "-1", "kept", True), Node(None, "b", "-2", "kept", False)],
    [Node(1, "c", "-3", "pruned", False), Node(0, "d", "-4", "finished", True)],
  ]
  with figures.figure((5, 3)) as figure:
    draw_tree(figure, "title", steps)
    (axes,) = figure.axes
    texts = {t.get_text() for t in axes.texts}
    edges = {tuple(map(round, line.get_ydata())) for line in axes.lines}
  assert {"start", "a", "b", "c", "d", "-3"} <= texts
  assert edges == {(0, 0), (0, 1), (1, 0)}


def test_positions_are_as_alike_as_they_are_near():
  """Sin a sin b + cos a cos b is of the distance alone."""
  signal = np.array(get_position_encoding(20, 32), np.float64)
  products = signal @ signal.T
  for distance in (1, 7):
    np.testing.assert_allclose(
      np.diag(products, distance), products[0, distance], atol=1e-4
    )


def test_neighbours_by_hand():
  table = np.array([[0, 0], [1, 0], [2, 0.1], [0, 3], [-1, 0]], float)
  (found,) = nearest_entries(table, [[1]], 3)
  assert found.ids == [2, 0, 3]
  assert math.isclose(found.similarities[0], 2 / math.hypot(2, 0.1))
  assert found.similarities[1:] == pytest.approx([0, 0])
  # Of two pieces, the direction between them; neither is its own neighbour.
  (found,) = nearest_entries(table, [[1, 3]], 9)
  assert found.ids == [2, 0, 4]
