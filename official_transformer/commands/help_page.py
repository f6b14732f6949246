"""The page of `--help`: a command's purpose, and its flags under headings.

A command with modes prints its modes and the few flags that everyone needs;
with `--mode=MODE`, the flags of that mode. `--helpfull`, which is absl's own,
lists every flag, also those that are accepted and not read.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator

from absl import app, flags

from official_transformer.commands.flag_records import (
  MODE,
  Command,
  Modes,
  Options,
  definition_of,
  fields_of,
)

_MODE_ARGUMENT = re.compile(r"--?mode(?:=(?P<value>.*))?")
_WIDTHS = (60, 100)  # A narrow terminal, and a width that is easy to read.
_MOST_USED = "Most used"


class HelpFlag(flags.BooleanFlag):
  """Prints the page of a command and ends it, with absl's exit status."""

  def __init__(self, name: str, command: Command, about: str) -> None:
    """Initializes the flag.

    Args:
      name: `help`, or absl's other name for it.
      command: the record of the command's flags, or of its modes.
      about: text at the top of the page.
    """
    super().__init__(
      name,
      False,
      "show this help",
      short_name="?" if name == "help" else None,
      allow_override=True,
    )
    self._command = command
    self._about = about

  def parse(self, argument: str | bool) -> None:
    """Prints the page if the flag is set."""
    super().parse(argument)
    if self.value:
      arguments = sys.argv[1:]
      page = help_page(self._command, self._about, asked_mode(arguments))
      # The reader may stop early, as in `... | head`.
      with contextlib.suppress(BrokenPipeError):
        print(page, flush=True)
      sys.exit(1)


def define_help(command: Command, about: str) -> None:
  """Puts a command's page in the place of absl's list.

  Args:
    command: the record of its flags, or of its modes; they are defined.
    about: purpose of the command, at the top of the page.
  """
  app.define_help_flags()
  for name in ("help", "helpshort"):
    flags.DEFINE_flag(HelpFlag(name, command, about))


def asked_mode(arguments: Iterable[str]) -> str | None:
  """Returns the `--mode` of a command line, before or after `--help`."""
  left = iter(arguments)
  found = None
  for argument in left:
    if match := _MODE_ARGUMENT.fullmatch(argument):
      found = match["value"] if "=" in argument else next(left, None)
  return found


def help_page(command: Command, about: str, mode: str | None = None) -> str:
  """Returns a command's page.

  Args:
    command: the record of its flags, or of its modes; they are defined.
    about: text at the top of the page.
    mode: whose flags are listed; none is an overview, as is an unknown one.
  """
  if isinstance(command, Modes):
    if mode is not None and mode in command.records:
      about = f"--{MODE}={mode}: {command.records[mode].summary}."
      parts = _record_parts(command.records[mode], command.headings)
    else:
      parts = _overview_parts(command)
  else:
    parts = _record_parts(command, ())
  return "\n\n".join([about.strip(), *parts]) + "\n"


def _overview_parts(command: Modes) -> Iterator[str]:
  width = max(map(len, command.records))
  yield "\n".join(
    [
      f"Modes (--{MODE}=...; the first unless it is given):",
      *(
        f"  {mode:<{width}}  {record.summary}"
        for mode, record in command.records.items()
      ),
    ]
  )
  yield _group("Flags that everyone needs", command.most_used)
  yield (
    f"--{MODE}=MODE --help lists the flags of a mode, --helpfull all of them."
  )


def _record_parts(
  record: type[Options], headings: tuple[str, ...]
) -> Iterator[str]:
  if record.most_used:
    yield _group(_MOST_USED, record.most_used)
  sections = fields_of(record)
  for heading in sorted(
    sections, key=lambda h: headings.index(h) if h in headings else -1
  ):
    names = [
      name
      for name, spec in sections[heading].items()
      if not spec.never and name not in record.most_used
    ]
    if names:
      yield _group(heading or "Flags", names)
  yield "--helpfull lists what every command has, too: how it logs, flag files."


def _group(heading: str, names: Iterable[str]) -> str:
  return "\n".join([f"{heading}:", *map(_entry, names)])


def _entry(name: str) -> str:
  """Returns a flag's lines of the help page: its form and its meaning."""
  flag, spec = flags.FLAGS[name], definition_of(name).spec
  title = f"--[no]{name}" if flag.boolean else f"--{name}"
  if flag.short_name:
    title = f"-{flag.short_name}, {title}"
  if spec.choices:
    title += f"={'|'.join(spec.choices)}"
  if default := shown_default(flag):
    title += f"  ({default})"
  low, high = _WIDTHS
  width = min(max(shutil.get_terminal_size().columns, low), high)
  indent = "      "
  text = textwrap.fill(
    spec.text, width, initial_indent=indent, subsequent_indent=indent
  )
  return f"  {title}\n{text}"


def shown_default(flag: flags.Flag) -> str:
  """Returns a flag's default as one would write it; empty if it has none."""
  if flag.default in (None, "", []):
    return ""
  if isinstance(flag.default, list):
    return ",".join(flag.default)
  return str(flag.default).lower() if flag.boolean else str(flag.default)
