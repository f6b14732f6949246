"""Failures that a run survives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from absl import logging


@contextlib.contextmanager
def failures_are_logged(what: str) -> Iterator[None]:
  """Logs an exception of the body, which goes no further; signals pass.

  Args:
    what: subject of the log message, such as "evaluation".
  """
  try:
    yield
  except Exception as error:
    reason = str(error).split("\n")[0]
    kind = type(error).__name__
    logging.error("%s failed (%s: %s); the run goes on", what, kind, reason)
