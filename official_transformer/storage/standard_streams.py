"""Standard input, output and error, which may be closed.

For a closed stream, Python has None, and the system gives the stream's number
to the next file that is opened, which would then receive the output.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

_NAMES = ("stdin", "stdout", "stderr")
_closed: set[str] = set()


def occupy_closed() -> None:
  """Gives closed streams a place that takes everything and holds nothing.

  To be called before any file is opened.
  """
  for number, name in enumerate(_NAMES):
    try:
      os.fstat(number)
    except OSError:
      _closed.add(name)
      # The lowest number that is free: this one.
      os.open(os.devnull, os.O_RDWR)
    if getattr(sys, name) is None:
      mode = "r" if name == "stdin" else "w"
      stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
      setattr(sys, name, stream)


def standard_output() -> BinaryIO:
  """Returns standard output, of bytes.

  Raises:
    OSError: if it is closed.
  """
  if "stdout" in _closed:
    raise OSError("standard output is closed: there is no place to write to")
  return sys.stdout.buffer


def show_result(text: str) -> None:
  """Writes lines to standard output.

  Raises:
    OSError: if it is closed.
  """
  standard_output()
  print(text, flush=True)
