"""Sources, references, and how well a model translates them."""

from __future__ import annotations

import dataclasses
import itertools

from official_transformer.decoding.translator import Translator
from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  without_heavy,
)
from official_transformer.evaluation.scores import Scores, score
from official_transformer.model_directory.directory import (
  TRANSLATIONS,
  ModelDirectory,
)
from official_transformer.storage.file_system import make_directories
from official_transformer.text.identity import digest_of
from official_transformer.text.text_files import read_parallel, write_lines


@dataclasses.dataclass(frozen=True)
class EvaluationSet:
  """Sources and as many references.

  Attributes:
    sources: lines to translate.
    references: translations of the sources.
  """

  sources: list[str]
  references: list[str]

  @classmethod
  def read(cls, source_file: str, reference_file: str) -> EvaluationSet:
    """Reads both files.

    Raises:
      InputError: if one is missing or empty, or their numbers of lines differ.
    """
    return cls(*read_parallel(source_file, reference_file))

  def digest(self) -> str:
    """Returns a digest of all lines, 16 hexadecimal digits."""
    lines = [*self.sources, *self.references]
    return digest_of("\n".join(lines).encode())[:16]

  def evaluate(
    self, translator: Translator, settings: MetricSettings
  ) -> ScoredTranslations:
    """Translates the sources and scores that."""
    translations = translator.translate(self.sources)
    settings = without_heavy(settings, [*self.references, *translations])
    return ScoredTranslations(
      translations,
      score(References([self.references]), translations, settings),
    )

  def samples(
    self, translations: list[str], number: int
  ) -> list[tuple[str, str, str]]:
    """Returns the first sources, references and translations.

    Args:
      translations: a line for each source.
      number: largest number of lines to return.
    """
    rows = zip(self.sources, self.references, translations, strict=True)
    return list(itertools.islice(rows, number))


@dataclasses.dataclass(frozen=True)
class ScoredTranslations:
  """Translations and scores of an evaluation set.

  Attributes:
    translations: a line for each source.
    scores: scores of all lines together.
  """

  translations: list[str]
  scores: Scores

  def write(self, directory: ModelDirectory, name: str) -> str:
    """Keeps both in the model directory; returns the translations' path."""
    path = keep_translations(directory, name, self.translations)
    keep_scores(directory, name, self.scores.report())
    return path


def keep_translations(
  directory: ModelDirectory, name: str, lines: list[str]
) -> str:
  """Keeps translations in a model directory.

  Args:
    directory: gets `NAME.txt` under `translations`.
    name: distinguishes this evaluation from others.
    lines: the translations.

  Returns:
    The path of the file.

  Raises:
    OSError: if the system refuses.
  """
  make_directories(directory.join(TRANSLATIONS))
  path = directory.join(TRANSLATIONS, f"{name}.txt")
  write_lines(path, lines)
  return path


def keep_scores(directory: ModelDirectory, name: str, report: str) -> None:
  """Keeps scores as text, `NAME.scores.txt`, beside the translations.

  Raises:
    OSError: if the system refuses.
  """
  path = directory.join(TRANSLATIONS, f"{name}.scores.txt")
  write_lines(path, report.split("\n"))
