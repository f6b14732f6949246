"""Public interface of the flags package.

A command's flags are the fields of a record; it hands the record, or the
records of its modes, to `run`. Nothing here imports TensorFlow, so `--help` and
a mistyped flag answer at once.
"""

import os
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging

from official_transformer.commands.flag_records import (
  Command,
  Modes,
  define_flags,
  define_modes,
  definition_of,
  expand_home,
  parsed,
  without_effect,
)
from official_transformer.commands.help_page import define_help
from official_transformer.commands.log_options import (
  LogOptions,
  configure_logging,
)
from official_transformer.commands.shared_options import (
  DTYPES,
  BaseOptions,
  BeamOptions,
  BenchmarkOptions,
  DeviceOptions,
  DistributionOptions,
  GpuOptions,
  PerformanceOptions,
)
from official_transformer.storage.standard_streams import occupy_closed

__all__ = [
  "DTYPES",
  "BeamOptions",
  "begin",
  "configure_logging",
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
  "help_wrap",
  "parse_flags",
  "parsed",
  "run",
  "without_effect",
]


def define_base(
  data_dir: str = "/tmp", model_dir: str = "/tmp", batch_size: int | None = 32
) -> None:
  """Defines `--data_dir`, `--model_dir` and `--batch_size`.

  Args:
    data_dir: default of `--data_dir`.
    model_dir: default of `--model_dir`.
    batch_size: default of `--batch_size`.
  """
  define_flags(
    BaseOptions, data_dir=data_dir, model_dir=model_dir, batch_size=batch_size
  )


def define_performance() -> None:
  """Defines precision, XLA, threads and the input pipeline's flags."""
  define_flags(PerformanceOptions)


def define_distribution() -> None:
  """Defines `--num_gpus`, `--distribution_strategy` and their details."""
  define_flags(DistributionOptions)


def define_num_gpus() -> None:
  """Defines `--num_gpus`."""
  define_flags(GpuOptions)


def define_device() -> None:
  """Defines `--tpu` and upstream's other flags of TPUs."""
  define_flags(DeviceOptions)


def define_benchmark() -> None:
  """Defines `--log_steps`, and upstream's sinks of benchmark results."""
  define_flags(BenchmarkOptions)


def help_wrap(text: str) -> str:
  """Wraps a help text to 80 columns, as upstream's function does."""
  return flags.text_wrap(textwrap.dedent(text), length=80)


def define_all(command: Command) -> None:
  """Defines the flags of a command, and the flags that all commands share.

  Args:
    command: the record that they are made from, or the records of its modes.
  """
  if isinstance(command, Modes):
    define_modes(command)
  else:
    define_flags(command)
  define_flags(LogOptions)


def begin(command: Command) -> Any:
  """Starts a command after its flags have been read.

  Sets up logging by its flags, expands `~` in paths, and reports flags without
  effect.

  Args:
    command: as in `define_all`.

  Returns:
    The command line as a record of the command, or of its mode.

  Raises:
    InputError: if it contradicts itself.
  """
  configure_logging()
  expand_home(flags.FLAGS)
  options = parsed(command)
  for line in without_effect(options):
    logging.warning("%s", line)
  return options


def run(command: Command, main: Callable[..., Any]) -> None:
  """Defines a command's flags, parses the command line, and calls `main`.

  Args:
    command: as in `define_all`.
    main: called with the positional arguments.
  """
  occupy_closed()
  define_all(command)
  define_help(command, sys.modules[main.__module__].__doc__ or "")
  app.run(main, flags_parser=parse_flags)


def parse_flags(argv: list[str]) -> list[str]:
  """Parses a command line; an error in it ends the process.

  The exit status is then 2, as for all errors of the user; absl's would be 1.

  Args:
    argv: arguments of the command line.

  Returns:
    The name of the program, and positional arguments.
  """
  try:
    return flags.FLAGS(argv)
  except (flags.Error, UnicodeDecodeError) as error:  # Of a flag file.
    print(
      f"{os.path.basename(argv[0])}: error: {error}\nPass --help to see the "
      "flags.",
      file=sys.stderr,
    )
    sys.exit(2)
