"""A test set: sources, references, and how well a model translates them."""

from __future__ import annotations

import dataclasses
import os

from official_transformer.data.text_files import read_lines, write_lines
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.evaluation.bleu import (
  SacrebleuScore,
  official_bleu,
  sacrebleu_scores,
)
from official_transformer.model_directory import TRANSLATIONS, ModelDirectory


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """A translation of the test set and its scores, each from 0 to 100.

  Attributes:
    translations: one line for each source line.
    uncased: the official model's BLEU, case ignored.
    cased: the same with case.
    sacrebleu: BLEU and chrF2 with their signatures.
  """

  translations: list[str]
  uncased: float
  cased: float
  sacrebleu: list[SacrebleuScore]

  def report(self) -> str:
    """Returns the scores as lines of text."""
    lines = [
      f"Case-insensitive results: {self.uncased:.6f}",
      f"Case-sensitive results: {self.cased:.6f}",
    ]
    lines += [
      f"sacreBLEU {s.name}|{s.signature} = {s.score:.2f}"
      for s in self.sacrebleu
    ]
    return "\n".join(lines)

  def scalars(self) -> dict[str, float]:
    """Returns the scores under short names."""
    return {
      "bleu_uncased": self.uncased,
      "bleu_cased": self.cased,
      **{f"sacrebleu_{s.name}": s.score for s in self.sacrebleu},
    }


def score(references: list[str], translations: list[str]) -> Evaluation:
  """Scores a translation.

  Raises:
    ValueError: where the numbers of lines differ.
  """
  return Evaluation(
    translations,
    official_bleu(references, translations, case_sensitive=False),
    official_bleu(references, translations, case_sensitive=True),
    sacrebleu_scores(references, translations),
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
      InputError: where one is missing or their numbers of lines differ.
    """
    sources = list(read_lines(source_file))
    references = list(read_lines(reference_file))
    if len(sources) != len(references):
      raise InputError(
        f"{source_file} has {len(sources)} lines and {reference_file} "
        f"{len(references)}: line n of the one must translate line n of the "
        "other"
      )
    if not sources:
      raise InputError(f"{source_file} is empty: there is nothing to score")
    return cls(sources, references)

  def evaluate(self, translator: Translator) -> Evaluation:
    """Translates and scores."""
    return score(self.references, translator.translate(self.sources))

  def save(
    self, directory: ModelDirectory, name: str, result: Evaluation
  ) -> str:
    """Keeps a translation under the model directory; returns its path."""
    os.makedirs(directory.join(TRANSLATIONS), exist_ok=True)
    path = directory.join(TRANSLATIONS, f"{name}.txt")
    write_lines(path, result.translations)
    return path
