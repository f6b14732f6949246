"""Writing translations and scores to `--file_out`."""

from __future__ import annotations

from collections.abc import Iterable

from absl import flags, logging

from official_transformer.data import text_files
from official_transformer.decoding.output import json_line, text_lines
from official_transformer.decoding.translator import Translation

FLAGS = flags.FLAGS


def write(lines: Iterable[str]) -> None:
  """Writes lines as they come."""
  count = text_files.write_lines(FLAGS.file_out, lines)
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    logging.info("wrote %d lines to %s", count, FLAGS.file_out)


def write_translations(translations: Iterable[Translation]) -> None:
  """Writes translations in `--output_format`, as they come."""
  if FLAGS.output_format == "text":
    lines = (line for t in translations for line in text_lines(t, FLAGS.n_best))
  else:
    lines = (json_line(t, FLAGS.n_best) for t in translations)
  write(lines)
