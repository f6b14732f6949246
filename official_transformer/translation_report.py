r"""Makes a page of one translation, or of two beside each other.

    translation_report --source=test.en --reference=test.de \
      --translation=a.de --translation=b.de --output=report.html
"""

from __future__ import annotations

from official_transformer.commands import flags_core
from official_transformer.commands.report import ReportOptions, report
from official_transformer.errors import describe_failures

OPTIONS = ReportOptions


def main(_: list[str]) -> None:
  """Writes the page."""
  report(flags_core.begin(OPTIONS))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
