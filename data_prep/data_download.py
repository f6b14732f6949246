r"""Downloads parallel text and makes training data of it.

    python -m data_prep.data_download --data_dir=data --raw_dir=raw

does what upstream's command of that name does: WMT17 English to German, with
upstream's vocabulary, shards and names. `--corpus` names another. Whatever is
there already is not done again.
"""

from __future__ import annotations

import os

from absl import flags, logging

from data_prep import data_flags
from data_prep.corpora import Corpus, DataSettings
from data_prep.filters import FilterSettings
from data_prep.preparation import prepare
from data_prep.raw_text import RawText, hold_out
from data_prep.sources import SOURCES, Source
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  has_shards,
  missing_shards,
  read_description,
)
from official_transformer.data.subtokenizer import Subtokenizer
from official_transformer.errors import InputError, describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.storage.file_lock import FileLock, HeldError

FLAGS = flags.FLAGS


def define_data_download_flags() -> None:
  """Defines the command's flags."""
  start_section("data_download")
  define(
    flags.DEFINE_string,
    "data_dir",
    "/tmp/translate_ende",
    "Where the data and the test set are written.",
    short_name="dd",
  )
  define(
    flags.DEFINE_string,
    "raw_dir",
    "/tmp/translate_ende_raw",
    "Where downloads and the text in them are kept.",
    short_name="rd",
  )
  define(
    flags.DEFINE_enum,
    "corpus",
    "wmt17-ende",
    "; ".join(f"{name}: {source.about}" for name, source in SOURCES.items())
    + ".",
    enum_values=sorted(SOURCES),
  )
  define(
    flags.DEFINE_bool,
    "search",
    False,
    "Search for the vocabulary whose size is nearest to the one aimed at. Off: "
    "keep subtokens as frequent as upstream does, if it knows the corpus.",
  )
  define(
    flags.DEFINE_string,
    "source_dir",
    None,
    "A directory in which downloads are looked for first, by their names.",
  )
  data_flags.define_worker_flag()


def main(_: list[str]) -> None:
  """Runs the command."""
  source = SOURCES[FLAGS.corpus]
  if _is_done(source):
    logging.info("the data are in %s", FLAGS.data_dir)
    return
  if FLAGS.source_dir and not os.path.isdir(FLAGS.source_dir):
    raise InputError(f"--source_dir={FLAGS.source_dir} is no directory")
  for name in ("raw_dir", "data_dir"):
    os.makedirs(FLAGS[name].value, exist_ok=True)
  try:
    with FileLock(os.path.join(FLAGS.raw_dir, "data_download.lock")):
      _make(source)
  except HeldError as holder:
    raise InputError(
      f"another run, {holder}, downloads to {FLAGS.raw_dir}; wait for it or "
      "stop it, or name another --raw_dir"
    ) from None


def _make(source: Source) -> None:
  """Downloads a corpus and prepares it."""
  raw = RawText(FLAGS.raw_dir, FLAGS.source_dir)
  logging.info("Step 1/4: the test set")
  raw.find(source.test, FLAGS.data_dir)
  logging.info("Step 2/4: training and development text")
  train, dev = raw.find(source.train), raw.find(source.dev)
  held_out: tuple[str, ...] = ()
  if source.held_out:
    files = [
      os.path.join(directory, f"{FLAGS.corpus}.{tag}.{language}")
      for directory, tag in ((FLAGS.raw_dir, "dev"), (FLAGS.data_dir, "test"))
      for language in source.languages
    ]
    hold_out(train, source.held_out, files[:2], files[2:])
    dev, held_out = Corpus(files[:1], files[1:2]), tuple(files)
  logging.info("Step 3/4: the vocabulary")
  vocab_file = _vocabulary(source, train)
  logging.info("Step 4/4: records")
  settings = DataSettings(
    FLAGS.data_dir,
    vocab_file=vocab_file,
    shards=source.shards,
    filters=FilterSettings(held_out=held_out),
    workers=FLAGS.workers,
    prefix=source.prefix,
  )
  prepare({"train": train, "dev": dev}, settings)


def _is_done(source: Source) -> bool:
  """Returns whether an earlier run has made all of these data."""
  description = read_description(FLAGS.data_dir)
  texts = [text for p in source.test for text in (p.source, p.target)]
  return (
    description is not None
    and all(
      os.path.exists(os.path.join(FLAGS.data_dir, text.plain_name))
      for text in texts
    )
    and description.vocabularies.source.file == source.vocabulary
    and has_shards(FLAGS.data_dir, TRAIN_TAG)
    and not missing_shards(FLAGS.data_dir, TRAIN_TAG)
    and has_shards(FLAGS.data_dir, DEV_TAG)
  )


def _vocabulary(source: Source, train: Corpus) -> str:
  """Returns the path of the vocabulary, made as upstream makes it."""
  path = os.path.join(FLAGS.data_dir, source.vocabulary)
  if os.path.exists(path):
    logging.info("%s is there", path)
    if FLAGS.search:
      logging.warning("--search has no effect: remove it to have another made")
    return path
  made = Subtokenizer.build(
    [*train.sources, *train.targets],
    source.vocab_size,
    source.vocab_size // 100,
    None if FLAGS.search else source.min_count,
  )
  made.save(path)
  logging.info("%s: %d subtokens", path, made.vocab_size)
  return path


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_data_download_flags, describe_failures(main))


if __name__ == "__main__":
  run()
