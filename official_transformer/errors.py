"""Errors that end a command in one line, without a traceback."""

from __future__ import annotations

import functools
import os
import signal as signals
import sys
from collections.abc import Callable


class InputError(ValueError):
  """Something a user passed is wrong: a flag, a file, a directory.

  The message has the fault, its place, the likely cause and the remedy. The
  commands print it without a traceback and exit with status 2.
  """


class RunError(RuntimeError):
  """A run that cannot go on, through nothing that was passed wrongly.

  The command lines print it without a traceback and exit with status 1.
  """


class Interrupted(BaseException):
  """A signal has ended a run in good order.

  The commands print it and exit with 128 plus the signal's number, as shells
  report a process that a signal has ended. Like `KeyboardInterrupt`, it is not
  caught by `except Exception`.

  Attributes:
    signal: the signal's number.
  """

  def __init__(self, signal: int, message: str = "") -> None:
    super().__init__(message)
    self.signal = signal


# Signals that end a process in good order: termination, Ctrl-C, and a closed
# terminal. Windows lacks the last one.
ENDING_SIGNALS = tuple(
  getattr(signals, name)
  for name in ("SIGTERM", "SIGINT", "SIGHUP")
  if hasattr(signals, name)
)


def signal_name(number: int) -> str:
  """Returns a signal's name, such as SIGTERM."""
  return signals.Signals(number).name


def describe_failures(main: Callable[[list[str]], int | None]) -> Callable:
  """Wraps a command's `main` so that a user's mistake costs one message.

  Args:
    main: takes the command line that flags have left over, which may hold
      nothing but the program's name; returns an exit status or None.

  Returns:
    A `main` that exits with status 2 after an `InputError`, 1 after a
    `RunError` and if the operating system refuses (a full disk, a permission),
    130 after an interrupt, 143 after SIGTERM. Any other exception is a defect:
    it passes, so that its traceback is shown.
  """

  @functools.wraps(main)
  def guarded(argv: list[str]) -> None:
    command = os.path.basename(sys.argv[0])
    try:
      if argv[1:]:
        raise InputError(f"unexpected arguments: {' '.join(argv[1:])}")
      status = main(argv)
      sys.stdout.flush()
    except InputError as error:
      print(f"{command}: error: {error}", file=sys.stderr)
      status = 2
    except BrokenPipeError:
      # The reader of our output has gone, as in `... | head`.
      os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
      status = 1
    except (OSError, RunError) as error:
      print(f"{command}: error: {error}", file=sys.stderr)
      status = 1
    except Interrupted as stop:
      name = signal_name(stop.signal)
      print(f"{command}: stopped by {name}: {stop}", file=sys.stderr)
      status = 128 + stop.signal
    except KeyboardInterrupt:
      print(f"{command}: interrupted", file=sys.stderr)
      status = 130
    sys.exit(status or 0)

  return guarded
