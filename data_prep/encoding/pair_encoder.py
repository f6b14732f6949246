"""From lines of text to records: what every process does with its blocks.

Nothing here knows of other blocks, or of who runs it: processes of this machine
or workers of a cluster.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from data_prep.encoding import filters
from data_prep.encoding.filters import FilterSettings, TextFilter, token_reason
from data_prep.encoding.records import framed, serialize_packed
from data_prep.reading.text_blocks import Block, split_columns
from official_transformer.errors import InputError
from official_transformer.text.foreign_encodings import conversion
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_tokenizers,
)


@dataclasses.dataclass(frozen=True)
class EncodingPlan:
  """How lines become records; it travels to other processes.

  Attributes:
    vocab_files: the vocabularies.
    form: what is done to all text.
    filters: which pairs are left out.
    held_out: the lines that no pair may have.
  """

  vocab_files: VocabFiles
  form: TextForm
  filters: FilterSettings
  held_out: frozenset[str] = frozenset()

  def for_development(self) -> EncodingPlan:
    """Returns that of data to measure with, which may be held out text."""
    kept = dataclasses.replace(self.filters, held_out=(), duplicates=False)
    return dataclasses.replace(self, filters=kept, held_out=frozenset())


class EncodedBlock(NamedTuple):
  """The records of a block.

  Attributes:
    records: as they stand in a file.
    pairs: int64 [B], each one's number in the corpus.
    lengths: int32 [B, 2], tokens of source and target, EOS included.
    fingerprints: uint64 [B] of the text, if duplicates are to be found.
    dropped: pairs that were left out, by reason.
  """

  records: list[bytes]
  pairs: np.ndarray
  lengths: np.ndarray
  fingerprints: np.ndarray
  dropped: Mapping[str, int]


class CleanPairs(NamedTuple):
  """The pairs of a block that the filters of text let pass.

  Attributes:
    rows: of each, where it stands in the block.
    sources: in the data's form, without blanks at their ends.
    targets: likewise.
    dropped: the others, by reason.
  """

  rows: list[int]
  sources: list[str]
  targets: list[str]
  dropped: collections.Counter[str]


class PairCleaner:
  """Brings text into form, and leaves out what the filters name."""

  def __init__(
    self,
    form: TextForm,
    settings: FilterSettings,
    held_out: frozenset[str] = frozenset(),
  ) -> None:
    self._form = form
    self._settings = settings
    self._filter = TextFilter(settings, held_out)

  def clean(self, block: Block) -> CleanPairs:
    """Returns a block's pairs.

    Raises:
      InputError: if a line is not UTF-8, unless such pairs are dropped.
    """
    dropped: collections.Counter[str] = collections.Counter()
    sources, targets, damages = self._decoded(block)
    sources, targets = self._formed(sources), self._formed(targets)
    if self._filter.takes_all and all(sources) and all(targets):
      return CleanPairs(list(range(len(sources))), sources, targets, dropped)
    kept = CleanPairs([], [], [], dropped)
    for row, pair in enumerate(zip(sources, targets, strict=True)):
      if reason := damages.get(row) or self._filter.reason(*pair):
        dropped[reason] += 1
        continue
      kept.rows.append(row)
      kept.sources.append(pair[0])
      kept.targets.append(pair[1])
    return kept

  def _formed(self, lines: Sequence[str]) -> list[str]:
    """Returns lines in the data's form, without blanks at their ends."""
    if not self._form.is_plain:
      lines = [self._form.apply(line) for line in lines]
    return [line.strip() for line in lines]

  def _decoded(
    self, block: Block
  ) -> tuple[Sequence[str], Sequence[str], dict[int, str]]:
    """Returns both sides; where there is none, it is empty, and noted why."""
    damages = dict.fromkeys(block.too_long, filters.LONG_LINE)
    source_lines, target_lines = block.sources, block.targets
    if target_lines is None:
      sides = split_columns(block.sources)
      for row, columns in enumerate(sides):
        if columns is None and block.sources[row].strip():
          damages[row] = filters.NOT_TWO_COLUMNS
      source_lines = [side[0] + b"\n" if side else b"\n" for side in sides]
      target_lines = [side[1] + b"\n" if side else b"\n" for side in sides]
    sources = self._lines(source_lines, block.source_name, block, damages)
    targets = self._lines(target_lines, block.target_name, block, damages)
    return sources, targets, damages

  def _lines(
    self,
    lines: Sequence[bytes],
    name: str,
    block: Block,
    damages: dict[int, str],
  ) -> Sequence[str]:
    """Returns decoded lines; those that are not UTF-8 are empty, and noted."""
    try:
      # All together, which is much faster, if there is nothing to be told.
      text = b"".join(lines).decode("utf-8")
    except UnicodeDecodeError:
      decoded = []
      for row, line in enumerate(lines):
        try:
          decoded.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
          self._refuse(name, block.first_line + row, error)
          damages[row] = filters.NOT_UTF8
          decoded.append("")
      return decoded
    return text.split("\n")[: len(lines)]

  def _refuse(self, name: str, line: int, error: UnicodeDecodeError) -> None:
    """Raises an `InputError` for a line, unless such pairs are dropped."""
    if self._settings.invalid_utf8 != "drop":
      raise InputError(
        f"{name}, line {line}: not UTF-8 (byte {error.start + 1} of the line). "
        f"{conversion(error.object, line)}, or leave such pairs out with "
        "--invalid_utf8=drop"
      )


class PairEncoder:
  """Makes records of blocks."""

  def __init__(self, plan: EncodingPlan) -> None:
    self._settings = plan.filters
    self._cleaner = PairCleaner(plan.form, plan.filters, plan.held_out)
    self._tokenizers = load_tokenizers(plan.vocab_files)

  def encode(self, block: Block) -> EncodedBlock:
    """Returns the records of a block's pairs.

    Raises:
      InputError: as `PairCleaner.clean`.
    """
    clean = self._cleaner.clean(block)
    sources = self._tokenizers.source.pack_lines(clean.sources)
    targets = self._tokenizers.target.pack_lines(clean.targets)
    records, rows, lengths = [], [], []
    for row, source, target, sizes in zip(
      clean.rows,
      sources.packed,
      targets.packed,
      zip(sources.counts, targets.counts, strict=True),
      strict=True,
    ):
      if reason := token_reason(self._settings, *sizes):
        clean.dropped[reason] += 1
        continue
      records.append(framed(serialize_packed(source, target)))
      rows.append(row)
      lengths.append(sizes)
    return EncodedBlock(
      records,
      np.array(rows, np.int64) + block.first_pair,
      np.array(lengths, np.int32).reshape(-1, 2),
      self._fingerprints(clean, set(rows)),
      clean.dropped,
    )

  def _fingerprints(self, clean: CleanPairs, rows: set[int]) -> np.ndarray:
    """Returns what equal pairs have in common."""
    if not self._settings.duplicates:
      return np.zeros(0, np.uint64)
    return np.array(
      [
        fingerprint(source, target)
        for row, source, target in zip(*clean[:3], strict=True)
        if row in rows
      ],
      np.uint64,
    )


def fingerprint(source: str, target: str) -> int:
  """Returns 64 bits that other pairs are unlikely to have.

  Among a hundred million pairs, two that differ share them with a probability
  of 0.03%.
  """
  text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
  return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
