"""Parallel text in blocks of lines, as bytes.

One process reads for all others, so that it does as little as possible: it
finds line ends and passes on the bytes between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from data_prep.reading.corpora import Corpus
from official_transformer.errors import InputError
from official_transformer.text.foreign_encodings import (
  LOOKED_AT,
  conversion,
  is_utf16,
)
from official_transformer.text.text_files import open_lines, without_mark

# Of the source side of a block; the other has as many lines.
BLOCK_BYTES = 1 << 19
# Of one line: no sentence has so many, but a file without line feeds has.
LINE_BYTES = 1 << 16
_FIRST = 1


class Block(NamedTuple):
  """Some consecutive pairs of lines.

  Attributes:
    number: number of the block in the corpus, from 0.
    first_pair: number of its pairs in the corpus, from 0.
    source_name: the file of the source lines, for messages.
    target_name: file name of the target lines; the same if pairs stand in one
      file.
    first_line: the first line's number in its file, from 1.
    sources: lines with their ends.
    targets: as many; None if each line of `sources` holds both sides.
    too_long: the rows of pairs that had more than `LINE_BYTES` on a side, both
      sides of which are empty here.
  """

  number: int
  first_pair: int
  source_name: str
  target_name: str
  first_line: int
  sources: list[bytes]
  targets: list[bytes] | None
  too_long: frozenset[int] = frozenset()

  def sides(self) -> tuple[list[bytes], list[bytes]]:
    """Returns the lines of each side; both are empty where one is missing."""
    if self.targets is not None:
      return self.sources, self.targets
    sides = [side or (b"", b"") for side in split_columns(self.sources)]
    return [source for source, _ in sides], [target for _, target in sides]


def split_columns(lines: Sequence[bytes]) -> list[tuple[bytes, bytes] | None]:
  """Returns the two sides of lines that hold both; None where one lacks.

  Args:
    lines: with their ends.
  """
  columns = (line.rstrip(b"\r\n").split(b"\t", 2) for line in lines)
  return [(c[0], c[1]) if len(c) > 1 else None for c in columns]


def read_blocks(corpus: Corpus) -> Iterator[Block]:
  """Yields all lines of a corpus.

  Raises:
    InputError: if a file cannot be read, or two differ in their lines' number.
  """
  first_pair = number = 0
  for source, target in corpus.file_pairs():
    first_line = _FIRST
    for sources, targets in _line_lists(source, target):
      sides = [side for side in (sources, targets) if side is not None]
      too_long = frozenset().union(*map(_too_long, sides))
      for side in sides:
        for row in too_long:
          side[row] = b"\n"
      yield Block(
        *(number, first_pair, source, target or source),
        *(first_line, sources, targets, too_long),
      )
      number += 1
      first_pair += len(sources)
      first_line += len(sources)


def count_pairs(corpus: Corpus) -> int:
  """Returns how many pairs of lines a corpus has.

  Raises:
    InputError: as `read_blocks`.
  """
  return sum(len(block.sources) for block in read_blocks(corpus))


def _too_long(lines: Sequence[bytes]) -> frozenset[int]:
  """Returns the places of lines that would cost each process their memory."""
  return frozenset(n for n, line in enumerate(lines) if len(line) > LINE_BYTES)


def _line_lists(
  source: str, target: str | None
) -> Iterator[tuple[list[bytes], list[bytes] | None]]:
  """Yields the lines of a pair of files, or of one that has both sides."""
  if target is None:
    with open_lines(source) as stream:
      for number, lines in enumerate(_lists(stream)):
        if not number:
          _refuse_utf16({source: lines})
        yield lines, None
    return
  with open_lines(source) as one, open_lines(target) as other:
    count = 0
    for sources in _lists(one):
      targets = list(itertools.islice(other, len(sources)))
      if not count:
        targets[:1] = map(without_mark, targets[:1])
        _refuse_utf16({source: sources, target: targets})
      count += len(targets)
      if len(targets) < len(sources):
        rest = len(sources) - len(targets) + sum(1 for _ in one)
        raise _mismatch(source, count + rest, target, count)
      yield sources, targets
    if rest := sum(1 for _ in other):
      raise _mismatch(source, count, target, count + rest)


def _lists(stream: IO[bytes]) -> Iterator[list[bytes]]:
  """Yields some lines at a time, without a byte order mark."""
  lines = stream.readlines(BLOCK_BYTES)
  lines[:1] = map(without_mark, lines[:1])
  while lines:
    yield lines
    lines = stream.readlines(BLOCK_BYTES)


def _refuse_utf16(beginnings: Mapping[str, Sequence[bytes]]) -> None:
  """Raises an `InputError` if files begin with UTF-16, naming all that do."""
  found = []
  for path, lines in beginnings.items():
    for number, line in enumerate(lines[:LOOKED_AT], start=1):
      if is_utf16(line, number):
        found.append(f"{path}, line {number}: {conversion(line, number)}")
        break
  if found:
    raise InputError("; ".join(found))


def _mismatch(
  source: str, source_count: int, target: str, target_count: int
) -> InputError:
  return InputError(
    f"{source} has {source_count} lines and {target} {target_count}: line n of "
    "the one must translate line n of the other. Was a blank line dropped from "
    "one of them?"
  )
