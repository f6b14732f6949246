r"""Downloads parallel text and makes training data of it.

    data_download --data_dir=data --raw_dir=raw

does what upstream's command of that name does: WMT17 English to German, with
upstream's vocabulary, shards and names. `--corpus` names another. Whatever is
there already is not done again.
"""

from __future__ import annotations

import dataclasses
import os

from absl import logging

from data_prep.data_options import WorkerOptions
from data_prep.downloading.raw_text import RawText, hold_out
from data_prep.downloading.sources import SOURCES, Source
from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.making import check_directory
from data_prep.encoding.preparation import prepare
from data_prep.reading.corpora import Corpus, DataSettings
from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import flag
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  has_shards,
  missing_shards,
  read_description,
  shard_paths,
)
from official_transformer.errors import InputError, describe_failures
from official_transformer.storage import file_system
from official_transformer.storage.file_lock import FileLock
from official_transformer.text.subtokenizer import Subtokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class DownloadOptions(WorkerOptions):
  """Flags of the corpus and its directories."""

  heading = "data_download"

  data_dir: str = flag(
    "/tmp/translate_ende",
    "Where the data and the test set are written.",
    path=True,
    short_name="dd",
  )
  raw_dir: str = flag(
    "/tmp/translate_ende_raw",
    "Where downloads and the text in them are kept.",
    path=True,
    short_name="rd",
  )
  corpus: str = flag(
    "wmt17-ende",
    "; ".join(f"{name}: {source.about}" for name, source in SOURCES.items())
    + ".",
    choices=tuple(sorted(SOURCES)),
  )
  search: bool = flag(
    False,
    "Search for the vocabulary whose size is nearest to the one aimed at. Off: "
    "keep subtokens as frequent as upstream does, if it knows the corpus.",
  )
  source_dir: str | None = flag(
    None,
    "A directory in which downloads are looked for first, by their names.",
    path=True,
  )
  reverse: bool = flag(
    False,
    "Train in the other direction, from the corpus' target language to its "
    "source language.",
  )

  @property
  def source(self) -> Source:
    """The corpus; its shards have another name in the other direction."""
    source = SOURCES[self.corpus]
    if not self.reverse:
      return source
    return dataclasses.replace(source, prefix=f"{source.prefix}-reversed")


OPTIONS = DownloadOptions


def main(_: list[str]) -> None:
  """Runs the command."""
  options: DownloadOptions = flags_core.begin(OPTIONS)
  for name in ("data_dir", "raw_dir"):
    path = getattr(options, name)
    if file_system.is_remote(path):
      raise InputError(
        f"--{name}={path}: data_download works on this machine's disk; "
        "download there, then run prepare_data with such a --data_dir"
      )
  if _is_done(options):
    logging.info("the data are in %s", options.data_dir)
    return
  if options.source_dir and not os.path.isdir(options.source_dir):
    raise InputError(f"--source_dir={options.source_dir} is no directory")
  for path in (options.raw_dir, options.data_dir):
    os.makedirs(path, exist_ok=True)
  with FileLock(
    os.path.join(options.raw_dir, "data_download.lock"),
    f"another run, {{holder}}, downloads to {options.raw_dir}; wait for it or "
    "stop it, or name another --raw_dir",
  ):
    _make(options)


def _make(options: DownloadOptions) -> None:
  """Downloads a corpus and prepares it."""
  source = options.source
  # Before hours of downloading.
  check_directory(DataSettings(options.data_dir, prefix=source.prefix), [])
  raw = RawText(options.raw_dir, options.source_dir)
  logging.info("Step 1/4: the test set")
  raw.find(source.test, options.data_dir)
  logging.info("Step 2/4: training and development text")
  train, dev = raw.find(source.train), raw.find(source.dev)
  held_out: tuple[str, ...] = ()
  if source.held_out:
    files = [
      os.path.join(directory, f"{options.corpus}.{tag}.{language}")
      for directory, tag in (
        (options.raw_dir, "dev"),
        (options.data_dir, "test"),
      )
      for language in source.languages
    ]
    hold_out(train, source.held_out, files[:2], files[2:])
    dev, held_out = Corpus(files[:1], files[1:2]), tuple(files)
  if options.reverse:
    train = Corpus(train.targets, train.sources)
    dev = Corpus(dev.targets, dev.sources)
  logging.info("Step 3/4: the vocabulary")
  vocab_file = _vocabulary(options, train)
  logging.info("Step 4/4: records")
  settings = DataSettings(
    options.data_dir,
    vocab_file=vocab_file,
    shards=source.shards,
    filters=FilterSettings(held_out=held_out),
    workers=options.workers,
    prefix=source.prefix,
  )
  prepare({"train": train, "dev": dev}, settings)


def _is_done(options: DownloadOptions) -> bool:
  """Returns whether an earlier run has made all of these data."""
  source = options.source
  description = read_description(options.data_dir)
  texts = [text for p in source.test for text in (p.source, p.target)]
  return (
    description is not None
    and all(
      os.path.exists(os.path.join(options.data_dir, text.plain_name))
      for text in texts
    )
    and description.vocabularies.source.file == source.vocabulary
    and has_shards(options.data_dir, TRAIN_TAG)
    and not missing_shards(options.data_dir, TRAIN_TAG)
    # Otherwise they are those of the other direction.
    and all(
      os.path.basename(path).startswith(f"{source.prefix}-{TRAIN_TAG}")
      for path in shard_paths(options.data_dir, TRAIN_TAG)
    )
    and has_shards(options.data_dir, DEV_TAG)
  )


def _vocabulary(options: DownloadOptions, train: Corpus) -> str:
  """Returns the path of the vocabulary, made as upstream makes it."""
  source = options.source
  path = os.path.join(options.data_dir, source.vocabulary)
  if os.path.exists(path):
    logging.info("%s is there", path)
    if options.search:
      logging.warning("--search has no effect: remove it to have another made")
    return path
  made = Subtokenizer.build(
    [*train.sources, *train.targets],
    source.vocab_size,
    source.vocab_size // 100,
    None if options.search else source.min_count,
  )
  made.save(path)
  logging.info("%s: %d subtokens", path, made.vocab_size)
  return path


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
