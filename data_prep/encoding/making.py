"""Data in preparation, and publishing them when they are complete."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from absl import logging

from data_prep.encoding.filters import (
  SOURCE_WITHOUT_TOKENS,
  TARGET_WITHOUT_TOKENS,
)
from data_prep.encoding.pair_encoder import EncodingPlan
from data_prep.encoding.scratch import NAME, Scratch
from data_prep.encoding.shuffle import Order, Statistics
from data_prep.encoding.splitting import SPLIT_FILES
from data_prep.reading.corpora import Corpus, DataSettings
from official_transformer.data.data_directory import (
  DESCRIPTION_FILE,
  DEV_TAG,
  TRAIN_TAG,
  DataDescription,
  is_shard,
  shard_name,
  write_description,
)
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import (
  copy_file,
  final_name,
  sync_name,
)
from official_transformer.text.vocabulary_files import VocabFiles

# Where the development and the test text of a split are, in the data directory.
SPLIT_DIR = "split"
# Marks in the scratch directory.
_PUBLISHING = "publishing"
_PUBLISHED = "published"


class Making(NamedTuple):
  """Data to make; their vocabularies exist already.

  Attributes:
    corpora: corpora by tag; each can be read twice.
    plans: for each corpus, how its lines become records.
    vocab_files: files of the vocabularies, in the scratch directory.
    settings: the user's settings.
    scratch: directory for intermediate files.
    at_the_end: engines add functions to it, which are called when the data are
      in their place, or have failed.
    split_files: the text of a split, in the scratch directory.
  """

  corpora: Mapping[str, Corpus]
  plans: Mapping[str, EncodingPlan]
  vocab_files: VocabFiles
  settings: DataSettings
  scratch: Scratch
  at_the_end: contextlib.ExitStack
  split_files: tuple[str, ...] = ()

  def order(self, tag: str) -> Order:
    """Returns where a corpus' records belong."""
    if tag == TRAIN_TAG:
      return Order(self.settings.shards, self.settings.seed)
    return Order(1, None)

  def shard_names(self, tag: str) -> list[str]:
    """Returns the names of a corpus' files."""
    shards = self.order(tag).shards
    return [
      shard_name(self.settings.prefix, tag, number, shards)
      for number in range(1, shards + 1)
    ]


class Made(NamedTuple):
  """Complete shards beside the data that they are to replace.

  Attributes:
    statistics: statistics of each corpus, by tag.
    shards: paths of shards that are not in their place yet.
  """

  statistics: Mapping[str, Statistics]
  shards: list[str]


# Writes all shards.
Engine = Callable[[Making], Made]


def report(tag: str, found: Statistics) -> None:
  """Logs the statistics of a corpus; refuses an empty one."""
  dropped = ", ".join(f"{n} {why}" for why, n in found.dropped.items())
  if not found.pairs:
    foreign = SOURCE_WITHOUT_TOKENS in found.dropped or (
      TARGET_WITHOUT_TOKENS in found.dropped
    )
    raise InputError(
      f"no pair of the {tag} text is left "
      f"({dropped or 'the files are empty'})"
      + (": is the vocabulary that of another language?" if foreign else "")
    )
  logging.info(
    "%s: %d pairs, %d source and %d target tokens; dropped: %s",
    *(tag, found.pairs, *found.tokens, dropped or "none"),
  )


def publish(
  making: Making, shards: Iterable[str], description: DataDescription
) -> None:
  """Moves finished data to their place, replacing those of an earlier run.

  Everything that needs space on the disk is written before files of the earlier
  run are removed; after that, files are only renamed. On a disk, the same
  command continues an interrupted run; in a remote store it starts again.

  Args:
    making: the data that are being made.
    shards: paths of shards that are not in their place yet, beside the data.
    description: description of the data.

  Raises:
    OSError: if the system refuses.
  """
  data_dir, scratch = making.settings.data_dir, making.scratch
  if file_system.is_remote(data_dir):
    ready = directory_beside(making)
  else:
    ready = scratch.path("ready")
    os.makedirs(ready, exist_ok=True)
  given = making.settings.given_vocabularies
  names = []
  for vocab_file in making.vocab_files.different:
    name = os.path.basename(vocab_file)
    path = os.path.join(data_dir, name)
    if not any(file_system.is_same(path, other) for other in given):
      copy_file(vocab_file, os.path.join(ready, name))
      names.append(name)
  split_names = [os.path.basename(path) for path in making.split_files]
  for path, name in zip(making.split_files, split_names, strict=True):
    copy_file(path, os.path.join(ready, name))
  write_description(ready, description)
  if not is_publishing(scratch):
    _remove_earlier_run(making.settings)
    scratch.mark(_PUBLISHING)
  for path in (*shards, *(os.path.join(ready, name) for name in names)):
    _move(path, data_dir)
  split_dir = os.path.join(data_dir, SPLIT_DIR)
  if split_names:
    file_system.make_directories(split_dir)
  for name in split_names:
    _move(os.path.join(ready, name), split_dir)
  # The description last, when all files that it names are on the disk.
  described = os.path.join(data_dir, DESCRIPTION_FILE)
  sync_name(described)
  _move(os.path.join(ready, DESCRIPTION_FILE), data_dir)
  sync_name(described)
  scratch.mark(_PUBLISHED)


def directory_beside(making: Making) -> str:
  """Returns a new directory beside the data, which is removed at the end.

  In a remote store, no lock excludes other runs, so that the directory needs a
  unique name. If publishing is interrupted, it is kept, because the shards are
  nowhere else then.
  """
  data_dir = file_system.absolute(making.settings.data_dir)
  path = os.path.join(data_dir, NAME, f"shards-{uuid.uuid4().hex}")
  file_system.make_directories(path)
  making.at_the_end.callback(_remove_beside, path, making.scratch)
  return path


def _remove_beside(path: str, scratch: Scratch) -> None:
  """Removes such a directory, and its parent in a remote store."""
  if is_publishing(scratch) and not scratch.has(_PUBLISHED):
    return
  file_system.remove_tree(path)
  around = os.path.dirname(path)
  if file_system.is_remote(around) and not file_system.names_in(around):
    file_system.remove_tree(around)


def is_publishing(scratch: Scratch) -> bool:
  """Returns whether shards in the place of the data are this run's."""
  return scratch.has(_PUBLISHING)


def _move(path: str, directory: str) -> None:
  """Renames a file into another directory of the same disk or store."""
  file_system.rename(path, os.path.join(directory, os.path.basename(path)))


def _remove_earlier_run(settings: DataSettings) -> None:
  """Removes an earlier run's shards, description and split text.

  Shards of two runs must not mix, a description must not name shards of another
  run, and old test text must not have sentences that the new data train on.
  """
  for path in _earlier_split(settings):
    file_system.remove_if_there(path)
  for name in file_system.names_in(settings.data_dir):
    if _is_any_shard(name) or name == DESCRIPTION_FILE:
      file_system.remove_file(os.path.join(settings.data_dir, name))


def _earlier_split(settings: DataSettings) -> list[str]:
  """Returns the paths of split text; there may be none."""
  directory = os.path.join(settings.data_dir, SPLIT_DIR)
  names = (*SPLIT_FILES["dev"], *SPLIT_FILES["test"])
  return [os.path.join(directory, name) for name in names]


def _is_any_shard(name: str) -> bool:
  """Returns whether a file is a shard, or was to become one."""
  whole = final_name(name)
  return is_shard(whole, TRAIN_TAG) or is_shard(whole, DEV_TAG)


def check_directory(settings: DataSettings, paths: Iterable[str]) -> None:
  """Refuses a directory whose files this run would mix in, or remove.

  Args:
    settings: settings of the data to make.
    paths: the text that the run reads.

  Raises:
    InputError: if there are shards of other data, or the text is an earlier
      run's split.
  """
  own = re.compile(
    rf"{re.escape(settings.prefix)}-({TRAIN_TAG}|{DEV_TAG})-\d+-of-\d+"
  )
  for name in file_system.names_in(settings.data_dir):
    if _is_any_shard(name) and not own.fullmatch(final_name(name)):
      raise InputError(
        f"--data_dir={settings.data_dir} has shards of other data, such as "
        f"{name}: name another directory, or remove them"
      )
  split = _earlier_split(settings)
  for path in paths:
    if any(file_system.is_same(path, part) for part in split):
      raise InputError(
        f"{path} is text that an earlier run has split off, which this run "
        "would remove: copy it to another directory, and name the copy"
      )
