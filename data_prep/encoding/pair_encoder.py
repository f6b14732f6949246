"""From lines of text to records, block by block.

Encoding a block needs no other block, so that processes of this machine or
workers of a cluster can share the work.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from data_prep.encoding import filters
from data_prep.encoding.augmentation import (
  Augmentation,
  Augmenter,
  Rewritten,
  put_in_place,
)
from data_prep.encoding.filters import FilterSettings, TextFilter, token_reason
from data_prep.encoding.records import framed, serialize_packed
from data_prep.reading.text_blocks import Block, split_columns
from official_transformer.errors import InputError
from official_transformer.model_params import DEFAULT_MAX_LENGTH
from official_transformer.text.foreign_encodings import conversion
from official_transformer.text.sentences import has_several_sentences
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_tokenizers,
)

# Odd, so that each pass has a multiple of its own.
_PASS = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass(frozen=True)
class EncodingPlan:
  """Settings for encoding lines as records; sent to other processes.

  Attributes:
    vocab_files: the vocabularies.
    form: form into which all text is brought.
    filters: which pairs are left out.
    held_out: the lines that no pair may have.
    augmentation: which pairs are rewritten, and how often all are taken.
  """

  vocab_files: VocabFiles
  form: TextForm
  filters: FilterSettings
  held_out: frozenset[str] = frozenset()
  augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)

  def for_development(self) -> EncodingPlan:
    """Returns the plan for development data, which may be held-out text."""
    kept = dataclasses.replace(self.filters, held_out=(), duplicates=False)
    return EncodingPlan(self.vocab_files, self.form, kept)


class EncodedBlock(NamedTuple):
  """The records of a block.

  Attributes:
    records: as they stand in a file.
    pairs: int64 [B], for each pair its number in the corpus, times the number
      of passes, plus the number of its pass; for several pairs on one line,
      that of the first.
    lengths: int32 [B, 2], tokens of source and target, EOS included.
    fingerprints: uint64 [B] of the text, if duplicates are to be found.
    dropped: pairs that were left out, by reason.
    kept_pairs: pairs that were kept, counted once, however many passes there
      are.
    several_sentences: kept pairs whose source has several sentences.
  """

  records: list[bytes]
  pairs: np.ndarray
  lengths: np.ndarray
  fingerprints: np.ndarray
  dropped: Mapping[str, int]
  kept_pairs: int
  several_sentences: int


class CleanPairs(NamedTuple):
  """The pairs of a block that the filters of text let pass.

  Attributes:
    rows: row of each pair in the block.
    sources: in the data's form, without blanks at their ends.
    targets: translations of the sources, in the same form.
    dropped: number of the other pairs, by reason.
    given: the sources of all rows as the file has them.
  """

  rows: list[int]
  sources: list[str]
  targets: list[str]
  dropped: collections.Counter[str]
  given: Sequence[str] = ()


class PairCleaner:
  """Normalises text and applies the filters."""

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
    given, targets, damages = self._decoded(block)
    sources, targets = self._formed(given), self._formed(targets)
    if self._filter.takes_all and all(sources) and all(targets):
      rows = list(range(len(sources)))
      return CleanPairs(rows, sources, targets, dropped, given)
    kept = CleanPairs([], [], [], dropped, given)
    for row, pair in enumerate(zip(sources, targets, strict=True)):
      if reason := damages.get(row) or self._filter.reason(*pair):
        dropped[reason] += 1
        continue
      kept.rows.append(row)
      kept.sources.append(pair[0])
      kept.targets.append(pair[1])
    return kept

  def reason(self, source: str, target: str) -> str | None:
    """Returns why the filters of text leave a pair out; None if they do not."""
    return self._filter.reason(source, target)

  def _formed(self, lines: Sequence[str]) -> list[str]:
    """Returns lines in the data's form, without blanks at their ends."""
    if not self._form.is_plain:
      lines = [self._form.apply(line) for line in lines]
    return [line.strip() for line in lines]

  def _decoded(
    self, block: Block
  ) -> tuple[Sequence[str], Sequence[str], dict[int, str]]:
    """Returns both sides as text, empty if unusable, and reasons by row."""
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
    """Returns decoded lines; one that is not UTF-8 is empty.

    The reason is added to `damages`.
    """
    try:
      # All lines together, which is much faster, if all are UTF-8.
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


class _Columns(NamedTuple):
  """Pairs that have become records, column by column.

  Not one object a pair: Python would look through all of them for garbage.

  Attributes:
    sources: [B], their text.
    targets: [B], its translations.
    records: [B], as they stand in a file.
    lengths: [B], tokens of source and target, EOS included.
  """

  sources: list[str]
  targets: list[str]
  records: list[bytes]
  lengths: list[tuple[int, int]]


class PairEncoder:
  """Makes records of blocks."""

  def __init__(self, plan: EncodingPlan) -> None:
    self._settings = plan.filters
    self._cleaner = PairCleaner(plan.form, plan.filters, plan.held_out)
    self._tokenizers = load_tokenizers(plan.vocab_files)
    self._augmentation = plan.augmentation
    # Training leaves longer lines out by default.
    self._longest_joined = plan.filters.max_tokens or DEFAULT_MAX_LENGTH

  def encode(self, block: Block) -> EncodedBlock:
    """Returns the records of a block's pairs.

    Raises:
      InputError: as `PairCleaner.clean`.
    """
    clean = self._cleaner.clean(block)
    columns, reasons = self._columns(clean.sources, clean.targets)
    clean.dropped.update(reasons.values())
    rows = [row for n, row in enumerate(clean.rows) if n not in reasons]
    passes = self._augmentation.passes
    pairs, order = [], []
    for number in range(passes):
      for place, record in put_in_place(
        range(len(rows)), self._rewritten(columns, len(rows), number)
      ):
        pairs.append((block.first_pair + rows[place]) * passes + number)
        order.append(record)
    return EncodedBlock(
      [columns.records[n] for n in order],
      np.array(pairs, np.int64),
      np.array([columns.lengths[n] for n in order], np.int32).reshape(-1, 2),
      self._fingerprints(columns, order, pairs),
      clean.dropped,
      len(rows),
      # Of the original text, because lower case hides where a sentence begins.
      sum(has_several_sentences(clean.given[row]) for row in rows),
    )

  def _columns(
    self, sources: Sequence[str], targets: Sequence[str]
  ) -> tuple[_Columns, dict[int, str]]:
    """Returns the records of pairs, and why others are left out, by place."""
    packed_sources = self._tokenizers.source.pack_lines(sources)
    packed_targets = self._tokenizers.target.pack_lines(targets)
    columns, reasons = _Columns([], [], [], []), dict[int, str]()
    for place, (source, target, ids, other_ids, sizes) in enumerate(
      zip(
        sources,
        targets,
        packed_sources.packed,
        packed_targets.packed,
        zip(packed_sources.counts, packed_targets.counts, strict=True),
        strict=True,
      )
    ):
      if reason := token_reason(self._settings, *sizes):
        reasons[place] = reason
        continue
      columns.sources.append(source)
      columns.targets.append(target)
      columns.records.append(framed(serialize_packed(ids, other_ids)))
      columns.lengths.append(sizes)
    return columns, reasons

  def _rewritten(
    self, columns: _Columns, pairs: int, number: int
  ) -> Iterator[tuple[Rewritten, int]]:
    """Adds a pass' rewritten pairs to the columns; yields each with its place.

    A pair that filters would leave out after rewriting is not rewritten.

    Args:
      columns: columns of the original pairs, to which rewritten ones are added.
      pairs: how many there are as they are.
      number: number of the pass.
    """
    augmenter = Augmenter(self._augmentation)
    found = [
      one
      for one in augmenter.rewrite(
        columns.sources[:pairs], columns.targets[:pairs], number
      )
      if not self._cleaner.reason(one.source, one.target)
    ]
    new, reasons = self._columns(
      [one.source for one in found], [one.target for one in found]
    )
    kept = (one for place, one in enumerate(found) if place not in reasons)
    first = len(columns.records)
    columns.sources.extend(new.sources)
    columns.targets.extend(new.targets)
    columns.records.extend(new.records)
    columns.lengths.extend(new.lengths)
    for place, one in enumerate(kept, start=first):
      longest = max(columns.lengths[place])
      if one.pairs == 1 or longest <= self._longest_joined:
        yield one, place

  def _fingerprints(
    self, columns: _Columns, order: Sequence[int], pairs: Sequence[int]
  ) -> np.ndarray:
    """Returns fingerprints, which are equal for equal pairs of a pass.

    Args:
      columns: columns of the text.
      order: places in the columns.
      pairs: numbers of the pairs, which contain the number of the pass.
    """
    if not self._settings.duplicates:
      return np.zeros(0, np.uint64)
    passes = np.array(pairs, np.uint64) % np.uint64(self._augmentation.passes)
    found = [fingerprint(columns.sources[n], columns.targets[n]) for n in order]
    # Another pass has the same pairs once more, and should.
    return np.array(found, np.uint64) ^ (passes * _PASS)


def fingerprint(source: str, target: str) -> int:
  """Returns 64 bits that other pairs are unlikely to have.

  Among a hundred million pairs, two that differ share them with a probability
  of 0.03%.
  """
  text = f"{source}\n{target}".encode("utf-8", "surrogatepass")
  return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
