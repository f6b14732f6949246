"""Scores a translation: official BLEU, sacreBLEU and chrF.

python compute_bleu.py --translation=out.de --reference=test.de
"""

from __future__ import annotations

from absl import flags

from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.storage.standard_streams import show_result

FLAGS = flags.FLAGS


def define_compute_bleu_flags() -> None:
  """Defines the command's flags."""
  start_section("compute_bleu")
  define(
    flags.DEFINE_string,
    "translation",
    None,
    "File of translated text; - is standard input.",
    required=True,
  )
  define(
    flags.DEFINE_string,
    "reference",
    None,
    "File of the reference translation.",
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


def main(_: list[str]) -> None:
  """Prints the scores."""
  from official_transformer.data.text_files import read_parallel
  from official_transformer.evaluation.scores import VARIANTS, score

  translations, references = read_parallel(FLAGS.translation, FLAGS.reference)
  chosen = FLAGS.bleu_variant
  variants = VARIANTS if chosen == "both" else (chosen,)
  show_result(score(references, translations).report(variants))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_compute_bleu_flags, describe_failures(main))


if __name__ == "__main__":
  run()
