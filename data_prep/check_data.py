r"""Tells what is in parallel text, or in prepared data, before a training.

    python -m data_prep.check_data --train_source=train.en \
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de
    python -m data_prep.check_data --data_dir=data

Its exit status is 1 if something would break a training.
"""

from __future__ import annotations

from absl import flags

from data_prep import data_flags
from data_prep.data_report import Report, check_drawing
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError, describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.storage.standard_streams import show_result

FLAGS = flags.FLAGS

# Flags that prepared data leave nothing for.
_OF_TEXT = (
  *("vocab_sizes", "vocab_file", "sample", "workers"),
  *("normalize", "lowercase"),
)


def define_check_data_flags() -> None:
  """Defines the command's flags."""
  data_flags.define_text_flags()
  start_section("check_data")
  define(
    flags.DEFINE_string,
    "data_dir",
    None,
    "Prepared data to check, in the place of text.",
    short_name="dd",
  )
  define(
    flags.DEFINE_list,
    "vocab_sizes",
    ["2000", "8000", "32000"],
    "Vocabularies to try on the text, SentencePiece's, by their entries.",
  )
  define(
    flags.DEFINE_string,
    "vocab_file",
    None,
    "An existing vocabulary to try on the text, in the place of those.",
    short_name="vf",
  )
  _define_bounds()
  data_flags.define_worker_flag()
  data_flags.define_form_flags()


def _define_bounds() -> None:
  """Defines what is odd, and how much of it is shown."""
  define(
    flags.DEFINE_integer,
    "max_tokens",
    256,
    "A side of more tokens counts as too long; training leaves out what is "
    "over its --max_length.",
    lower_bound=2,
  )
  define(
    flags.DEFINE_float,
    "max_length_ratio",
    3.0,
    "A pair with a side of more than so many times the other's tokens counts "
    "as unequal.",
    lower_bound=1.0,
  )
  define(
    flags.DEFINE_integer,
    "sample",
    50_000,
    "Pairs that vocabularies are made from and tried on, drawn evenly.",
    lower_bound=1,
  )
  define(
    flags.DEFINE_integer,
    "worst",
    5,
    "Pairs to show of each kind of oddity.",
    lower_bound=0,
  )
  define(
    flags.DEFINE_string,
    "plot_dir",
    None,
    "Where to draw the histograms, as PNG (extra [plots]).",
  )


def main(_: list[str]) -> int:
  """Runs the command; returns its exit status."""
  corpora = data_flags.read_corpora()
  if bool(corpora) == bool(FLAGS.data_dir):
    raise InputError(
      "name text, with --train_source and --train_target, or prepared data, "
      "with --data_dir"
    )
  if FLAGS.data_dir and (
    given := [f"--{name}" for name in _OF_TEXT if FLAGS[name].present]
  ):
    raise InputError(
      f"{', '.join(given)}: for text; prepared data have a vocabulary and a "
      "form of their own"
    )
  if FLAGS.vocab_file:
    load_tokenizer(FLAGS.vocab_file)  # Raises if it is none.
  if FLAGS.plot_dir:
    check_drawing(FLAGS.plot_dir)
  report = Report(FLAGS.max_tokens, FLAGS.max_length_ratio, FLAGS.worst)
  if FLAGS.data_dir:
    # Records are read with TensorFlow, which takes its time to be imported.
    start_tensorflow()
    from data_prep.prepared_check import check_prepared

    check_prepared(FLAGS.data_dir, report)
  else:
    from data_prep.raw_check import RawCheck, RawRequest

    RawCheck(
      report,
      RawRequest(
        data_flags.read_form(),
        [_size(text) for text in FLAGS.vocab_sizes if text],
        FLAGS.vocab_file,
        FLAGS.sample,
      ),
      FLAGS.workers,
    ).run(corpora)
  show_result(report.text())
  if FLAGS.plot_dir:
    report.draw(FLAGS.plot_dir)
  return 1 if report.problems else 0


def _size(text: str) -> int:
  if not text.isdigit() or int(text) < 32:
    raise InputError(
      f"--vocab_sizes: {text!r} is no number of entries; at least 32, between "
      "commas"
    )
  return int(text)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_check_data_flags, describe_failures(main))


if __name__ == "__main__":
  run()
