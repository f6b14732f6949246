"""Makes a page of one translation, or of two beside each other.

python translation_report.py --source=test.en --reference=test.de \
  --translation=a.de --translation=b.de --output=report.html
"""

from __future__ import annotations

from absl import flags, logging

from official_transformer.commands.report_flags import (
  define_report_flags,
)
from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core

FLAGS = flags.FLAGS


def main(_: list[str]) -> None:
  """Writes the page."""
  for line in flags_core.without_effect(FLAGS):
    logging.warning("%s", line)
  from official_transformer.commands.report import report

  report()


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_report_flags, describe_failures(main))


if __name__ == "__main__":
  run()
