"""Scores translations: official BLEU, and sacreBLEU's BLEU, chrF and TER.

python compute_bleu.py --translation=out.de --reference=test.de

Several translations are compared with the first:

python compute_bleu.py --translation=a.de --translation=b.de --reference=test.de
"""

from __future__ import annotations

from absl import flags, logging

from official_transformer.commands.scoring_flag_readers import (
  read_contest_settings,
)
from official_transformer.commands.scoring_flags import (
  define_certainty_flags,
  define_comet_flags,
  define_metrics_flag,
  define_tokenize_flag,
)
from official_transformer.errors import InputError, describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import (
  Effect,
  define,
  start_section,
)
from official_transformer.storage.standard_streams import show_result

FLAGS = flags.FLAGS


def define_compute_bleu_flags() -> None:
  """Defines the command's flags."""
  start_section("compute_bleu")
  define(
    flags.DEFINE_multi_string,
    "translation",
    None,
    "File of translated text; - is standard input. Given again: another "
    "system, compared with the first.",
    required=True,
  )
  define(
    flags.DEFINE_string,
    "reference",
    None,
    "File of the reference translation; several between commas. Official BLEU "
    "takes the first.",
    required=True,
  )
  define(
    flags.DEFINE_enum,
    "bleu_variant",
    "both",
    "Which of the official scores to print; sacreBLEU's, with their "
    "signatures, always follow.",
    enum_values=["both", "uncased", "cased"],
    short_name="bv",
    case_sensitive=False,
  )
  define_tokenize_flag("tokenize", Effect())
  define_metrics_flag(Effect())
  define_certainty_flags(Effect())
  define(
    flags.DEFINE_enum,
    "output_format",
    "text",
    "text: lines to read. json: one object. latex: a table.",
    enum_values=["text", "json", "latex"],
  )
  define(
    flags.DEFINE_string,
    "sentence_scores",
    None,
    "A file that gets the scores of each line, in columns with tabs between; "
    "- is standard output. JSON has them in any case.",
  )
  define(
    flags.DEFINE_string,
    "source",
    None,
    "File of the source text, which COMET reads.",
    Effect().idle_if(lambda v: not v.comet_model, "there is no --comet_model"),
  )
  define_comet_flags(Effect())


def bleu_tokenize(string: str) -> list[str]:
  """Splits a line as official BLEU does (mteval-v14)."""
  from official_transformer.evaluation import bleu

  return bleu.bleu_tokenize(string)


def bleu_on_list(
  ref_lines: list[str], hyp_lines: list[str], case_sensitive: bool = False
) -> float:
  """Returns official BLEU, from 0 to 100, of translations.

  Args:
    ref_lines: references.
    hyp_lines: as many translations.
    case_sensitive: whether case counts.

  Raises:
    ValueError: if the numbers of lines differ.
  """
  from official_transformer.evaluation.bleu import official_bleu

  return official_bleu(ref_lines, hyp_lines, case_sensitive)


def bleu_wrapper(
  ref_filename: str, hyp_filename: str, case_sensitive: bool = False
) -> float:
  """Returns official BLEU, from 0 to 100, of a file of translations.

  Raises:
    InputError: if the numbers of lines differ.
  """
  from official_transformer.data.text_files import read_parallel_files

  ref_lines, hyp_lines = read_parallel_files([ref_filename, hyp_filename])
  return bleu_on_list(ref_lines, hyp_lines, case_sensitive)


def main(_: list[str]) -> None:
  """Prints the scores."""
  for line in flags_core.without_effect(FLAGS):
    logging.warning("%s", line)
  from official_transformer.data import text_files
  from official_transformer.evaluation import contest_formats
  from official_transformer.evaluation.contest import hold_contest
  from official_transformer.evaluation.metrics import References
  from official_transformer.evaluation.scores import VARIANTS

  output_format, chosen = FLAGS.output_format, FLAGS.bleu_variant
  if FLAGS.sentence_scores:
    text_files.check_output(FLAGS.sentence_scores)
  settings = read_contest_settings(
    "tokenize", bool(FLAGS.sentence_scores) or output_format == "json"
  )
  if FLAGS.sentence_scores == text_files.STANDARD_STREAM and (
    output_format == "json"
  ):
    raise InputError(
      "JSON has the scores of each line already: leave --sentence_scores out"
    )
  references = text_files.listed_files(FLAGS.reference)
  sources = []
  if settings.comet:
    if not FLAGS.source:
      raise InputError(
        "--comet_model reads the source text, too: pass --source"
      )
    sources.append(FLAGS.source)
  files = [*FLAGS.translation, *references, *sources]
  if FLAGS.sentence_scores:
    text_files.check_not_read(FLAGS.sentence_scores, files, "sentence_scores")
  lines = text_files.read_parallel_files(files)
  systems = list(zip(FLAGS.translation, lines, strict=False))
  lines = lines[len(systems) :]
  contest = hold_contest(
    systems,
    References(lines[: len(references)]),
    settings,
    lines[-1] if sources else None,
  )
  if contest.tokenizer.reason:
    logging.info("%s", contest.tokenizer.reason)
  if len(references) > 1:
    logging.info("official BLEU knows one reference: %s", references[0])
  variants = VARIANTS if chosen == "both" else (chosen,)
  show_result(contest_formats.FORMATS[output_format](contest, variants))
  if FLAGS.sentence_scores:
    text_files.write_lines(
      FLAGS.sentence_scores, contest_formats.sentence_table(contest)
    )


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_compute_bleu_flags, describe_failures(main))


if __name__ == "__main__":
  run()
