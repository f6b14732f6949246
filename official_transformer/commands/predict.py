"""What commands do with a trained model: translate, evaluate, score."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Iterable, Iterator

from absl import flags, logging

from official_transformer.commands.flag_readers import (
  batch_limits,
  decoding_options,
  read_requested_params,
)
from official_transformer.data import text_files
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.decoding.batching import BatchLimits
from official_transformer.decoding.output import (
  json_line,
  score_json_line,
  score_text_line,
  text_lines,
)
from official_transformer.decoding.progress import Progress
from official_transformer.decoding.scorer import PairScore, Scorer
from official_transformer.decoding.translator import (
  BLANK,
  Translation,
  Translator,
)
from official_transformer.distribution.cpu_threads import (
  serve_single_lines,
  share_processors,
)
from official_transformer.distribution.strategy import choose_devices
from official_transformer.errors import InputError
from official_transformer.evaluation.evaluation_set import TestSet
from official_transformer.model_directory.directory import (
  ModelDirectory,
  check_vocabulary,
)
from official_transformer.model_params import (
  DECODING_FIELDS,
  TransformerParams,
)

FLAGS = flags.FLAGS


def evaluate() -> None:
  """Translates the test set and prints scores."""
  if not FLAGS.bleu_source:
    raise InputError("--mode=eval needs --bleu_source and --bleu_ref")
  test_set = TestSet.read(FLAGS.bleu_source, FLAGS.bleu_ref)
  translator = _load_translator()
  directory = ModelDirectory(FLAGS.model_dir)
  checkpoint = translator.checkpoint
  assert checkpoint  # It has been loaded.
  params = translator.transformer.params
  scores, path = test_set.evaluate(
    translator,
    directory,
    f"{os.path.basename(FLAGS.bleu_source)}-{checkpoint.file_name}-beam-"
    f"{params.beam_size}-alpha-{params.alpha:g}-extra-"
    f"{params.extra_decode_length}",
  )
  which = str(checkpoint).capitalize()
  print(f"{which}, beam {params.beam_size}, alpha {params.alpha:g}")
  print(scores.report())
  print(f"The translation is in {path}")


def predict() -> None:
  """Translates a sentence, a file, or lines as they are typed."""
  _check_predict_flags()
  if FLAGS.text is not None:
    line = _one_line(FLAGS.text)
    _check_output([])
    translator = _load_translator(FLAGS.n_best, one_by_one=True)
    _write_translations(iter([translator.translate_line(line)]))
  elif FLAGS.interactive or (
    FLAGS.file == text_files.STANDARD_STREAM and sys.stdin.isatty()
  ):
    _answer()
  else:
    _translate_file()


def _check_predict_flags() -> None:
  """Refuses flags that do not say what to translate."""
  if FLAGS.interactive:
    if FLAGS.text is not None or FLAGS.file not in (
      None,
      text_files.STANDARD_STREAM,
    ):
      raise InputError(
        "--interactive answers lines of standard input; leave --text and "
        "--file out"
      )
  elif (FLAGS.text is None) == (FLAGS.file is None):
    raise InputError("nothing to translate: pass either --text or --file")


def _answer() -> None:
  """Answers lines of standard input, each at once."""
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    raise InputError("--interactive answers on standard output; see --file_out")
  translator = _load_translator(FLAGS.n_best, one_by_one=True)
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

  _write_translations(answers())


def _translate_file() -> None:
  """Translates `--file`, side by side and in order."""
  text_files.check_input(FLAGS.file)
  _check_output([FLAGS.file])
  lines = text_files.read_lines(FLAGS.file, FLAGS.invalid_utf8 == "replace")
  translator = _load_translator(FLAGS.n_best)
  # A bar and translations on one terminal would be torn.
  bar = FLAGS.file_out != text_files.STANDARD_STREAM or not sys.stdout.isatty()
  with Progress(text_files.count_lines(FLAGS.file), bar) as progress:
    stream = translator.translate_stream(lines, progress.add)
    with contextlib.closing(stream):
      _write_translations(stream)


def score() -> None:
  """Tells how probable each line is as the translation of its source."""
  if FLAGS.file is None or FLAGS.reference_file is None:
    raise InputError(
      "--mode=score needs --file, the sources, and --reference_file, the "
      "translations to score"
    )
  inputs = [FLAGS.file, FLAGS.reference_file]
  if inputs == [text_files.STANDARD_STREAM] * 2:
    raise InputError("only one of --file and --reference_file may be -")
  for path in inputs:
    text_files.check_input(path)
  _check_output(inputs)
  params = _checked_params()
  choose_devices(FLAGS.num_gpus)
  scorer = Scorer.load(
    FLAGS.model_dir,
    params.alpha,
    FLAGS.dtype,
    batch_limits(),
    FLAGS.checkpoint,
  )
  _write(_score_line(s) for s in scorer.score_stream(_pairs(*inputs)))


def _one_line(text: str) -> str:
  """Returns `--text` if it is one line that can be written."""
  if "\n" in text:
    raise InputError("--text takes one line; put several into a --file")
  try:
    text.encode("utf-8")
  except UnicodeEncodeError:
    raise InputError("--text is not UTF-8; check the terminal") from None
  return text


def _check_output(inputs: list[str]) -> None:
  """Refuses an output that cannot be written, or would overwrite an input."""
  text_files.check_output(FLAGS.file_out)
  for path in inputs:
    if (
      os.path.isfile(path)
      and os.path.exists(FLAGS.file_out)
      and os.path.samefile(path, FLAGS.file_out)
    ):
      raise InputError(f"--file_out is {path}: it would be overwritten")


def _write(lines: Iterable[str]) -> None:
  """Writes to `--file_out` as lines come."""
  count = text_files.write_lines(FLAGS.file_out, lines)
  if FLAGS.file_out != text_files.STANDARD_STREAM:
    logging.info("wrote %d lines to %s", count, FLAGS.file_out)


def _write_translations(translations: Iterable[Translation]) -> None:
  """Writes translations in `--output_format`, as they come."""
  if FLAGS.output_format == "text":
    lines = (line for t in translations for line in text_lines(t, FLAGS.n_best))
  else:
    lines = (json_line(t, FLAGS.n_best) for t in translations)
  _write(lines)


def _score_line(score: PairScore) -> str:
  """Returns a score in `--output_format`."""
  if FLAGS.output_format == "text":
    return score_text_line(score)
  return score_json_line(score)


def _pairs(source: str, target: str) -> Iterator[tuple[str, str]]:
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


def _checked_params() -> TransformerParams:
  """Returns the model's parameters; refuses flags that contradict them."""
  stored = ModelDirectory(FLAGS.model_dir).read()
  params = read_requested_params().for_existing_model(
    stored.params, FLAGS.model_dir
  )
  if FLAGS.vocab_file:
    size = load_tokenizer(FLAGS.vocab_file).vocab_size
    check_vocabulary(FLAGS.vocab_file, size, stored, FLAGS.model_dir)
  return params


def _load_translator(n_best: int = 1, one_by_one: bool = False) -> Translator:
  """Loads the model directory; refuses flags that contradict it.

  Args:
    n_best: hypotheses wanted of each line.
    one_by_one: whether one line at a time will be translated.
  """
  params = _checked_params()
  options = dataclasses.replace(decoding_options(), n_best=n_best)
  options.check(params)
  on_cpu = choose_devices(FLAGS.num_gpus) == ["CPU:0"]
  if FLAGS.decode_workers and not on_cpu:
    logging.warning("--decode_workers has no effect: it is for CPUs")
  if one_by_one:
    options = dataclasses.replace(options, limits=BatchLimits(lines=1))
    if on_cpu:
      serve_single_lines(params.hidden_size)
  elif on_cpu and not FLAGS.padded_decode:
    workers = share_processors(FLAGS.decode_workers)
    options = dataclasses.replace(options, workers=workers)
  return Translator.load(
    FLAGS.model_dir,
    dtype=_dtype(),
    options=options,
    checkpoint=FLAGS.checkpoint,
    **{name: getattr(params, name) for name in DECODING_FIELDS},
  )


def _dtype() -> str:
  """Returns `--dtype`, which translate.py does not have."""
  return FLAGS.dtype if "dtype" in FLAGS else "fp32"
