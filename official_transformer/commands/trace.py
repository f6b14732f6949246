"""`--trace_dir`: a record of each search, step by step."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from absl import logging

from official_transformer.decoding.search_trace import (
  FINISHED,
  SearchTrace,
  SearchTracer,
)
from official_transformer.decoding.translator import Translator
from official_transformer.plotting.search_tree import Node, save_tree
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text


class TraceWriter:
  """Writes the searches of lines as JSON, and as pictures of trees.

  Attributes:
    translator: whose searches they are.
    directory: where they are written.
    formats: formats of the pictures.
    lines: so far.
    written: number of these that were written; blank lines are not.
  """

  def __init__(
    self, translator: Translator, directory: str, formats: Sequence[str]
  ) -> None:
    self.translator = translator
    self.directory, self.formats = directory, formats
    self.lines = self.written = 0
    reader = translator.attention_reader
    assert reader  # TensorFlow searches.
    self._tracer = SearchTracer(reader.transformer, *translator.tokenizers)
    file_system.make_directories(directory)

  def write(self, line: str) -> None:
    """Searches once more for the translation of a line, and writes how."""
    self.lines += 1
    pieces = self.translator.prepare(line).ids
    self.written += bool(pieces)
    for number, ids in enumerate(pieces, start=1):
      name = f"{self.lines:06}" + (f".{number}" if len(pieces) > 1 else "")
      path = os.path.join(self.directory, name)
      trace = self._tracer.trace(ids)
      content = json.dumps(trace.to_json(), ensure_ascii=False, indent=1)
      write_text(f"{path}.json", content + "\n")
      if self.formats:
        save_tree(trace.found[0].text, tree_of(trace), path, self.formats)

  def close(self) -> None:
    """Logs the files that were written."""
    logging.info(
      "wrote the searches of %d lines into %s", self.written, self.directory
    )


def tree_of(trace: SearchTrace) -> list[list[Node]]:
  """Returns a search as the nodes of a tree."""
  best = trace.best_path()
  steps = []
  places: dict[int, int | None] = {0: None}  # Of the beams, in the last step.
  for number, candidates in enumerate(trace.steps):
    steps.append(
      [
        Node(
          places[c.parent],
          c.piece,
          f"score {c.score:.2f}"
          if c.fate == FINISHED and c.score is not None
          else f"{c.log_probability:.2f}",
          c.fate,
          number < len(best) and best[number] == place,
        )
        for place, c in enumerate(candidates)
      ]
    )
    places = {
      c.beam: place for place, c in enumerate(candidates) if c.beam is not None
    }
  return steps
