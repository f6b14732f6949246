r"""Makes training data from your own parallel text.

    python -m data_prep.prepare_data --train_source=train.en \
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de \
      --data_dir=data

writes a vocabulary, shuffled TFRecord shards and data.json.
"""

from __future__ import annotations

from absl import flags

from data_prep import data_flags
from data_prep.local_engine import make_locally
from data_prep.making import Engine
from data_prep.preparation import prepare
from official_transformer.distribution import beam_pipeline
from official_transformer.errors import InputError, describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section

FLAGS = flags.FLAGS


def define_prepare_data_flags() -> None:
  """Defines the command's flags."""
  data_flags.define_text_flags()
  start_section("prepare_data")
  define(
    flags.DEFINE_string,
    "data_dir",
    None,
    "Where to write.",
    short_name="dd",
    required=True,
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
    "Of the shuffle, and of the sample for the vocabulary.",
    lower_bound=0,
    upper_bound=2**63 - 1,
  )
  data_flags.define_worker_flag()
  flags_core.define_beam()
  data_flags.define_vocabulary_flags()
  data_flags.define_form_flags()
  data_flags.define_filter_flags()


def main(_: list[str]) -> None:
  """Runs the command."""
  corpora, settings = data_flags.read_corpora(), data_flags.read_settings()
  prepare(corpora, settings, _engine())


def _engine() -> Engine:
  """Returns what writes the records, as the flags say."""
  if not FLAGS.runner:
    if FLAGS.beam_options:
      raise InputError("--beam_options are for --runner")
    return make_locally
  if FLAGS.workers:
    raise InputError(
      "--workers are of this machine; how many a pipeline has is said in "
      "--beam_options"
    )
  beam_pipeline.check(FLAGS.runner, FLAGS.beam_options)
  # Beam need not be installed.
  from data_prep import beam_preparation

  return beam_preparation.engine(FLAGS.runner, FLAGS.beam_options)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_prepare_data_flags, describe_failures(main))


if __name__ == "__main__":
  run()
