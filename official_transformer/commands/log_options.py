"""The format of log lines: plain, or absl's."""

from __future__ import annotations

import dataclasses
import logging as python_logging
import sys
import time

from absl import flags, logging

from official_transformer.commands.flag_records import Options, flag


class PlainFormatter(python_logging.Formatter):
  """Writes the time, `warning:` or `error:` if it is one, and the message."""

  def format(self, record: python_logging.LogRecord) -> str:
    """Returns a record's line."""
    parts = [time.strftime("%H:%M:%S", time.localtime(record.created))]
    if record.levelno >= python_logging.WARNING:
      parts.append(f"{record.levelname.lower()}:")
    line = " ".join([*parts, record.getMessage()])
    if record.exc_info:
      line += "\n" + self.formatException(record.exc_info)
    return line


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogOptions(Options):
  """Flags of every command."""

  heading = "Every command"

  log_format: str = flag(
    "plain",
    "How log lines begin: plain, with the time alone; absl, with level, "
    "thread, file and line too.",
    choices=("plain", "absl"),
  )


def configure_logging() -> None:
  """Sets the log's format and level by `--log_format` and `--verbosity`."""
  if not flags.FLAGS["verbosity"].present:
    logging.set_verbosity(logging.INFO)
  formatter = (
    PlainFormatter()
    if flags.FLAGS.log_format == "plain"
    else logging.PythonFormatter()
  )
  handler = logging.get_absl_handler()
  handler.setFormatter(formatter)
  if handler.python_handler.stream is None:  # It was closed at the start.
    handler.python_handler.setStream(sys.stderr)
