"""The vocabularies of a model's two sides: their files, and what reads them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from official_transformer.data.identity import Vocabularies, Vocabulary
from official_transformer.data.text_form import TextForm

if TYPE_CHECKING:
  from official_transformer.data.tokenizer import Tokenizer


class VocabFiles(NamedTuple):
  """Where the vocabularies are.

  Attributes:
    source: the path of that of what is read.
    target: of what is written; the same, if both sides share one.
  """

  source: str
  target: str

  @classmethod
  def joint(cls, path: str) -> VocabFiles:
    """Returns one file for both sides."""
    return cls(path, path)

  @classmethod
  def within(cls, directory: str, vocabularies: Vocabularies) -> VocabFiles:
    """Returns those that a description names, in its directory."""
    return cls(
      *(
        os.path.join(directory, side.file)
        for side in (vocabularies.source, vocabularies.target)
      )
    )

  @property
  def different(self) -> list[str]:
    """Each file once."""
    return list(dict.fromkeys(self))

  def __str__(self) -> str:
    return " and ".join(self.different)


class Tokenizers(NamedTuple):
  """What cuts text into tokens.

  Attributes:
    source: of what is read.
    target: of what is written; the same, if both sides share a vocabulary.
  """

  source: Tokenizer
  target: Tokenizer

  @classmethod
  def of(cls, given: Tokenizer | Tokenizers) -> Tokenizers:
    """Returns both; one that is given alone is both."""
    if isinstance(given, Tokenizers):
      return given
    return cls(given, given)


def load_tokenizers(
  files: VocabFiles, form: TextForm | None = None
) -> Tokenizers:
  """Loads the vocabularies of both sides.

  Args:
    files: where they are.
    form: what is done to text first; None is nothing.

  Raises:
    InputError: as `load_tokenizer`.
  """
  # Imports NumPy, which --help need not wait for.
  from official_transformer.data.tokenizer import load_tokenizer

  loaded = {path: load_tokenizer(path, form) for path in files.different}
  return Tokenizers(loaded[files.source], loaded[files.target])


def describe(files: VocabFiles) -> Vocabularies:
  """Returns what tells vocabularies from others.

  Raises:
    InputError: as `load_tokenizer`; if two that differ have the same name.
  """
  source, target = (
    Vocabulary.of(path, tokenizer.vocab_size)
    for path, tokenizer in zip(files, load_tokenizers(files), strict=True)
  )
  if source.sha256 == target.sha256:
    return Vocabularies.joint(source)
  return Vocabularies(source, target)
