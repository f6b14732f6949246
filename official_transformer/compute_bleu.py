"""Scores translations: official BLEU, and sacreBLEU's BLEU, chrF and TER.

    compute_bleu --translation=out.de --reference=test.de

Several translations are compared with the first:

    compute_bleu --translation=a.de --translation=b.de --reference=test.de
"""

from __future__ import annotations

import dataclasses

from absl import logging

from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import REQUIRED, flag
from official_transformer.commands.scoring import (
  TOKENIZE_HELP,
  MetricsOptions,
  are_json,
  check_tokenizer,
  comparison_settings,
)
from official_transformer.errors import InputError, describe_failures
from official_transformer.storage.standard_streams import show_result


@dataclasses.dataclass(frozen=True, kw_only=True)
class BleuOptions(MetricsOptions):
  """The files to score, the metrics, and the form of the output."""

  heading = "compute_bleu"

  translation: tuple[str, ...] = flag(
    REQUIRED,
    "File of translated text; - is standard input. Given again: another "
    "system, compared with the first.",
    repeated=True,
    path=True,
  )
  reference: str = flag(
    REQUIRED,
    "File of the reference translation; several between commas. Official BLEU "
    "takes the first.",
    path=True,
  )
  bleu_variant: str = flag(
    "both",
    "Which of the official scores to print; sacreBLEU's, with their "
    "signatures, always follow.",
    choices=("both", "uncased", "cased"),
    short_name="bv",
    case_sensitive=False,
  )
  tokenize: str = flag("auto", TOKENIZE_HELP)
  output_format: str = flag(
    "text",
    "text: lines to read. json: one object. latex: a table.",
    choices=("text", "json", "latex"),
  )
  sentence_scores: str | None = flag(
    None,
    "A file that gets the scores of each line, in columns with tabs between; "
    "- is standard output. JSON has them in any case.",
    path=True,
  )
  source: str | None = flag(
    None,
    "File of the source text, which COMET reads.",
    (lambda v: not v.comet_model, "there is no --comet_model"),
    path=True,
  )

  def __post_init__(self) -> None:
    if self.sentence_scores == "-" and self.output_format == "json":
      raise InputError(
        "JSON has the scores of each line already: leave --sentence_scores out"
      )


OPTIONS = BleuOptions


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
  from official_transformer.text.text_files import read_parallel_files

  ref_lines, hyp_lines = read_parallel_files([ref_filename, hyp_filename])
  return bleu_on_list(ref_lines, hyp_lines, case_sensitive)


def main(_: list[str]) -> None:
  """Prints the scores."""
  options: BleuOptions = flags_core.begin(OPTIONS)
  from official_transformer.evaluation import comparison_formats
  from official_transformer.evaluation.metrics import References
  from official_transformer.evaluation.scores import VARIANTS
  from official_transformer.evaluation.system_comparison import compare_systems
  from official_transformer.text import text_files

  output_format, chosen = options.output_format, options.bleu_variant
  if options.sentence_scores:
    text_files.check_output(options.sentence_scores)
  settings = comparison_settings(
    options,
    check_tokenizer("tokenize", options.tokenize),
    bool(options.sentence_scores) or output_format == "json",
  )
  references = text_files.listed_files(options.reference)
  sources = []
  if settings.comet:
    if not options.source:
      raise InputError(
        "--comet_model reads the source text, too: pass --source"
      )
    sources.append(options.source)
  files = [*options.translation, *references, *sources]
  if options.sentence_scores:
    text_files.check_not_read(options.sentence_scores, files, "sentence_scores")
  lines = text_files.read_parallel_files(files)
  for path, content in zip(files, lines, strict=True):
    _refuse_json(path, content)
  systems = list(zip(options.translation, lines, strict=False))
  lines = lines[len(systems) :]
  compared = compare_systems(
    systems,
    References(lines[: len(references)]),
    settings,
    lines[-1] if sources else None,
  )
  if compared.tokenizer.reason:
    logging.info("%s", compared.tokenizer.reason)
  if len(references) > 1:
    logging.info("official BLEU knows one reference: %s", references[0])
  variants = VARIANTS if chosen == "both" else (chosen,)
  show_result(comparison_formats.FORMATS[output_format](compared, variants))
  if options.sentence_scores:
    text_files.write_lines(
      options.sentence_scores, comparison_formats.sentence_table(compared)
    )


def _refuse_json(path: str, lines: list[str]) -> None:
  """Raises an `InputError` if lines are JSON, which would be scored as text."""
  if are_json(lines):
    raise InputError(
      f"{path} is lines of JSON, which would be scored as they stand: have "
      "--mode=predict write --output_format=text, or take the field out with "
      "jq -r .translation"
    )


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
