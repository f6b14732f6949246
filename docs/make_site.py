"""Builds the manual as a site, in build/site.

    pip install -e '.[docs]'
    python docs/make_site.py

The pages are those of the repository, which link to each other and to sources
by relative paths. They are copied with everything that they link to, so that
the links lead to the same files on the site. Notebooks become pages.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import nbconvert

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "site_source"
INDEX = "README.md"
# What the page on Python, and upstream's own users, import.
PUBLIC_MODULES = (
  "official_transformer.decoding.translator",
  "official_transformer.decoding.options",
  "official_transformer.decoding.requests",
  "official_transformer.search.options",
  "official_transformer.model_params",
  "official_transformer.model.transformer",
  "official_transformer.model.attention_layer",
  "official_transformer.model.embedding_layer",
  "official_transformer.model.ffn_layer",
  "official_transformer.model.model_utils",
  "official_transformer.model.metrics",
  "official_transformer.search.beam_search",
  "official_transformer.search.sequence_beam_search",
  "official_transformer.text.tokenizer",
  "official_transformer.training.step.optimizer",
  "official_transformer.data.data_pipeline",
  "official_transformer.compute_bleu",
  "official_transformer.serving.client",
)
_NOTEBOOK = ".ipynb"
_PAGES = (".md", _NOTEBOOK)
_NOTEBOOK_LINK = re.compile(r"(\]\((?!http)[^)#\s]+)\.ipynb\b")
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def linked_files(page: pathlib.Path) -> set[pathlib.Path]:
  """Returns the files of the repository that a page links to."""
  targets = (
    match[1]
    for match in _LINK.finditer(page.read_text("utf-8"))
    if not match[1].startswith("http")
  )
  return {(page.parent / target).resolve() for target in targets}


def pages_and_links() -> set[pathlib.Path]:
  """Returns the README and everything that it leads to."""
  found: set[pathlib.Path] = set()
  waiting = {ROOT / INDEX, *(ROOT / "docs").glob("*.md")}
  while waiting:
    path = waiting.pop()
    found.add(path)
    if path.suffix in _PAGES:
      waiting |= linked_files(path) - found
  return found


def make_source() -> None:
  """Copies the pages, and writes the page of Python's reference."""
  shutil.rmtree(SOURCE, ignore_errors=True)
  for path in pages_and_links():
    place = SOURCE / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
  (SOURCE / INDEX).rename(SOURCE / "index.md")
  for notebook in SOURCE.rglob(f"*{_NOTEBOOK}"):
    make_page(notebook)
  for page in SOURCE.rglob("*.md"):
    text = _NOTEBOOK_LINK.sub(r"\1.md", page.read_text("utf-8"))
    # A link to the README leads to the index; other folders keep theirs.
    up = "../" * (len(page.relative_to(SOURCE).parts) - 1)
    page.write_text(text.replace(f"]({up}{INDEX}", f"]({up}index.md"), "utf-8")
  modules = "".join(f"::: {name}\n\n" for name in PUBLIC_MODULES)
  reference = f"# Python reference\n\nMade from the docstrings.\n\n{modules}"
  (SOURCE / "reference.md").write_text(reference, "utf-8")


def make_page(notebook: pathlib.Path) -> None:
  """Writes a notebook as a page beside it, with its outputs and pictures."""
  text, resources = nbconvert.MarkdownExporter().from_filename(str(notebook))
  text = text.replace("%%bash\n", "")  # Notebooks' word for a cell of bash.
  # Pictures are numbered alike in all notebooks.
  for name, content in resources["outputs"].items():
    own = f"{notebook.stem}_{name}"
    notebook.with_name(own).write_bytes(content)
    text = text.replace(f"]({name})", f"]({own})")
  notebook.with_suffix(".md").write_text(text, "utf-8")


def main() -> int:
  """Builds the site; a warning is an error."""
  make_source()
  command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
  # The theme would advertise its successor.
  quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
  return subprocess.run(command, cwd=ROOT, env=quiet).returncode


if __name__ == "__main__":
  sys.exit(main())
