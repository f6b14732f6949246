"""The manual is built as a site, without a warning."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mkdocs")

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]


def test_the_site_builds():
  done = subprocess.run(
    [sys.executable, str(ROOT / "docs" / "make_site.py")],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  site = ROOT / "build" / "site"
  index = (site / "index.html").read_text("utf-8")
  assert "docs/data/" in index and "page.png" in index
  reference = (site / "reference" / "index.html").read_text("utf-8")
  assert "sequence_beam_search" in reference
  notebooks = site / "examples" / "notebooks"
  page = notebooks / "first_half_hour" / "index.html"
  assert "What the model looks at" in page.read_text("utf-8")
  assert list(notebooks.glob("first_half_hour_*.png"))
