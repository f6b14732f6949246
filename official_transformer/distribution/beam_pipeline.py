"""Apache Beam pipelines, whatever they do: made, run, and how they fail.

Beam is an extra, and takes seconds to be imported.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from official_transformer.errors import InputError, RunError

DIRECT = "DirectRunner"
_OPTIONS_LOGGER = "apache_beam.options.pipeline_options"
# How a failure of ours looks after it has come from another process.
_INPUT_ERROR = re.compile(r"InputError: (.*)")
_WHERE = re.compile(r" \[while running .*", re.DOTALL)


def check(runner: str, options: str) -> list[str]:
  """Takes Beam's own options apart.

  Args:
    runner: as Beam names it.
    options: as on a command line of theirs.

  Raises:
    InputError: if Beam is not installed; if an option has a value that it
      cannot have, or is unknown to the runner of this machine. What others'
      job servers know cannot be known here.
  """
  if importlib.util.find_spec("apache_beam") is None:
    raise InputError(
      f"--runner={runner} needs Apache Beam: pip install "
      "'official-transformer[beam]'"
    )
  with _quiet():  # It tells of each store that it could not use.
    import apache_beam  # noqa: F401
  try:
    parts = shlex.split(options)
  except ValueError as error:
    raise InputError(f"--beam_options={options}: {error}") from None
  said = _complaint(parts)
  if said and ("error:" in said or runner == DIRECT):
    raise InputError(f"--beam_options={options}: {said}")
  return parts


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Keeps all back that is less than an error."""
  logging.disable(logging.WARNING)
  try:
    yield
  finally:
    logging.disable(logging.NOTSET)


def _complaint(options: Sequence[str]) -> str:
  """Returns the last line that Beam says of options."""
  from apache_beam.options.pipeline_options import PipelineOptions

  said = io.StringIO()
  logger = logging.getLogger(_OPTIONS_LOGGER)
  handler = logging.StreamHandler(said)
  logger.addHandler(handler)
  logger.propagate = False
  try:
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
      PipelineOptions(list(options)).get_all_options()
  finally:
    logger.removeHandler(handler)
    logger.propagate = True
  return (said.getvalue().strip().splitlines() or [""])[-1]


def run(
  runner: str, options: Sequence[str], build: Callable[[Any], None]
) -> None:
  """Makes a pipeline and runs it to its end.

  Args:
    runner: as Beam names it.
    options: from `check`.
    build: adds what is to be done to a `beam.Pipeline`.

  Raises:
    InputError: if what it has read is to blame.
    RunError: if it fails otherwise.
  """
  import apache_beam as beam
  from apache_beam.options.pipeline_options import PipelineOptions
  from apache_beam.runners.portability.fn_api_runner import FnApiRunner

  # It tells of each of its stages, and what its workers tell.
  logging.getLogger("apache_beam").setLevel(logging.WARNING)
  # DirectRunner would look for another on the network first, and use this one
  # where it has none.
  chosen: Any = FnApiRunner() if runner == DIRECT else runner
  try:
    pipeline = beam.Pipeline(chosen, options=PipelineOptions(list(options)))
    build(pipeline)
    pipeline.run().wait_until_finish()
  except Exception as error:
    # Whatever was raised elsewhere comes as text.
    said = str(error)
    if isinstance(error, InputError):
      raise InputError(_WHERE.sub("", said)) from None
    if found := _INPUT_ERROR.search(said):
      raise InputError(_WHERE.sub("", found[1])) from None
    last = said.strip().splitlines()[-1] if said.strip() else repr(error)
    raise RunError(f"the pipeline has failed: {last}") from error
