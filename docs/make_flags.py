"""Writes docs/flags.md from the flags as the commands define them.

python docs/make_flags.py
"""

from __future__ import annotations

import pathlib

from absl import flags

from data_prep import check_data, data_download, demo_corpus, prepare_data
from official_transformer.commands import help_page
from official_transformer.commands.flag_records import Command
from official_transformer.commands.flags_core import define_all, definition_of
from official_transformer.commands.modes import MODES
from official_transformer.commands.report import ReportOptions
from official_transformer.commands.serve import ServiceOptions
from official_transformer.compute_bleu import BleuOptions
from official_transformer.hardware.cpu_threads import processors
from official_transformer.import_checkpoint import ImportOptions

COMMON = "Every command"
MAIN = "transformer_main"
PAGE = pathlib.Path(__file__).with_name("flags.md")
COMMANDS: dict[str, Command] = {
  MAIN: MODES,
  "prepare_data": prepare_data.OPTIONS,
  "data_download": data_download.OPTIONS,
  "check_data": check_data.OPTIONS,
  "compute_bleu": BleuOptions,
  "translation_report": ReportOptions,
  "import_checkpoint": ImportOptions,
  "translation_server": ServiceOptions,
  "demo_corpus": demo_corpus.OPTIONS,
}
INTRODUCTION = """# Flags

Written by `python docs/make_flags.py` from the flags' own definitions; do not
edit it. `COMMAND --help` says the same: `transformer_main --help` its modes,
`--mode=MODE --help` the flags of one, `--helpfull` all. `--flagfile=FILE` reads
flags from a file, one a line.

All flags of the official model are accepted, so that its scripts run as they
stand. A flag that was given and changes nothing says so once, at start.

`python official_transformer/translate.py` is the first official version's
command line: `transformer_main --mode=predict` with fewer flags and
`--extra_decode_length=100`.
"""


def row(name: str, with_modes: bool) -> str:
  """Returns the table row of a flag."""
  flag, definition = flags.FLAGS[name], definition_of(name)
  text, spec = definition.spec.text, definition.spec
  title = f"`--{name}`"
  if flag.short_name:
    title += f", `-{flag.short_name}`"
  if values := getattr(flag.parser, "enum_values", None):
    text += f" One of {', '.join(f'`{value}`' for value in values)}."
  if spec.never:
    text += f" *Never read: {spec.never}.*"
  if spec.idle:
    reasons = "; ".join(reason for _, reason in spec.idle)
    text += f" *Without effect in some runs: {reasons}.*"
  cells = [title, default_cell(flag), text]
  if with_modes:
    modes = ", ".join(definition.modes) or ("" if spec.never else "all")
    cells.insert(2, modes)
  return f"| {' | '.join(cells)} |"


def default_cell(flag: flags.Flag) -> str:
  """Returns a flag's default as the table has it."""
  if flag.default == processors() and flag.name == "num_parallel_calls":
    return "processors"
  default = help_page.shown_default(flag)
  return f"`{default}`" if default else ""


def sections(command: Command) -> dict[str, list[str]]:
  """Returns the rows of a command's flags by the heading above them."""
  absl_flags = set(flags.FLAGS)
  define_all(command)
  added = [name for name in flags.FLAGS if name not in absl_flags]
  with_modes = "mode" in added
  found: dict[str, list[str]] = {}
  for name in added:
    if flags.FLAGS[name].name == name:  # No short name.
      found.setdefault(definition_of(name).section, []).append(
        row(name, with_modes)
      )
  for name in added:
    delattr(flags.FLAGS, name)
  return found


def table(rows: list[str], with_modes: bool) -> str:
  """Returns a table of flags."""
  columns = ["flag", "default", "meaning"]
  if with_modes:
    columns.insert(2, "modes")
  return "\n".join(
    [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|", *rows]
  )


def page() -> str:
  """Returns the page."""
  parts = [INTRODUCTION]
  common: list[str] = []
  for name, command in COMMANDS.items():
    found = sections(command)
    common = found.pop(COMMON)
    parts.append(f"## {name}\n")
    for title, rows in found.items():
      if title != name:
        parts.append(f"### {title}\n")
      parts.append(table(rows, name == MAIN) + "\n")
  parts.append(f"## {COMMON}\n\n{table(common, False)}\n")
  return "\n".join(parts)


if __name__ == "__main__":
  PAGE.write_text(page(), encoding="utf-8")
