"""The vocabularies of a model's two sides: files and tokenizers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.text.identity import (
  Vocabularies,
  Vocabulary,
  digest_of,
)
from official_transformer.text.text_files import check_input
from official_transformer.text.text_form import TextForm

if TYPE_CHECKING:
  from official_transformer.text.tokenizer import Tokenizer


class VocabFiles(NamedTuple):
  """The paths of the vocabularies.

  Attributes:
    source: the path of the source vocabulary.
    target: the path of the target vocabulary; the same, if both sides share
      one.
  """

  source: str
  target: str

  @classmethod
  def joint(cls, path: str) -> VocabFiles:
    """Returns one file for both sides."""
    return cls(path, path)

  @classmethod
  def within(cls, directory: str, vocabularies: Vocabularies) -> VocabFiles:
    """Returns the files that a description names, in its directory."""
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
  """The tokenizers of a model's two sides.

  Attributes:
    source: tokenizer of the source.
    target: tokenizer of the target; the same, if both sides share a
      vocabulary.
  """

  source: Tokenizer
  target: Tokenizer

  @classmethod
  def of(cls, given: Tokenizer | Tokenizers) -> Tokenizers:
    """Returns both; one that is given alone is both."""
    if isinstance(given, Tokenizers):
      return given
    return cls(given, given)

  def formed(self, form: TextForm) -> Tokenizers:
    """Returns the same, of text that is brought into a form first."""
    from official_transformer.text.tokenizer import FormedTokenizer

    if form.is_plain:
      return self
    source = FormedTokenizer(self.source, form)
    if self.source is self.target:
      return Tokenizers(source, source)
    return Tokenizers(source, FormedTokenizer(self.target, form))


class LoadedVocabularies(NamedTuple):
  """The vocabularies of both sides, each file of which was read once.

  Attributes:
    files: where they are.
    contents: contents of the files, by path.
    identity: names, numbers of entries, and hashes of the files.
    tokenizers: tokenizers without a form of text.
  """

  files: VocabFiles
  contents: dict[str, bytes]
  identity: Vocabularies
  tokenizers: Tokenizers


def load_vocabularies(
  files: VocabFiles, expected: Vocabularies | None = None
) -> LoadedVocabularies:
  """Loads the vocabularies of both sides.

  Args:
    files: where they are.
    expected: identity that the files must have; None accepts any.

  Raises:
    InputError: if a file is missing or of no known kind, has other ids for PAD
      and EOS, or is not the expected one; if two different files have the same
      name.
  """
  # Imports NumPy, which --help need not wait for.
  from official_transformer.text.tokenizer import parse_vocabulary

  contents, described, tokenizers = {}, {}, {}
  for path in files.different:
    check_input(path)
    contents[path] = file_system.read_bytes(path)
  if expected:
    # Before anything reads them as vocabularies.
    sides = (expected.source, expected.target)
    for path, side in zip(files, sides, strict=True):
      if digest_of(contents[path]) != side.sha256:
        raise InputError(
          f"{path} is not the vocabulary that model.json describes "
          f"(sha256 {side.sha256[:12]}...); copy the model again"
        )
  for path, content in contents.items():
    tokenizers[path] = parse_vocabulary(path, content)
    size = tokenizers[path].vocab_size
    described[path] = Vocabulary.of(path, content, size)
  source, target = described[files.source], described[files.target]
  if source.sha256 == target.sha256:
    target = source
  return LoadedVocabularies(
    files,
    contents,
    Vocabularies(source, target),
    Tokenizers(tokenizers[files.source], tokenizers[files.target]),
  )


def load_tokenizers(
  files: VocabFiles, form: TextForm | None = None
) -> Tokenizers:
  """Loads the tokenizers of both sides.

  Args:
    files: where their vocabularies are.
    form: form into which text is brought first; None changes nothing.

  Raises:
    InputError: as `load_vocabularies`.
  """
  return load_vocabularies(files).tokenizers.formed(form or TextForm())


def describe(files: VocabFiles) -> Vocabularies:
  """Returns the identity of vocabularies.

  Raises:
    InputError: as `load_vocabularies`.
  """
  return load_vocabularies(files).identity
