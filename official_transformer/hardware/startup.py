"""Importing TensorFlow without its messages at the start.

TensorFlow's libraries write lines about oneDNN and CUDA before logging can be
configured. The lines are held back, and shown if the start fails.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator

from official_transformer.hardware.processor import prefer_onednn

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_STDERR = 2
_said = ""


def start_tensorflow() -> None:
  """Imports TensorFlow and has it look for devices, in silence.

  If TF_CPP_MIN_LOG_LEVEL is set in the environment, all lines are shown. If
  not, TensorFlow's C++ code does not log later either: its errors are raised as
  exceptions.
  """
  if _LEVEL in os.environ:
    _start()
    return
  os.environ[_LEVEL] = "3"
  with _stderr_kept_back():
    _start()


def _start() -> None:
  if "tensorflow" not in sys.modules:
    prefer_onednn()
    with _not_imported("matplotlib"), _kept_for_ever():
      import tensorflow  # noqa: F401
  import tensorflow as tf

  tf.config.list_physical_devices()


@contextlib.contextmanager
def grappler_disabled() -> Iterator[None]:
  """Has TensorFlow run the body's graphs without optimising them first.

  For graphs that run once: optimising the graph of a search takes half a
  second, and saves a tenth of the time of a sentence.
  """
  import tensorflow as tf

  name = "disable_meta_optimizer"
  before = tf.config.optimizer.get_experimental_options().get(name, False)
  tf.config.optimizer.set_experimental_options({name: True})
  try:
    yield
  finally:
    tf.config.optimizer.set_experimental_options({name: before})


@contextlib.contextmanager
def _kept_for_ever() -> Iterator[None]:
  """Excludes the body's objects from later garbage collections.

  TensorFlow's modules are a million objects that stay. To go through them
  again and again takes half a second while they are imported, and as long when
  the process ends. Only for a first import: all that there is stays, garbage
  too.
  """
  was_enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    gc.freeze()
    if was_enabled:
      gc.enable()


@contextlib.contextmanager
def _not_imported(name: str) -> Iterator[None]:
  """Makes a package look as if it were not installed.

  Keras imports matplotlib, if it is installed, for pictures that this package
  does not use: half a second of each start.
  """
  if name in sys.modules:
    yield
    return
  sys.modules[name] = None  # type: ignore[assignment]
  try:
    yield
  finally:
    del sys.modules[name]


def said_at_start() -> str:
  """Returns TensorFlow's messages at its start."""
  return _said


@contextlib.contextmanager
def _stderr_kept_back() -> Iterator[None]:
  """Holds back standard error; shows it if the body fails."""
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
