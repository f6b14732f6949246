"""Reading pairs of lines, and writing what becomes of them to `--file_out`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from absl import flags, logging

from official_transformer.data import text_files
from official_transformer.decoding.output import lines_of
from official_transformer.decoding.translation import Translation
from official_transformer.errors import InputError

FLAGS = flags.FLAGS


def write(lines: Iterable[str]) -> None:
  """Writes lines as they come."""
  count = text_files.write_lines(FLAGS.file_out, lines)
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    logging.info("wrote %d lines to %s", count, FLAGS.file_out)


def write_translations(translations: Iterable[Translation]) -> None:
  """Writes translations in `--output_format`, as they come."""
  write(lines_of(translations, FLAGS.output_format, FLAGS.n_best))


def parallel_lines(source: str, target: str) -> Iterator[tuple[str, str]]:
  """Yields line n of both files; refuses files of different lengths."""
  lines = itertools.zip_longest(
    text_files.read_lines(source, FLAGS.invalid_utf8 == "replace"),
    text_files.read_lines(target, FLAGS.invalid_utf8 == "replace"),
  )
  for number, (first, second) in enumerate(lines, start=1):
    if first is None or second is None:
      shorter, longer = (source, target) if first is None else (target, source)
      raise InputError(
        f"{shorter} ends after line {number - 1}, {longer} goes on: line n of "
        "the one must belong to line n of the other"
      )
    yield first, second
