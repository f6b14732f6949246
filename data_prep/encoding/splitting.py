"""Splitting one corpus into training, development and test text."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

from absl import logging

from data_prep.encoding.pair_encoder import PairCleaner
from data_prep.encoding.scratch import Scratch
from data_prep.reading.corpora import Corpus, Shares
from data_prep.reading.text_blocks import read_blocks
from official_transformer.errors import InputError
from official_transformer.storage.durable_files import write_text

# The names of each part's source and target file.
SPLIT_FILES = {
  part: (f"{part}.source", f"{part}.target") for part in ("dev", "test")
}
_ALL = 2**64
_SPLIT = "split"  # Marks in the scratch directory that the files are complete.


@dataclasses.dataclass(frozen=True)
class SplitText:
  """The text of a split, in the scratch directory.

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


@dataclasses.dataclass(frozen=True)
class _Pair:
  """A pair in the form to compare, and as it is written."""

  formed: tuple[str, str]
  given: tuple[str, str]


def split_corpus(
  corpus: Corpus,
  shares: Shares,
  cleaner: PairCleaner,
  scratch: Scratch,
) -> SplitText:
  """Writes the development and test text of a corpus.

  The hash of its source sentence alone puts a pair into a part. So equal
  sentences are in the same part, and a pair stays where it is when others are
  added to the corpus. A development pair that shares a sentence with the test
  text is left out. The caller must leave the lines of both parts out of the
  training data, because a training pair may have the target sentence of one.

  Args:
    corpus: files, which the caller reads again.
    shares: how much goes into each part.
    cleaner: pairs that it leaves out are in no part. Sentences are compared in
      its form, and written as they are. Filters of tokens and of duplicates do
      not apply.
    scratch: where `dev.source`, `dev.target`, `test.source` and `test.target`
      are written, and found if an earlier run has written them.

  Raises:
    InputError: if a part has no pair, or a line is not UTF-8.
  """
  parts = {"dev": shares.dev, "test": shares.test}
  found = SplitText(
    *(
      Corpus(*([scratch.path(name)] for name in SPLIT_FILES[part]))
      if share
      else Corpus()
      for part, share in parts.items()
    )
  )
  if scratch.has(_SPLIT):
    return found
  dev: list[_Pair] = []
  test: list[_Pair] = []
  total = 0
  for pair in _pairs(corpus, cleaner):
    total += 1
    place = _place_of(pair.formed[0])
    if place >= shares.train + shares.dev:
      test.append(pair)
    elif place >= shares.train:
      dev.append(pair)
  in_test = {side for pair in test for side in pair.formed}
  dev = [pair for pair in dev if in_test.isdisjoint(pair.formed)]
  logging.info(
    "split: of %d pairs, %d are for development and %d for the test; training "
    "leaves out all pairs that share a sentence with one of them",
    *(total, len(dev), len(test)),
  )
  for (part, share), pairs in zip(parts.items(), (dev, test), strict=True):
    if share:
      _write(part, pairs, scratch)
  scratch.mark(_SPLIT)
  return found


def _pairs(corpus: Corpus, cleaner: PairCleaner) -> Iterator[_Pair]:
  """Yields the pairs that the filters keep."""
  for block in read_blocks(corpus):
    clean = cleaner.clean(block)
    given = list(zip(*block.sides(), strict=True))
    for row, formed in zip(
      clean.rows, zip(clean.sources, clean.targets, strict=True), strict=True
    ):
      source, target = (side.decode("utf-8").strip() for side in given[row])
      yield _Pair(formed, (source, target))


def _place_of(sentence: str) -> float:
  """Returns where in [0, 1) a sentence's hash puts it."""
  digest = hashlib.blake2b(sentence.encode("utf-8"), digest_size=8).digest()
  return int.from_bytes(digest, "big") / _ALL


def _write(part: str, pairs: list[_Pair], scratch: Scratch) -> None:
  """Writes the two sides of a part."""
  if not pairs:
    raise InputError(
      f"--split leaves no pair for {part}.source: the corpus has too few "
      "different sentences for such a share"
    )
  for side, name in enumerate(SPLIT_FILES[part]):
    lines = "".join(pair.given[side] + "\n" for pair in pairs)
    write_text(scratch.path(name), lines)
