r"""Makes training data from your own parallel text.

    python -m data_prep.prepare_data --train_source=train.en \
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de \
      --data_dir=data

writes a vocabulary, shuffled TFRecord shards and data.json.
"""

from __future__ import annotations

from absl import flags

from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.startup import start_tensorflow

FLAGS = flags.FLAGS


def define_prepare_data_flags() -> None:
  """Defines the command's flags."""
  start_section("prepare_data")
  for side in ("train_source", "train_target", "dev_source", "dev_target"):
    define(
      flags.DEFINE_list,
      side,
      [],
      "UTF-8 text, one sentence a line; plain or .gz, several files "
      "between commas.",
    )
  define(
    flags.DEFINE_string,
    "data_dir",
    None,
    "Where to write.",
    short_name="dd",
    required=True,
  )
  define(
    flags.DEFINE_enum,
    "vocab_type",
    "sentencepiece",
    "The vocabulary to make: a SentencePiece unigram model, or the official "
    "model's subtokens.",
    enum_values=["sentencepiece", "subtoken"],
  )
  define(
    flags.DEFINE_integer,
    "vocab_size",
    8000,
    "Entries of the vocabulary that source and target share. A small corpus "
    "may yield fewer.",
    lower_bound=32,
  )
  define(
    flags.DEFINE_string,
    "vocab_file",
    None,
    "Use this vocabulary instead of making one.",
    short_name="vf",
  )
  define(
    flags.DEFINE_integer,
    "shards",
    8,
    "Files to spread the training data over.",
    lower_bound=1,
    upper_bound=99999,
  )
  define(
    flags.DEFINE_integer,
    "seed",
    1,
    "Of the shuffle.",
    lower_bound=0,
  )


def main(_: list[str]) -> None:
  """Runs the command."""
  from data_prep.corpora import Corpus, DataSettings, check

  corpora = {
    "train": Corpus(FLAGS.train_source, FLAGS.train_target),
    "dev": Corpus(FLAGS.dev_source, FLAGS.dev_target),
  }
  given = {tag: c for tag, c in corpora.items() if c.sources or c.targets}
  settings = DataSettings(
    FLAGS.data_dir,
    FLAGS.vocab_type,
    FLAGS.vocab_size,
    FLAGS.vocab_file,
    FLAGS.shards,
    FLAGS.seed,
  )
  check(given, settings)
  start_tensorflow()
  from data_prep.preparation import prepare

  prepare(given, settings)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_prepare_data_flags, describe_failures(main))


if __name__ == "__main__":
  run()
