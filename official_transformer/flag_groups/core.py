"""Public interface of the flags package.

A command defines its flags in a function, never at import, and hands that
function to `run`. Nothing here imports TensorFlow, so `--help` and a mistyped
flag answer at once.
"""

import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags

from official_transformer.flag_groups._base import define_base
from official_transformer.flag_groups._beam import define_beam
from official_transformer.flag_groups._benchmark import define_benchmark
from official_transformer.flag_groups._conventions import (
  Effect,
  accepted_only,
  define,
  definition_of,
  help_wrap,
  read_by,
  start_section,
  without_effect,
)
from official_transformer.flag_groups._device import define_device
from official_transformer.flag_groups._distribution import (
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
from official_transformer.storage.standard_streams import occupy_closed

__all__ = [
  "DTYPES",
  "Effect",
  "accepted_only",
  "configure_logging",
  "define",
  "define_all",
  "define_base",
  "define_beam",
  "define_benchmark",
  "define_device",
  "define_distribution",
  "define_num_gpus",
  "define_performance",
  "definition_of",
  "fixed_loss_scale",
  "help_wrap",
  "read_by",
  "run",
  "start_section",
  "thread_environment",
  "without_effect",
]


def define_all(define_flags: Callable[[], None]) -> None:
  """Defines a command's flags and those that every command has."""
  define_flags()
  start_section("Every command")
  define_log_format()


def run(define_flags: Callable[[], None], main: Callable[..., Any]) -> None:
  """Defines a command's flags, parses the command line, and calls `main`.

  Args:
    define_flags: defines the flags.
    main: called with the positional arguments.
  """
  occupy_closed()
  before = set(flags.FLAGS)
  define_all(define_flags)
  # absl's --help lists the flags that belong to the script that was started;
  # through a console script that is not the module which defined them.
  for name in sorted(set(flags.FLAGS) - before):
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])

  def configured(arguments: list[str]) -> Any:
    configure_logging()
    return main(arguments)

  app.run(configured)
