"""Prepared data, read through and found usable."""

from __future__ import annotations

import dataclasses
import os

from absl import logging

from official_transformer.data import data_directory
from official_transformer.data.check_cache import (
  ShardState,
  load_check,
  save_check,
  state_of,
)
from official_transformer.data.data_directory import (
  CorpusDescription,
  DataDescription,
)
from official_transformer.data.record_check import (
  RecordCheck,
  both_sizes,
  check_records,
  describe_problems,
)
from official_transformer.data.subword_sampling import SubwordSampler
from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.text.identity import DataIdentity

_SKIP_ADVICE = "or leave such records out with --skip_bad_records"


@dataclasses.dataclass(frozen=True)
class PreparedData:
  """The content of a data directory.

  Attributes:
    data_dir: the directory.
    vocab_sizes: vocabulary sizes of source and target; all ids are below them.
    train: the training pairs.
    dev: the development pairs, if there are any.
    is_whole: whether none of the training data is left out or missing.
    cache_file: path of the file that remembers the check of the training data.
    state: state of the training shards, before they were read.
    is_remembered: whether they were not read, as they have not changed since.
    sampler: draws other segmentations of the text; None keeps those of the
      records.
    several_sentences: share of training pairs with several sentences; None if
      data.json does not have it.
  """

  data_dir: str
  vocab_sizes: tuple[int, int]
  train: RecordCheck
  dev: RecordCheck | None
  is_whole: bool
  cache_file: str | None = None
  state: ShardState = dataclasses.field(default_factory=list)
  is_remembered: bool = False
  sampler: SubwordSampler | None = None
  several_sentences: float | None = None

  def usable(self) -> tuple[int, ...]:
    """Returns a digest of the used records, independent of their place."""
    return tuple(c.index.digest() for c in (self.train, self.dev) if c)

  def lines(self, max_length: int) -> TrainedLines | None:
    """Returns statistics of the training lines; None if no pair is used.

    Args:
      max_length: `max_length` of the training.
    """
    return TrainedLines.of(
      self.train.index.lengths, max_length, self.several_sentences
    )

  def identity(self) -> DataIdentity:
    """Returns the identity of the training data and their order."""
    return DataIdentity(
      self.train.pairs,
      self.train.source_tokens,
      self.train.target_tokens,
      len(self.train.paths),
      f"{self.train.fingerprint:016x}",
    )

  def remember(self) -> None:
    """Spares the next start reading all training data.

    Raises:
      OSError: if the system refuses.
    """
    assert self.cache_file
    if not (self.is_remembered and file_system.exists(self.cache_file)):
      save_check(self.cache_file, self.train, self.vocab_sizes, self.state)

  def change(self) -> str | None:
    """Reads the training data again, and returns the difference.

    The change is worded as an error, with the remedy.
    """
    logging.info("reading %s again: was it changed?", self.data_dir)
    if self._has_others():
      return self._replaced("other shards")
    check = check_records(self.train.paths, self.vocab_sizes)
    new = [p for p in check.problems if p not in self.train.problems]
    if new:
      if self.cache_file:  # It may be damage that changes no size and no time.
        file_system.remove_if_there(self.cache_file)
      return (
        "damaged since the run began:\n"
        f"{describe_problems(new)}\nPrepare the data again, copy them again if "
        f"they are a copy, {_SKIP_ADVICE}; the same command then goes on"
      )
    read = dataclasses.replace(self, train=check).identity()
    return None if read == self.identity() else self._replaced(str(read))

  def _has_others(self) -> bool:
    """Returns whether there are shards of other names, or all are new."""
    there = file_system.names_in(self.data_dir)
    names = {os.path.basename(path) for path in self.train.paths}
    tag = data_directory.TRAIN_TAG
    if any(data_directory.is_shard(n, tag) and n not in names for n in there):
      return True
    if len(names) < 2 or not names <= set(there):
      return False
    now = state_of(self.train.paths)
    sizes = zip(now, self.state, strict=True)
    return all(one[1] != other[1] for one, other in sizes)

  def _replaced(self, by: str) -> str:
    return (
      f"the training data in {self.data_dir} were replaced during the run, by "
      f"{by}; it trains on {self.identity()}. Put those back, and the same "
      "command goes on; to go on with the weights on the new ones, name "
      "another --model_dir, and this one as --init_checkpoint"
    )


def read_prepared_data(
  data_dir: str,
  vocab_size: int | tuple[int, int],
  with_dev: bool,
  skip_bad_records: bool = False,
  cache_file: str | None = None,
  description: DataDescription | None = None,
) -> PreparedData:
  """Reads all records of a data directory.

  Args:
    data_dir: as `prepare_data` or upstream made it.
    vocab_size: as in `check_records`.
    with_dev: whether development data are read; they may be missing.
    skip_bad_records: whether records that cannot be used are reported and left
      out.
    cache_file: file that `PreparedData.remember` writes; it need not exist.
      Training data that have not changed since then are not read again.
    description: content of data.json, if it has been read.

  Raises:
    InputError: if there are no training data; or, with file and record, if a
      record cannot be used and is not to be left out.
  """
  sizes = both_sizes(vocab_size)
  shards = data_directory.shard_paths(
    data_dir, data_directory.TRAIN_TAG, skip_bad_records
  )
  state = state_of(shards)
  remembered = None
  if cache_file:
    remembered = load_check(cache_file, shards, sizes, state)
  train = remembered or check_records(shards, sizes)
  _report(data_directory.TRAIN_TAG, train, skip_bad_records)
  description = description or data_directory.read_description(data_dir)
  dev = None
  if with_dev:
    if data_directory.has_shards(data_dir, data_directory.DEV_TAG):
      dev = read_dev_shards(data_dir, sizes, description, skip_bad_records)
    else:
      logging.warning("no validation loss: no development data in %s", data_dir)
  is_whole = (
    not train.problems
    and not data_directory.missing_shards(data_dir, data_directory.TRAIN_TAG)
    and _agrees(
      data_dir,
      data_directory.TRAIN_TAG,
      description.train if description else None,
      train,
      skip_bad_records,
    )
  )
  return PreparedData(
    data_dir,
    sizes,
    train,
    dev,
    is_whole,
    cache_file,
    state,
    is_remembered=remembered is not None,
    several_sentences=(
      description.train.several_sentences if description else None
    ),
  )


def read_dev_shards(
  data_dir: str,
  sizes: tuple[int, int],
  description: DataDescription | None,
  skip_bad_records: bool = False,
) -> RecordCheck:
  """Reads all records of the development data; see `read_prepared_data`."""
  tag = data_directory.DEV_TAG
  shards = data_directory.shard_paths(data_dir, tag, skip_bad_records)
  check = check_records(shards, sizes)
  _report(tag, check, skip_bad_records)
  part = description.dev if description else None
  _agrees(data_dir, tag, part, check, skip_bad_records)
  return check


def _report(tag: str, check: RecordCheck, skip_bad_records: bool) -> None:
  """Refuses unusable records of a tag's shards, or logs them."""
  if not check.problems:
    return
  number = len(check.problems)
  found = (
    f"{number} bad record{'s' * (number > 1)} in the {tag} data:\n"
    + describe_problems(check.problems)
  )
  if not skip_bad_records:
    raise InputError(
      f"{found}\nPrepare the data again, copy them again if they are a copy, "
      + _SKIP_ADVICE
    )
  logging.warning("leaving out %s", found)
  for problem in check.problems:
    if problem.ends_shard:
      logging.warning("nothing after it can be read: %s", problem)


def _agrees(
  data_dir: str,
  tag: str,
  described: CorpusDescription | None,
  check: RecordCheck,
  skip_bad_records: bool,
) -> bool:
  """Returns whether a tag's shards agree with data.json.

  A shard that was cut off between two records shows nowhere else.
  """
  if described is None or described.lengths == dict(check.lengths):
    return True
  counts = sum(check.lengths.values()), sum(described.lengths.values())
  found = (
    f"the {tag} shards in {data_dir} hold {counts[0]} usable pairs, "
    f"{data_directory.DESCRIPTION_FILE} says {counts[1]}"
  )
  if counts[0] == counts[1]:
    found += ", of other lengths"
  if not skip_bad_records:
    raise InputError(
      f"{found}: a shard is cut off or another's. Prepare the data again, copy "
      f"them again if they are a copy, {_SKIP_ADVICE}"
    )
  logging.warning("%s", found)
  return False
