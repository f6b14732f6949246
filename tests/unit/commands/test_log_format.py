import logging as python_logging
import re

import command_line
import pytest
from absl import flags, logging

from official_transformer.commands import flags_core as core
from official_transformer.commands.log_options import PlainFormatter


def record(level, message="step %d", *arguments):
  return python_logging.LogRecord(
    "absl", level, "x.py", 7, message, arguments or (3,), None
  )


@pytest.mark.parametrize(
  ("level", "line"),
  [
    (python_logging.INFO, r"\d\d:\d\d:\d\d step 3"),
    (python_logging.WARNING, r"\d\d:\d\d:\d\d warning: step 3"),
    (python_logging.ERROR, r"\d\d:\d\d:\d\d error: step 3"),
  ],
)
def test_a_line_for_a_person(level, line):
  assert re.fullmatch(line, PlainFormatter().format(record(level)))


def test_a_traceback_follows():
  try:
    raise ValueError("so it is")
  except ValueError as error:
    found = record(python_logging.ERROR)
    found.exc_info = (ValueError, error, error.__traceback__)
  assert "ValueError: so it is" in PlainFormatter().format(found)


@pytest.mark.parametrize(
  ("arguments", "verbosity"),
  [([], logging.INFO), (["-v", "-1"], logging.WARNING)],
)
def test_the_users_verbosity_holds(arguments, verbosity):
  with command_line.fresh_flags(command_line.DEMO):
    flags.FLAGS(["command", "--output_dir=x", *arguments])
    core.configure_logging()
    assert logging.get_verbosity() == verbosity
