"""Public interface of the flags package.

A command's flags are the fields of a record, or are defined in a function,
never at import; it hands that record or function to `run`. Nothing here imports
TensorFlow, so `--help` and a mistyped flag answer at once.
"""

import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging

from official_transformer.flag_groups._base import define_base
from official_transformer.flag_groups._beam import BeamOptions
from official_transformer.flag_groups._benchmark import define_benchmark
from official_transformer.flag_groups._conventions import (
  Effect,
  accepted_only,
  define,
  definition_of,
  expand_home,
  help_wrap,
  read_by,
  start_section,
  without_effect,
)
from official_transformer.flag_groups._device import define_device
from official_transformer.flag_groups._distribution import (
  GpuOptions,
  define_distribution,
  define_num_gpus,
)
from official_transformer.flag_groups._log_format import (
  configure_logging,
  define_log_format,
)
from official_transformer.flag_groups._performance import (
  DTYPES,
  define_performance,
  fixed_loss_scale,
  thread_environment,
)
from official_transformer.flag_groups.records import Options, define_flags
from official_transformer.storage.standard_streams import occupy_closed

__all__ = [
  "DTYPES",
  "BeamOptions",
  "Effect",
  "GpuOptions",
  "accepted_only",
  "begin",
  "configure_logging",
  "define",
  "define_all",
  "define_base",
  "define_benchmark",
  "define_device",
  "define_distribution",
  "define_flags",
  "define_num_gpus",
  "define_performance",
  "definition_of",
  "expand_home",
  "fixed_loss_scale",
  "help_wrap",
  "read_by",
  "run",
  "start_section",
  "thread_environment",
  "without_effect",
]


def define_all(command: Callable[[], None] | type[Options]) -> None:
  """Defines a command's flags and those that every command has.

  Args:
    command: the record that they are made from, or a function that defines
      them.
  """
  if isinstance(command, type):
    define_flags(command)
  else:
    command()
  start_section("Every command")
  define_log_format()


def begin() -> None:
  """Does what every command does first, once its flags have been read.

  The log becomes what they say, `~` in paths the home directory, and those
  without effect are told.
  """
  configure_logging()
  expand_home(flags.FLAGS)
  for line in without_effect(flags.FLAGS):
    logging.warning("%s", line)


def run(
  command: Callable[[], None] | type[Options], main: Callable[..., Any]
) -> None:
  """Defines a command's flags, parses the command line, and calls `main`.

  Args:
    command: as in `define_all`.
    main: called with the positional arguments.
  """
  occupy_closed()
  before = set(flags.FLAGS)
  define_all(command)
  # absl's --help lists the flags that belong to the script that was started;
  # through a console script that is not the module which defined them.
  for name in sorted(set(flags.FLAGS) - before):
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])

  def configured(arguments: list[str]) -> Any:
    begin()
    return main(arguments)

  app.run(configured)
