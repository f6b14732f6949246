"""From parallel text to a vocabulary, shuffled shards and data.json.

The text is read once for the vocabulary, unless there is one, and once for the
records; processes encode its blocks and then gather the shards. All that is
made on the way lies in one directory beside the data, which a later run with
the same command goes on from; the data themselves change only at the end.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import os
import pathlib
import shutil
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
from absl import logging

from data_prep.corpora import Corpus, DataSettings, check, state_of
from data_prep.filters import (
  SOURCE_WITHOUT_TOKENS,
  TARGET_WITHOUT_TOKENS,
  read_held_out,
)
from data_prep.pair_encoder import EncodingPlan, PairEncoder
from data_prep.scratch import Scratch, scratch_for
from data_prep.shuffle import (
  Order,
  ShuffledCorpus,
  Statistics,
  find_duplicates,
  is_written,
  write_block,
)
from data_prep.text_blocks import Block, read_blocks
from data_prep.vocabularies import make_vocabularies
from data_prep.workers import Workers
from official_transformer.data.data_directory import (
  DESCRIPTION_FILE,
  DEV_TAG,
  TRAIN_TAG,
  CorpusDescription,
  DataDescription,
  is_shard,
  shard_name,
  write_description,
)
from official_transformer.data.text_files import STANDARD_STREAM, open_lines
from official_transformer.data.vocabulary_files import VocabFiles, describe
from official_transformer.errors import InputError, RunError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, copy_file

# Up to here one process gathers the shards sooner than others are started.
_FEW_BYTES = 1 << 24
# Of the way in which all this is computed: what another has left is of no use.
_FORMAT = 1
# What a system says of a full disk, or of a user's share of it.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_PUBLISHING = "publishing"
_SAID_EVERY = 30.0  # Seconds.


def prepare(corpora: dict[str, Corpus], settings: DataSettings) -> None:
  """Makes vocabulary, shards and data.json; logs what came of it.

  Args:
    corpora: `train` and, if there is one, `dev`.
    settings: what to make of them.

  Raises:
    InputError: if a file is missing, or a pair of files does not match.
    RunError: if the disk is full; what has been done is kept.
    OSError: if the system refuses; likewise.
  """
  check(corpora, settings)
  _check_directory(settings)
  file_system.make_directories(settings.data_dir)
  try:
    _prepare(corpora, settings)
  except OSError as error:
    if error.errno not in _NO_ROOM:
      raise
    raise RunError(
      f"no room is left for {settings.data_dir} ({error.strerror}): besides "
      "the data there must be room for them once more, while they are made. "
      "What is done stays there; the same command goes on"
    ) from None


def _prepare(corpora: dict[str, Corpus], settings: DataSettings) -> None:
  """Makes data in a directory that is there."""
  with scratch_for(settings.data_dir, _plan(corpora, settings)) as scratch:
    if scratch.is_resumed:
      logging.info("going on with what is in %s", scratch.directory)
    corpora = {tag: _at_hand(corpora[tag], scratch) for tag in corpora}
    held_out = read_held_out(settings.filters.held_out, settings.form)
    vocab_files = make_vocabularies(
      corpora[TRAIN_TAG], settings, held_out, scratch
    )
    vocabularies = describe(vocab_files)
    for vocabulary in dict.fromkeys((vocabularies.source, vocabularies.target)):
      logging.info(
        "vocabulary %s: %d entries",
        os.path.join(settings.data_dir, vocabulary.file),
        vocabulary.size,
      )
    plan = EncodingPlan(vocab_files, settings.form, settings.filters, held_out)
    plans = {TRAIN_TAG: plan, DEV_TAG: plan.for_development()}
    # The development data first: what is wrong with them is found at once.
    encoded = {
      tag: _encode(tag, corpora[tag], plans[tag], settings, scratch)
      for tag in sorted(corpora)
    }
    _publish(encoded, vocab_files, settings, scratch)
    write_description(
      settings.data_dir,
      DataDescription(
        vocabularies,
        encoded[TRAIN_TAG].description(),
        encoded[DEV_TAG].description() if DEV_TAG in encoded else None,
        settings.form,
        settings.filters.to_json(),
      ),
    )


def _plan(corpora: dict[str, Corpus], settings: DataSettings) -> Any:
  """Returns all that the result depends on; None if it cannot be told."""
  paths = [path for corpus in corpora.values() for path in corpus.paths]
  files = [*paths, *settings.filters.held_out]
  files += settings.given_vocabularies
  if not all(map(file_system.is_file, files)):
    return None
  return {
    "format": _FORMAT,
    "settings": settings.to_json(),
    "corpora": {tag: dataclasses.asdict(c) for tag, c in corpora.items()},
    "files": [state_of(path) for path in files],
    "sentencepiece": sentencepiece.__version__,
    "start of the system": _start_of_system(),
  }


def _start_of_system() -> str | None:
  """Returns what is another after a crash of the machine, if it can be told.

  What blocks hold is not forced to the disk, and may not be there after one.
  """
  try:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
  except OSError:
    return None


def _at_hand(corpus: Corpus, scratch: Scratch) -> Corpus:
  """Returns a corpus that can be read twice: pipes become files."""
  if all(map(file_system.is_file, corpus.paths)):
    return corpus

  def at_hand(path: str) -> str:
    if file_system.is_file(path):
      return path
    name = "standard-input" if path == STANDARD_STREAM else path
    copied = scratch.path(name.strip("/").replace("/", "-") + ".copy")
    with open_lines(path) as stream, open(copied, "wb") as copy:
      shutil.copyfileobj(stream, copy)
    return copied

  return Corpus(
    *(
      [at_hand(path) for path in paths]
      for paths in (corpus.sources, corpus.targets, corpus.pairs)
    )
  )


class _Encoded(NamedTuple):
  """A corpus whose records are made, in the order of its blocks.

  Attributes:
    tag: `train` or `dev`.
    blocks: of its records.
    statistics: what it holds.
  """

  tag: str
  blocks: ShuffledCorpus
  statistics: Statistics

  def description(self) -> CorpusDescription:
    """Returns the corpus' part of data.json."""
    found = self.statistics
    return CorpusDescription(
      found.pairs, *found.tokens, dict(found.dropped), dict(found.histogram)
    )


def _encode(
  tag: str,
  corpus: Corpus,
  plan: EncodingPlan,
  settings: DataSettings,
  scratch: Scratch,
) -> _Encoded:
  """Makes one corpus' records, as far as they are not there."""
  order = (
    Order(settings.shards, settings.seed)
    if tag == TRAIN_TAG
    else Order(1, None)
  )
  paths: list[str] = []

  def to_do() -> Iterator[tuple[str, Block]]:
    for block in read_blocks(corpus):
      paths.append(scratch.path(f"{tag}-{block.number:06d}"))
      if not is_written(paths[-1]):
        yield paths[-1], block

  pairs = 0
  began = said = time.monotonic()
  for read in Workers(settings.workers).each(
    functools.partial(_BlockWriter, plan, order), _BlockWriter.write, to_do()
  ):
    pairs += read
    if time.monotonic() - said > _SAID_EVERY:
      said = time.monotonic()
      logging.info(
        "%s: %d pairs read, %d a second", tag, pairs, pairs / (said - began)
      )
  blocks = ShuffledCorpus(scratch.path(tag), order, paths)
  duplicates = np.zeros(0, np.int64)
  if plan.filters.duplicates and paths:
    duplicates = find_duplicates(paths)
  statistics = blocks.join_indices(duplicates)
  _report(tag, statistics)
  return _Encoded(tag, blocks, statistics)


class _BlockWriter:
  """What a process needs to make the records of blocks."""

  def __init__(self, plan: EncodingPlan, order: Order) -> None:
    self._encoder = PairEncoder(plan)
    self._order = order

  def write(self, item: tuple[str, Block]) -> int:
    """Writes a block's records; returns the number of pairs it has."""
    path, block = item
    write_block(path, self._encoder.encode(block), self._order)
    return len(block.sources)


def _report(tag: str, found: Statistics) -> None:
  """Says what a corpus holds; refuses one that holds nothing."""
  dropped = ", ".join(f"{n} {why}" for why, n in found.dropped.items())
  if not found.pairs:
    foreign = SOURCE_WITHOUT_TOKENS in found.dropped or (
      TARGET_WITHOUT_TOKENS in found.dropped
    )
    raise InputError(
      f"no pair of --{tag}_source and --{tag}_target is left "
      f"({dropped or 'the files are empty'})"
      + (": is the vocabulary that of another language?" if foreign else "")
    )
  logging.info(
    "%s: %d pairs, %d source and %d target tokens; dropped: %s",
    *(tag, found.pairs, *found.tokens, dropped or "none"),
  )


def _publish(
  encoded: dict[str, _Encoded],
  vocab_files: VocabFiles,
  settings: DataSettings,
  scratch: Scratch,
) -> None:
  """Puts the vocabularies and the shards in the place of an earlier run's."""
  data_dir = settings.data_dir
  if not scratch.has(_PUBLISHING):
    _remove_earlier_run(settings)
    scratch.mark(_PUBLISHING)
  given = settings.given_vocabularies
  for vocab_file in vocab_files.different:
    path = os.path.join(data_dir, os.path.basename(vocab_file))
    if not any(file_system.is_same(path, other) for other in given):
      copy_file(vocab_file, path)
  is_remote = file_system.is_remote(data_dir)
  for part in encoded.values():
    blocks = part.blocks
    shards = blocks.order.shards
    todo = []
    for shard in range(shards):
      name = shard_name(settings.prefix, part.tag, shard + 1, shards)
      final = os.path.join(data_dir, name)
      if not file_system.exists(final):
        local = scratch.path(name) if is_remote else final
        todo.append((shard, local, final))
    few = part.statistics.bytes < _FEW_BYTES
    for local, final in Workers(1 if few else settings.workers).each(
      functools.partial(
        ShuffledCorpus, blocks.path, blocks.order, blocks.block_paths
      ),
      _write_shard,
      todo,
    ):
      if local != final:
        copy_file(local, final)
        os.remove(local)


def _write_shard(
  blocks: ShuffledCorpus, item: tuple[int, str, str]
) -> tuple[str, str]:
  shard, local, final = item
  blocks.write_shard(shard, local)
  return local, final


def _remove_earlier_run(settings: DataSettings) -> None:
  """Removes an earlier run's shards and description.

  Shards of two runs must not mix, nor a description speak of others' shards.
  """
  for name in file_system.names_in(settings.data_dir):
    if _is_any_shard(name) or name == DESCRIPTION_FILE:
      file_system.remove_file(os.path.join(settings.data_dir, name))


def _is_any_shard(name: str) -> bool:
  """Returns whether a file is a shard, or was to become one."""
  whole = name.removesuffix(INCOMPLETE)
  return is_shard(whole, TRAIN_TAG) or is_shard(whole, DEV_TAG)


def _check_directory(settings: DataSettings) -> None:
  """Refuses a directory with others' shards: they would be read with ours."""
  for name in file_system.names_in(settings.data_dir):
    if _is_any_shard(name) and not name.startswith(f"{settings.prefix}-"):
      raise InputError(
        f"--data_dir={settings.data_dir} has shards of other data, such as "
        f"{name}: name another directory, or remove them"
      )
