"""A test set: sources, references, and how well a model translates them."""

from __future__ import annotations

import dataclasses
import itertools
import os

from official_transformer.data.text_files import (
  read_lines,
  read_parallel,
  write_lines,
)
from official_transformer.decoding.translator import Translator
from official_transformer.evaluation.scores import Scores, score
from official_transformer.model_directory.directory import (
  TRANSLATIONS,
  ModelDirectory,
)


@dataclasses.dataclass(frozen=True)
class TestSet:
  """Sources and as many references.

  Attributes:
    sources: lines to translate.
    references: their translations.
  """

  __test__ = False  # Not for pytest, whatever its name.

  sources: list[str]
  references: list[str]

  @classmethod
  def read(cls, source_file: str, reference_file: str) -> TestSet:
    """Reads both files.

    Raises:
      InputError: where one is missing or empty, or their numbers of lines
        differ.
    """
    return cls(*read_parallel(source_file, reference_file))

  def evaluate(
    self, translator: Translator, directory: ModelDirectory, name: str
  ) -> tuple[Scores, str]:
    """Translates and scores; keeps both in the model directory.

    Args:
      translator: the model.
      directory: where `NAME.txt` and `NAME.scores.txt` are kept.
      name: what tells this evaluation from others.

    Returns:
      The scores, and the path of the translation.
    """
    translations = translator.translate(self.sources)
    os.makedirs(directory.join(TRANSLATIONS), exist_ok=True)
    path = directory.join(TRANSLATIONS, f"{name}.txt")
    write_lines(path, translations)
    scores = score(self.references, translations)
    scores_path = directory.join(TRANSLATIONS, f"{name}.scores.txt")
    write_lines(scores_path, scores.report().split("\n"))
    return scores, path

  def samples(self, path: str, number: int) -> list[tuple[str, str, str]]:
    """Returns the first sources, references and translations.

    Args:
      path: a translation that `evaluate` has kept.
      number: how many, at most.
    """
    return list(
      itertools.islice(
        zip(self.sources, self.references, read_lines(path), strict=True),
        number,
      )
    )
