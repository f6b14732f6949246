import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from official_transformer.errors import InputError
from official_transformer.plotting import figures, fonts
from official_transformer.plotting.heat_maps import (
  HeatMap,
  draw_heads,
  draw_means,
  save_heat_map,
  size_of,
)


def heat_map(rows=3, columns=4, layers=2, heads=2, label="piece"):
  weights = np.random.default_rng(0).dirichlet(
    np.ones(columns), (layers, heads, rows)
  )
  return HeatMap(
    "A title",
    weights,
    [f"{label}{n}" for n in range(rows)],
    [f"_c{n}" for n in range(columns)],
    "written",
    "read",
  )


def shown(figure):
  """The cells that a figure shows, NaN between the maps."""
  (image,) = figure.axes[0].get_images()
  return np.ma.filled(image.get_array(), np.nan)


def test_each_head_has_its_place_in_the_grid():
  given = heat_map()
  with figures.figure(size_of(given, True)) as figure:
    draw_heads(figure, given)
    grid = shown(figure)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
  assert grid.shape == (2 * 4 - 1, 2 * 5 - 1)
  np.testing.assert_allclose(grid[4:7, 5:9], given.weights[1, 1])
  np.testing.assert_allclose(grid[0:3, 0:4], given.weights[0, 0])
  assert np.isnan(grid[3]).all()
  assert np.isnan(grid[:, 4]).all()
  assert labels == [*given.rows, *given.rows]


def test_means_of_layers_and_of_all():
  given = heat_map()
  with figures.figure(size_of(given, False)) as figure:
    draw_means(figure, given)
    grid = shown(figure)
  assert grid.shape == (3, 3 * 5 - 1)
  np.testing.assert_allclose(grid[:, 5:9], given.weights[1].mean(0))
  np.testing.assert_allclose(grid[:, 10:], given.weights.mean((0, 1)))


def test_files_are_the_same_bytes_each_time(tmp_path):
  given = heat_map(label="Hündchen")
  for name in ("one", "two"):
    (tmp_path / name).mkdir()
    paths = save_heat_map(given, str(tmp_path / name / "x"), ("png", "svg"))
    assert len(paths) == 4
  for path in (tmp_path / "one").iterdir():
    assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
  svg = ET.parse(tmp_path / "one" / "x.heads.svg")
  texts = {e.text for e in svg.iter() if e.tag.endswith("text")}
  assert {"Hündchen0", "_c3", "head 1", "layer 1"} <= texts


def test_dollars_are_dollars(tmp_path):
  given = heat_map(label="▁$$")._replace(title="It costs $5 or $6")
  save_heat_map(given, str(tmp_path / "x"), ["svg"])
  svg = ET.parse(tmp_path / "x.mean.svg")
  texts = {e.text for e in svg.iter() if e.tag.endswith("text")}
  assert {"▁$$0", "It costs $5 or $6"} <= texts


def test_a_very_long_line_is_still_a_picture(tmp_path):
  given = heat_map(rows=300, columns=290, layers=2, heads=2)
  assert max(size_of(given, True)) <= 60
  assert save_heat_map(given, str(tmp_path / "x"), ["png"])


def test_all_pieces_have_a_font_or_are_named():
  assert fonts.families_for(["abc", "اب", "שלום"]) == ["DejaVu Sans"]
  # Cuneiform is in no usual font; control characters need none.
  with pytest.raises(InputError, match="no font here has \U00012000: install"):
    fonts.families_for(["a\u200d\x01\U00012000"])


def test_chinese_is_drawn_or_its_package_named():
  try:
    families = fonts.families_for(["▁北京", "の"])
  except InputError as error:
    assert "apt-get install fonts-wqy-microhei" in str(error)
  else:
    assert families[0] == "DejaVu Sans"
    assert len(families) >= 2
    assert not any("Last" in name for name in families)


def test_fonts_that_came_later_are_found(monkeypatch):
  """Matplotlib remembers which there were when it looked first."""
  own = pytest.importorskip("matplotlib").get_data_path()
  seen = fonts._known(set())
  missing = next((face for face in seen if not face[1].startswith(own)), None)
  if missing is None:
    pytest.skip("no font here but matplotlib's own")
  from matplotlib.font_manager import fontManager

  others = [e for e in fontManager.ttflist if str(e.fname) != missing[1]]
  monkeypatch.setattr(fontManager, "ttflist", others)
  assert missing[1] in {path for _, path, _ in fonts._unknown(set())}


def test_without_matplotlib_its_extra_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  with pytest.raises(InputError, match=r"official-transformer\[plots\]"):
    figures.check_formats(["png"])


def test_an_unknown_format_is_refused():
  with pytest.raises(InputError, match=r"'gif'; there are: png, svg"):
    figures.check_formats(["png", "gif"])
