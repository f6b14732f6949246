"""Importing TensorFlow without what it says of itself while it starts.

Its libraries write lines about oneDNN and CUDA before anything can tell them
not to. They are kept back, and shown if the start fails.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_STDERR = 2
_said = ""


def start_tensorflow() -> None:
  """Imports TensorFlow and has it look for devices, in silence.

  If TF_CPP_MIN_LOG_LEVEL is set in the environment, nothing is kept back. If
  not, TensorFlow's C++ code logs nothing later either: what goes wrong there is
  raised as an exception.
  """
  if _LEVEL in os.environ:
    _start()
    return
  os.environ[_LEVEL] = "3"
  with _stderr_kept_back():
    _start()


def _start() -> None:
  import tensorflow as tf

  tf.config.list_physical_devices()


def said_at_start() -> str:
  """Returns what TensorFlow has written while it started."""
  return _said


@contextlib.contextmanager
def _stderr_kept_back() -> Iterator[None]:
  """Keeps what is written to file descriptor 2; shows it if the body fails."""
  global _said
  try:
    kept = tempfile.TemporaryFile()  # noqa: SIM115  # Closed below.
    saved = os.dup(_STDERR)
  except OSError:  # It is closed, or there is no place to keep anything.
    yield
    return
  with kept:
    show("")
    os.dup2(kept.fileno(), _STDERR)
    failed = True
    try:
      yield
      failed = False
    finally:
      show("")
      os.dup2(saved, _STDERR)
      os.close(saved)
      kept.seek(0)
      _said = kept.read().decode("utf-8", errors="replace")
      if failed:
        show(_said)


def show(text: str) -> None:
  """Writes to standard error, if there is one, and empties its buffer."""
  if sys.stderr is not None:
    sys.stderr.write(text)
    sys.stderr.flush()
