"""The command `translation_report`: files in, a page out."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands.flag_records import REQUIRED, Options, flag
from official_transformer.commands.model_options import CheckpointOptions
from official_transformer.commands.scoring import (
  TOKENIZE_HELP,
  ScoringOptions,
  are_json,
  check_tokenizer,
  comparison_settings,
)
from official_transformer.commands.shared_options import GpuOptions
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.typed_json import DAMAGE
from official_transformer.text import text_files

if TYPE_CHECKING:
  from official_transformer.decoding.attention import LineAttention
  from official_transformer.evaluation.report_data import (
    Reported,
    ReportRequest,
  )
  from official_transformer.evaluation.system_comparison import SystemComparison

JSON_LINES = ".jsonl"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
  """Flags of the attention in a report."""

  heading = "Attention in the report"

  model_dir: str | None = flag(
    None,
    "The model that made the first translation: its attention is shown for "
    "some sentences.",
    path=True,
  )
  attention_lines: tuple[str, ...] | None = flag(
    None,
    "Numbers of the sentences, from 1. Unset: the sentences in which two "
    "systems differ most, or that a single system translates worst.",
    (lambda v: not v.model_dir, "there is no --model_dir"),
  )
  attention_count: int = flag(
    10,
    "Number of sentences, if --attention_lines does not name them.",
    (lambda v: not v.model_dir, "there is no --model_dir"),
    (lambda v: v.attention_lines is not None, "--attention_lines says which"),
    lower_bound=0,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportOptions(
  ScoringOptions, AttentionOptions, CheckpointOptions, GpuOptions
):
  """The files of a report, and where the page goes."""

  heading = "translation_report"

  source: str = flag(REQUIRED, "File of the source text.", path=True)
  reference: str = flag(
    REQUIRED,
    "File of the reference translation; several between commas.",
    path=True,
  )
  translation: tuple[str, ...] = flag(
    REQUIRED,
    "File of translated text, or of --mode=predict's JSON lines. Given again: "
    "a second one, to compare with the first.",
    repeated=True,
    path=True,
  )
  output: str = flag(
    REQUIRED,
    "The page to write: a file that any browser opens.",
    path=True,
  )
  title: str | None = flag(
    None, "The page's heading. Unset: Translations of SOURCE."
  )
  frequency_text: str | None = flag(
    None,
    "Text, such as the training's target side, in which words are counted: by "
    "their rarest word, sentences are put into groups. Unset: the references.",
    path=True,
  )
  tokenize: str = flag("auto", TOKENIZE_HELP)

  def __post_init__(self) -> None:
    if len(self.translation) > 2:
      raise InputError(
        f"--translation is given {len(self.translation)} times: a report is of "
        "one, or of two beside each other; compute_bleu compares more"
      )


def report(options: ReportOptions) -> None:
  """Writes the page."""
  from official_transformer.evaluation.report_data import score_systems

  request = _read_request(options)
  chosen = _read_attention_lines(options, len(request.sources))
  compared = score_systems(request)
  attention = {}
  if options.model_dir:
    attention = _read_attention(options, request, compared, chosen)
  _write(options.output, request, compared, attention)


def _read_request(options: ReportOptions) -> ReportRequest:
  """Reads and checks the files before anything is computed.

  Raises:
    InputError: if something cannot be read, or does not match.
  """
  from official_transformer.evaluation.metrics import References
  from official_transformer.evaluation.report_data import ReportRequest

  text_files.check_output(options.output)
  settings = comparison_settings(
    options, check_tokenizer("tokenize", options.tokenize)
  )
  names = text_files.listed_files(options.reference)
  files = [options.source, *names, *options.translation]
  counted, counted_in = None, options.frequency_text
  read = files
  if counted_in:
    counted = list(text_files.read_lines(counted_in))
    read = [*files, counted_in]
  text_files.check_not_read(options.output, read, "output")
  source, *lines = text_files.read_parallel_files(files)
  references, translations = lines[: len(names)], lines[len(names) :]
  title = options.title or f"Translations of {os.path.basename(options.source)}"
  return ReportRequest(
    title,
    source,
    References(references),
    [
      _reported(name, lines)
      for name, lines in zip(options.translation, translations, strict=True)
    ],
    settings,
    counted,
    os.path.basename(counted_in or "") or "the references",
  )


def _reported(name: str, lines: list[str]) -> Reported:
  """Returns a translation, of text or of JSON objects."""
  from official_transformer.evaluation.report_data import Reported

  if not (name.endswith(JSON_LINES) or are_json(lines)):
    return Reported(name, lines)
  texts, unfinished = [], []
  for number, line in enumerate(lines, start=1):
    try:
      told = json.loads(line)
      text = str(told["translation"])
      text.encode("utf-8")  # JSON can hold half of a surrogate pair.
      texts.append(text)
      unfinished.append("unfinished" in told["flags"])
    except DAMAGE as error:
      raise InputError(
        f"{name}, line {number}, is no JSON object of a translation, as "
        f"--mode=predict --output_format=jsonl writes them ({error!r:.200})"
      ) from None
  return Reported(name, texts, unfinished)


def _read_attention_lines(
  options: ReportOptions, lines: int
) -> list[int] | None:
  """Reads the numbers of lines whose attention is shown, counted from 0.

  Returns None if no lines are named, or there is no model.
  """
  if options.attention_lines is None or not options.model_dir:
    return None
  chosen = []
  for text in options.attention_lines:
    if not text.isdecimal() or not 1 <= int(text) <= lines:
      raise InputError(
        f"--attention_lines: {text!r} is no line of {options.source}, which "
        f"has {lines}"
      )
    chosen.append(int(text) - 1)
  return chosen


def _read_attention(
  options: ReportOptions,
  request: ReportRequest,
  compared: SystemComparison,
  chosen: list[int] | None,
) -> dict[int, LineAttention]:
  """Computes the model's attention for the first translation.

  Args:
    options: the command line as a record.
    request: contents of the report.
    compared: scores and tests of the systems.
    chosen: the lines, from 0; None takes those that `choose_lines` returns, of
      a length that the model was trained with.
  """
  # Without attention, TensorFlow is not needed.
  from official_transformer.hardware.startup import start_tensorflow

  # Before anything imports TensorFlow, which would write its log.
  start_tensorflow()
  from official_transformer.decoding.translator import Translator
  from official_transformer.evaluation.report_data import choose_lines
  from official_transformer.hardware.devices import choose_devices

  assert options.model_dir
  choose_devices(options.num_gpus)
  translator = Translator.load(options.model_dir, checkpoint=options.checkpoint)
  lines = request.systems[0].lines
  if chosen is None:
    encode = translator.tokenizers.source.encode
    usable = [
      bool(source.strip()) and len(encode(source)) < translator.longest_piece
      for source in request.sources
    ]
    chosen = choose_lines(compared, options.attention_count, usable)
  found = {}
  for n in chosen:
    try:
      found[n] = translator.attention(request.sources[n], lines[n])
    except InputError as error:  # No reason to have no report.
      logging.warning("no attention of line %d: %s", n + 1, error)
  return found


def _write(
  output: str,
  request: ReportRequest,
  compared: SystemComparison,
  attention: dict[int, LineAttention],
) -> None:
  from official_transformer.evaluation.report_data import report_data
  from official_transformer.evaluation.report_page import render_page

  page = render_page(report_data(request, compared, attention))
  text_files.write_lines(output, page.rstrip("\n").split("\n"))
  if compared.tokenizer.reason:
    logging.info("%s", compared.tokenizer.reason)
  if output == text_files.STANDARD_STREAM:
    return
  logging.info(
    "wrote %s, %.1f MB: open it in a browser",
    output,
    file_system.size(output) / 1e6,
  )
