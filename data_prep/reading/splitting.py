"""Splitting one corpus into training, development and test text."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator

from absl import logging

from data_prep.reading.corpora import Corpus
from data_prep.reading.text_blocks import read_blocks, split_columns
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_bytes

_ALL = 2**64


@dataclasses.dataclass(frozen=True)
class Shares:
  """The shares of a corpus, which add up to 1.

  Attributes:
    train: share of the training pairs.
    dev: share of the development pairs.
    test: share of the test pairs.
  """

  train: float
  dev: float
  test: float

  @classmethod
  def parse(cls, text: str) -> Shares:
    """Returns the shares that a flag names, such as `.7,.15,.15`.

    Args:
      text: shares of training, development and, if there is to be any, test
        pairs, between commas.

    Raises:
      InputError: if the text is no such list.
    """
    try:
      shares = [float(share) for share in text.split(",")]
    except ValueError:
      shares = []
    if (
      len(shares) not in (2, 3)
      or min(shares) < 0
      or not shares[0]
      or abs(sum(shares) - 1) > 1e-6
    ):
      raise InputError(
        f"--split={text}: pass the shares of training, development and test "
        "pairs, which add up to 1, such as --split=.7,.15,.15"
      )
    return cls(*shares, *[0.0] * (3 - len(shares)))


@dataclasses.dataclass(frozen=True)
class SplitText:
  """The text that a split has written beside the data.

  Attributes:
    dev: development text; without files if its share is 0.
    test: test text; without files if its share is 0.
  """

  dev: Corpus
  test: Corpus

  @property
  def files(self) -> tuple[str, ...]:
    """All files, whose lines must not be trained on."""
    return (*self.dev.paths, *self.test.paths)


def split_corpus(corpus: Corpus, shares: Shares, directory: str) -> SplitText:
  """Writes the development and test text of a corpus.

  The hash of its source sentence alone puts a pair into a part. So equal
  sentences are in the same part, and a pair stays where it is when others are
  added to the corpus. A development pair whose target sentence is in the test
  text is left out. The caller must leave the lines of both parts out of the
  training data, because a training pair may have the target sentence of one.

  Args:
    corpus: files, which are read now and by the caller.
    shares: how much goes into each part.
    directory: where `dev.source`, `dev.target`, `test.source` and
      `test.target` are written; files with the right content stay as they are.

  Raises:
    InputError: if a file is a pipe, or a part would have no pair.
  """
  for path in corpus.paths:
    if not file_system.is_file(path):
      raise InputError(
        f"--split reads {path} twice, but it is no file: write it to one first"
      )
  dev: list[tuple[bytes, bytes]] = []
  test: list[tuple[bytes, bytes]] = []
  total = 0
  for pair in _pairs(corpus):
    total += 1
    place = _place_of(pair[0])
    if place >= shares.train + shares.dev:
      test.append(pair)
    elif place >= shares.train:
      dev.append(pair)
  in_test = {side for pair in test for side in pair}
  dev = [pair for pair in dev if in_test.isdisjoint(pair)]
  logging.info(
    "split: of %d pairs, %d are for development and %d for the test; training "
    "leaves out all pairs that share a sentence with one of them",
    *(total, len(dev), len(test)),
  )
  file_system.make_directories(directory)
  return SplitText(
    _written(dev, shares.dev, directory, "dev"),
    _written(test, shares.test, directory, "test"),
  )


def _pairs(corpus: Corpus) -> Iterator[tuple[bytes, bytes]]:
  """Yields the pairs that have two sides, without blanks at their ends."""
  for block in read_blocks(corpus):
    pairs = (
      split_columns(block.sources)
      if block.targets is None
      else zip(block.sources, block.targets, strict=True)
    )
    for pair in pairs:
      if (
        pair
        and (stripped := (pair[0].strip(), pair[1].strip()))
        and all(stripped)
      ):
        yield stripped


def _place_of(sentence: bytes) -> float:
  """Returns where in [0, 1) a sentence's hash puts it."""
  digest = hashlib.blake2b(sentence, digest_size=8).digest()
  return int.from_bytes(digest, "big") / _ALL


def _written(
  pairs: list[tuple[bytes, bytes]], share: float, directory: str, name: str
) -> Corpus:
  """Writes the two sides of a part, and returns their files."""
  if not share:
    return Corpus()
  if not pairs:
    raise InputError(
      f"--split leaves no pair for {name}.source: the corpus has too few "
      "different sentences for such a share"
    )
  paths = [
    os.path.join(directory, f"{name}.{side}") for side in ("source", "target")
  ]
  for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
    content = b"".join(line + b"\n" for line in lines)
    # A file that is written anew would have the preparation start anew.
    if not file_system.exists(path) or file_system.read_bytes(path) != content:
      write_bytes(path, content)
  return Corpus(paths[:1], paths[1:])
