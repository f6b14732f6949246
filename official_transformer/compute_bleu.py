"""Scores a translation: official BLEU, sacreBLEU and chrF.

python compute_bleu.py --translation=out.de --reference=test.de
"""

from __future__ import annotations

from absl import flags

from flags import core as flags_core
from official_transformer.errors import InputError, describe_failures

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


def main(argv: list[str]) -> None:
  """Prints the scores."""
  if argv[1:]:
    raise InputError(f"unexpected arguments: {' '.join(argv[1:])}")
  from official_transformer.data.text_files import read_lines
  from official_transformer.evaluation import bleu

  translations = list(read_lines(FLAGS.translation))
  references = list(read_lines(FLAGS.reference))
  if len(translations) != len(references):
    raise InputError(
      f"{FLAGS.translation} has {len(translations)} lines and "
      f"{FLAGS.reference} {len(references)}: line n of the one must translate "
      "the source of line n of the other"
    )
  if not references:
    raise InputError(f"{FLAGS.reference} is empty: there is nothing to score")
  for variant, name in (
    ("uncased", "Case-insensitive"),
    ("cased", "Case-sensitive"),
  ):
    if FLAGS.bleu_variant in ("both", variant):
      score = bleu.official_bleu(references, translations, variant == "cased")
      print(f"{name} results: {score:.6f}")
  for result in bleu.sacrebleu_scores(references, translations):
    print(f"sacreBLEU {result.name}|{result.signature} = {result.score:.2f}")


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_compute_bleu_flags, describe_failures(main))


if __name__ == "__main__":
  run()
