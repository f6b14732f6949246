"""Writing translations and scores to `--file_out`."""

from __future__ import annotations

from collections.abc import Iterable

from absl import flags, logging

from official_transformer.data import text_files
from official_transformer.decoding.output import lines_of
from official_transformer.decoding.translator import Translation

FLAGS = flags.FLAGS


def write(lines: Iterable[str]) -> None:
  """Writes lines as they come."""
  count = text_files.write_lines(FLAGS.file_out, lines)
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    logging.info("wrote %d lines to %s", count, FLAGS.file_out)


def write_translations(translations: Iterable[Translation]) -> None:
  """Writes translations in `--output_format`, as they come."""
  write(lines_of(translations, FLAGS.output_format, FLAGS.n_best))
