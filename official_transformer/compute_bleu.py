"""Scores a translation: official BLEU, sacreBLEU and chrF.

python compute_bleu.py --translation=out.de --reference=test.de
"""

from __future__ import annotations

from absl import flags

from flags import core as flags_core
from official_transformer.errors import describe_failures

FLAGS = flags.FLAGS


def define_compute_bleu_flags() -> None:
  """Defines the command's flags."""
  flags.DEFINE_string(
    "translation",
    None,
    flags_core.help_wrap("File of translated text; - is standard input."),
    required=True,
  )
  flags.DEFINE_string(
    "reference",
    None,
    flags_core.help_wrap("File of the reference translation."),
    required=True,
  )
  flags.DEFINE_enum(
    "bleu_variant",
    "both",
    ["both", "uncased", "cased"],
    flags_core.help_wrap(
      "Which of the official scores to print; sacreBLEU's, with their "
      "signatures, always follow."
    ),
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
  print(score(references, translations).report(variants))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_compute_bleu_flags, describe_failures(main))


if __name__ == "__main__":
  run()
