"""From parallel text to a vocabulary, shuffled shards and data.json.

The text is read once for the vocabulary, unless one is given, and once for the
records; processes encode its blocks, and then gather the shards. Intermediate
files are in one directory beside the data, and a later run of the same command
continues with them; the data themselves change only at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import importlib.metadata
import itertools
import os
import pathlib
import shutil
from typing import Any

import sentencepiece
from absl import logging

from data_prep.encoding.filters import read_held_out
from data_prep.encoding.local_engine import make_locally
from data_prep.encoding.making import (
  Engine,
  Making,
  check_directory,
  publish,
)
from data_prep.encoding.pair_encoder import EncodingPlan, PairCleaner
from data_prep.encoding.scratch import Scratch, scratch_for
from data_prep.encoding.shuffle import Statistics
from data_prep.encoding.splitting import split_corpus
from data_prep.encoding.vocabularies import make_vocabularies
from data_prep.reading.corpora import Corpus, DataSettings, check, state_of
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  CorpusDescription,
  DataDescription,
)
from official_transformer.errors import RunError
from official_transformer.storage import file_system
from official_transformer.text.sentencepiece_model import (
  REWRITES,
  rewriting_rule,
)
from official_transformer.text.text_files import STANDARD_STREAM, open_lines
from official_transformer.text.vocabulary_files import (
  LoadedVocabularies,
  load_vocabularies,
)

# Version of the intermediate files; those of other versions are not used.
_FORMAT = 3
# Errors of a full disk, or of a user's full quota.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def prepare(
  corpora: dict[str, Corpus],
  settings: DataSettings,
  engine: Engine = make_locally,
) -> None:
  """Makes vocabulary, shards and data.json; logs their statistics.

  Args:
    corpora: `train` and, if there is one, `dev`.
    settings: settings of the data to make.
    engine: writes the shards.

  Raises:
    InputError: if a file is missing, or a pair of files does not match.
    RunError: if the disk is full; finished files are kept.
    OSError: if the system refuses; finished files are kept.
  """
  check(corpora, settings)
  read = [path for corpus in corpora.values() for path in corpus.paths]
  check_directory(settings, [*read, *settings.filters.held_out])
  file_system.make_directories(settings.data_dir)
  try:
    _prepare(corpora, settings, engine)
  except OSError as error:
    if error.errno not in _NO_ROOM:
      raise
    raise RunError(
      f"no room is left for {settings.data_dir} ({error.strerror}): besides "
      "earlier data there must be room for the new ones twice, while they are "
      "made. Earlier data are as they were; the same command, on this disk, "
      "goes on with what is done"
    ) from None


def _prepare(
  corpora: dict[str, Corpus], settings: DataSettings, engine: Engine
) -> None:
  """Makes data in a directory that exists."""
  with (
    scratch_for(settings.data_dir, _plan(corpora, settings)) as scratch,
    contextlib.ExitStack() as at_the_end,
  ):
    if scratch.is_resumed:
      logging.info("continuing with the files in %s", scratch.directory)
    corpora = {tag: _at_hand(tag, corpora[tag], scratch) for tag in corpora}
    # Once: standard input cannot be read again.
    held_out = read_held_out(settings.filters.held_out, settings.form)
    split: tuple[str, ...] = ()
    if settings.split:
      cleaner = PairCleaner(settings.form, settings.filters, held_out)
      made = split_corpus(corpora[TRAIN_TAG], settings.split, cleaner, scratch)
      split = made.files
      held_out |= read_held_out(split, settings.form)
      if made.dev.paths:
        corpora[DEV_TAG] = made.dev
    vocab_files = make_vocabularies(
      corpora[TRAIN_TAG], settings, held_out, scratch
    )
    loaded = load_vocabularies(vocab_files)
    vocabularies = loaded.identity
    _tell_vocabularies(loaded, settings.data_dir)
    plan = EncodingPlan(
      vocab_files,
      settings.form,
      settings.filters,
      held_out,
      settings.augmentation,
    )
    plans = {TRAIN_TAG: plan, DEV_TAG: plan.for_development()}
    making = Making(
      *(corpora, plans, vocab_files, settings, scratch, at_the_end, split)
    )
    found, shards = engine(making)
    description = DataDescription(
      vocabularies,
      _description(found[TRAIN_TAG]),
      _description(found[DEV_TAG]) if DEV_TAG in found else None,
      settings.form,
      settings.filters.to_json(),
      settings.augmentation.to_json(),
    )
    publish(making, shards, description)


def _description(found: Statistics) -> CorpusDescription:
  """Returns a corpus' part of data.json."""
  return CorpusDescription(
    found.pairs,
    *found.tokens,
    dict(sorted(found.dropped.items())),
    dict(sorted(found.histogram.items())),
    round(found.several_sentences / max(found.kept_pairs, 1), 4),
  )


def _plan(corpora: dict[str, Corpus], settings: DataSettings) -> Any:
  """Returns everything that the result depends on; None if unknown."""
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
    "sacremoses": _version_of("sacremoses"),
    "start of the system": _start_of_system(),
  }


def _version_of(package: str) -> str | None:
  """Returns the version of a package; None if it is not installed."""
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return None


def _start_of_system() -> str | None:
  """Returns an identifier that changes when the machine restarts, if known.

  Intermediate files are not flushed to the disk, and a power cut may lose them.
  """
  try:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
  except OSError:
    return None


def _at_hand(tag: str, corpus: Corpus, scratch: Scratch) -> Corpus:
  """Returns a corpus that can be read twice: pipes become files."""
  if all(map(file_system.is_file, corpus.paths)):
    return corpus

  numbers = itertools.count()

  def at_hand(path: str) -> str:
    if file_system.is_file(path):
      return path
    name = "standard-input" if path == STANDARD_STREAM else path
    # Pipes of different directories may have one name.
    name = f"{tag}-{next(numbers)}-{os.path.basename(name)}.copy"
    copied = scratch.path(name)
    with open_lines(path) as stream, open(copied, "wb") as copy:
      shutil.copyfileobj(stream, copy)
    return copied

  return corpus.mapped(at_hand)


def _tell_vocabularies(loaded: LoadedVocabularies, data_dir: str) -> None:
  """Logs the sizes of vocabularies, and whether they rewrite text."""
  sides = zip(
    loaded.files,
    (loaded.identity.source, loaded.identity.target),
    strict=True,
  )
  for path, vocabulary in dict(sides).items():
    name = os.path.join(data_dir, vocabulary.file)
    logging.info("vocabulary %s: %d entries", name, vocabulary.size)
    if rule := rewriting_rule(loaded.contents[path]):
      logging.info("%s %s", name, REWRITES.format(rule))
