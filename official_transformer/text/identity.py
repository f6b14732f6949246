"""Identities of vocabularies and training data, by their SHA-256."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

from official_transformer.errors import InputError
from official_transformer.storage.typed_json import (
  check_plain_name,
  read_record,
)


def digest_of(content: bytes) -> str:
  """Returns the SHA-256 of bytes, in hexadecimal."""
  return hashlib.sha256(content).hexdigest()


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """A vocabulary file, identified by its content.

  Attributes:
    file: name of the file, without a directory.
    size: number of entries.
    sha256: SHA-256 of its bytes, in hexadecimal.
  """

  file: str
  size: int
  sha256: str

  @classmethod
  def of(cls, path: str, content: bytes, size: int) -> Vocabulary:
    """Describes a file that holds `size` entries."""
    return cls(os.path.basename(path), size, digest_of(content))

  def __str__(self) -> str:
    return f"{self.size} entries (sha256 {self.sha256[:12]}...)"


@dataclasses.dataclass(frozen=True)
class Vocabularies:
  """The vocabularies of a model's two sides; mostly they share one.

  Attributes:
    source: vocabulary of the source.
    target: vocabulary of the target.

  Raises:
    InputError: if two that differ have the same name.
  """

  source: Vocabulary
  target: Vocabulary

  def __post_init__(self) -> None:
    if self.source.file == self.target.file and not self.is_joint:
      raise InputError(
        "the vocabularies of source and target are both named "
        f"{self.source.file}, but differ: rename one of them, because both "
        "are copied to one directory"
      )

  @classmethod
  def joint(cls, vocabulary: Vocabulary) -> Vocabularies:
    """Returns one vocabulary for both sides."""
    return cls(vocabulary, vocabulary)

  @property
  def is_joint(self) -> bool:
    """Whether both sides share one, and a model its table."""
    return self.source.sha256 == self.target.sha256

  @property
  def sizes(self) -> tuple[int, int]:
    """Entries of source and target."""
    return self.source.size, self.target.size

  def are_as(self, others: Vocabularies) -> bool:
    """Returns whether others have the same content, under any names."""
    return (self.source.sha256, self.target.sha256) == (
      others.source.sha256,
      others.target.sha256,
    )

  def __str__(self) -> str:
    if self.is_joint:
      return str(self.source)
    return f"{self.source} for the source, {self.target} for the target"

  def to_json(self) -> dict[str, Any]:
    """Returns the fields for model.json and data.json."""
    if self.is_joint:
      return dataclasses.asdict(self.source)
    return dataclasses.asdict(self)

  @classmethod
  def from_json(cls, content: dict[str, Any]) -> Vocabularies:
    """Reads the result of `to_json`.

    Raises:
      TypeError, ValueError: if it is something else.
    """
    if "source" not in content:
      return cls.joint(_read_vocabulary(content))
    if content.keys() != {"source", "target"}:
      raise TypeError(f"vocabularies of {', '.join(content):.50}")
    return cls(*(_read_vocabulary(content[k]) for k in ("source", "target")))


def _read_vocabulary(content: Any) -> Vocabulary:
  vocabulary = read_record(Vocabulary, content)
  # A path to another place would be read, or written, there.
  check_plain_name(vocabulary.file)
  return vocabulary


@dataclasses.dataclass(frozen=True)
class DataIdentity:
  """Training data and their order, identified by their content.

  Attributes:
    pairs: how many there are.
    source_tokens: source tokens of all pairs, EOS included.
    target_tokens: target tokens of all pairs, EOS included.
    shards: files they are spread over.
    fingerprint: fingerprint of all records in their order, in hexadecimal.
  """

  pairs: int
  source_tokens: int
  target_tokens: int
  shards: int
  fingerprint: str

  def __str__(self) -> str:
    return (
      f"{self.pairs} pairs of {self.source_tokens} and {self.target_tokens} "
      f"tokens in {self.shards} shards (fingerprint {self.fingerprint})"
    )

  def may_be_part_of(self, whole: DataIdentity) -> bool:
    """Returns whether leaving something out of `whole` may give these."""
    return (
      self.pairs <= whole.pairs
      and self.source_tokens <= whole.source_tokens
      and self.target_tokens <= whole.target_tokens
      and self.shards <= whole.shards
    )
