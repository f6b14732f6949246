"""What `--mode=predict` does: translates a sentence, files, or typed lines."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from absl import flags, logging

from official_transformer.commands.checks import runs_as_pipeline
from official_transformer.commands.flag_readers import answers_lines
from official_transformer.commands.loading import load_translator
from official_transformer.commands.output import write_translations
from official_transformer.commands.search_flag_readers import requests
from official_transformer.data import text_files
from official_transformer.decoding.progress import Progress
from official_transformer.decoding.translation import BLANK, Translation
from official_transformer.errors import InputError
from official_transformer.hardware.startup import graphs_as_they_are

FLAGS = flags.FLAGS


def predict() -> None:
  """Translates what the flags name."""
  if runs_as_pipeline():
    # Beam need not be installed.
    from official_transformer.commands.bulk_predict import bulk_predict

    bulk_predict()
  elif "trace_dir" in FLAGS and FLAGS.trace_dir:  # translate.py has it not.
    _trace()
  elif FLAGS.text is not None:
    _translate_text()
  elif answers_lines():
    _answer()
  else:
    _translate_file()


def _translate_text() -> None:
  """Translates `--text`, the only sentence of this process."""
  with graphs_as_they_are():
    translator = load_translator(FLAGS.n_best, one_by_one=True)
    (line,) = requests([FLAGS.text])
    write_translations(iter([translator.translate_line(line)]))


def _trace() -> None:
  """Translates line by line, and tells how each search went."""
  # matplotlib need not be installed.
  from official_transformer.commands.trace import TraceWriter

  if FLAGS.text is not None:
    lines = iter([FLAGS.text])
  else:
    lines = text_files.read_lines(FLAGS.file, FLAGS.invalid_utf8 == "replace")
  translator = load_translator(FLAGS.n_best, one_by_one=True)
  writer = TraceWriter(translator)

  def translations() -> Iterator[Translation]:
    for line in lines:
      writer.write(line)
      yield translator.translate_line(line)

  write_translations(translations())
  writer.close()


def _answer() -> None:
  """Answers lines of standard input, each at once."""
  translator = load_translator(FLAGS.n_best, one_by_one=True)
  translator.warm_up()
  logging.info("ready: a line, and its translation; Ctrl-D ends")
  # One bad byte is no reason to send a user away.
  lines = text_files.read_lines(
    text_files.STANDARD_STREAM, replace_invalid=True
  )

  def answers() -> Iterator[Translation]:
    for line in lines:
      try:
        yield translator.translate_line(line)
      except InputError as error:  # A lack of memory is no reason, either.
        logging.error("%s", error)
        yield BLANK

  write_translations(answers())


def _translate_file() -> None:
  """Translates `--file`, side by side and in order."""
  lines = text_files.read_lines(FLAGS.file, FLAGS.invalid_utf8 == "replace")
  translator = load_translator(FLAGS.n_best)
  # A bar and translations on one terminal would be torn.
  bar = FLAGS.file_out != text_files.STANDARD_STREAM or not sys.stdout.isatty()
  with Progress(text_files.count_lines(FLAGS.file), bar) as progress:
    stream = translator.translate_stream(requests(lines), progress.add)
    with contextlib.closing(stream):
      write_translations(stream)
