"""What `translation_report` does: files in, a page out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from absl import flags, logging

from official_transformer.commands.scoring_flag_readers import (
  read_contest_settings,
)
from official_transformer.data import text_files
from official_transformer.errors import InputError
from official_transformer.evaluation.contest import Contest
from official_transformer.evaluation.metrics import References
from official_transformer.evaluation.report_data import (
  Reported,
  ReportRequest,
  choose_lines,
  judge,
  report_data,
)
from official_transformer.evaluation.report_page import render_page
from official_transformer.storage import file_system
from official_transformer.storage.typed_json import DAMAGE

if TYPE_CHECKING:
  from official_transformer.decoding.attention import LineAttention

FLAGS = flags.FLAGS

JSON_LINES = ".jsonl"


def report() -> None:
  """Writes the page."""
  request = _read_request()
  chosen = _read_attention_lines(len(request.sources))
  contest = judge(request)
  attention = {}
  if FLAGS.model_dir:
    attention = _read_attention(request, contest, chosen)
  _write(request, contest, attention)


def _read_request() -> ReportRequest:
  """Reads the files, and checks what can be before anything is computed.

  Raises:
    InputError: if something cannot be read, or does not match.
  """
  if len(FLAGS.translation) > 2:
    raise InputError(
      f"--translation is given {len(FLAGS.translation)} times: a report is of "
      "one, or of two beside each other; compute_bleu compares more"
    )
  text_files.check_output(FLAGS.output)
  settings = read_contest_settings("tokenize")
  names = text_files.listed_files(FLAGS.reference)
  files = [FLAGS.source, *names, *FLAGS.translation]
  counted = None
  if FLAGS.frequency_text:
    counted = list(text_files.read_lines(FLAGS.frequency_text))
  read = [*files, FLAGS.frequency_text] if FLAGS.frequency_text else files
  text_files.check_not_read(FLAGS.output, read, "output")
  source, *lines = text_files.read_parallel_files(files)
  references, translations = lines[: len(names)], lines[len(names) :]
  title = FLAGS.title or f"Translations of {os.path.basename(FLAGS.source)}"
  return ReportRequest(
    title,
    source,
    References(references),
    [
      _reported(name, lines)
      for name, lines in zip(FLAGS.translation, translations, strict=True)
    ],
    settings,
    counted,
    os.path.basename(FLAGS.frequency_text or "") or "the references",
  )


def _reported(name: str, lines: list[str]) -> Reported:
  """Returns a translation, of text or of JSON objects."""
  if not name.endswith(JSON_LINES):
    return Reported(name, lines)
  texts, unfinished = [], []
  for number, line in enumerate(lines, start=1):
    try:
      told = json.loads(line)
      texts.append(str(told["translation"]))
      unfinished.append("unfinished" in told["flags"])
    except DAMAGE:
      raise InputError(
        f"{name}, line {number}, is no JSON object of a translation, as "
        "--mode=predict --output_format=jsonl writes them"
      ) from None
  return Reported(name, texts, unfinished)


def _read_attention_lines(lines: int) -> list[int] | None:
  """Reads which sentences' attention is wanted, from 0; None: not said."""
  if FLAGS.attention_lines is None or not FLAGS.model_dir:
    return None
  chosen = []
  for text in FLAGS.attention_lines:
    if not text.isdecimal() or not 1 <= int(text) <= lines:
      raise InputError(
        f"--attention_lines: {text!r} is no line of {FLAGS.source}, which has "
        f"{lines}"
      )
    chosen.append(int(text) - 1)
  return chosen


def _read_attention(
  request: ReportRequest, contest: Contest, chosen: list[int] | None
) -> dict[int, LineAttention]:
  """Computes what the model attends to as it writes the first translation.

  Args:
    request: what is reported.
    contest: what was found of it.
    chosen: the lines, from 0; None takes those that are worth a look, of a
      length that the model was trained with.
  """
  # Without attention, TensorFlow is not needed.
  from official_transformer.decoding.translator import Translator
  from official_transformer.hardware.devices import choose_devices
  from official_transformer.hardware.startup import start_tensorflow

  start_tensorflow()
  choose_devices(FLAGS.num_gpus)
  translator = Translator.load(FLAGS.model_dir, checkpoint=FLAGS.checkpoint)
  lines = request.systems[0].lines
  if chosen is None:
    encode = translator.tokenizers.source.encode
    usable = [
      bool(source.strip()) and len(encode(source)) < translator.max_length
      for source in request.sources
    ]
    chosen = choose_lines(contest, FLAGS.attention_count, usable)
  found = {}
  for n in chosen:
    try:
      found[n] = translator.attention(request.sources[n], lines[n])
    except InputError as error:  # No reason to have no report.
      logging.warning("no attention of line %d: %s", n + 1, error)
  return found


def _write(
  request: ReportRequest,
  contest: Contest,
  attention: dict[int, LineAttention],
) -> None:
  page = render_page(report_data(request, contest, attention))
  text_files.write_lines(FLAGS.output, page.rstrip("\n").split("\n"))
  if contest.tokenizer.reason:
    logging.info("%s", contest.tokenizer.reason)
  if FLAGS.output == text_files.STANDARD_STREAM:
    return
  logging.info(
    "wrote %s, %.1f MB: open it in a browser",
    FLAGS.output,
    file_system.size(FLAGS.output) / 1e6,
  )
