"""Public interface of the flags package.

A command defines its flags in a function, never at import, and hands that
function to `run`. Nothing here imports TensorFlow, so `--help` and a mistyped
flag answer at once.
"""

import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags

from flags._base import define_base
from flags._benchmark import define_benchmark
from flags._conventions import help_wrap
from flags._device import define_device
from flags._distribution import define_distribution
from flags._performance import (
  define_performance,
  fixed_loss_scale,
  thread_environment,
)

__all__ = [
  "define_base",
  "define_benchmark",
  "define_device",
  "define_distribution",
  "define_performance",
  "fixed_loss_scale",
  "help_wrap",
  "run",
  "thread_environment",
]


def run(define_flags: Callable[[], None], main: Callable[..., Any]) -> None:
  """Defines a command's flags, parses the command line, and calls `main`.

  Args:
    define_flags: defines the flags.
    main: called with the positional arguments.
  """
  before = set(flags.FLAGS)
  define_flags()
  # absl's --help lists the flags that belong to the script that was started;
  # through a console script that is not the module which defined them.
  for name in sorted(set(flags.FLAGS) - before):
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  app.run(main)
