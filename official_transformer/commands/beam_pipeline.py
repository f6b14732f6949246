"""Making and running Apache Beam pipelines, and explaining their failures.

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
# How a failure of ours looks after it has come from another process.
_INPUT_ERROR = re.compile(r"InputError: (.*)")
_SYSTEM_ERROR = re.compile(r"\[Errno (\d+)\] (.*)")
_WHERE = re.compile(r" \[while running .*", re.DOTALL)


def check(runner: str, options: str) -> None:
  """Checks Beam's own options before anything is begun.

  Args:
    runner: as Beam names it.
    options: as on a command line of theirs.

  Raises:
    InputError: if Beam is not installed; if an option has an impossible value,
      is missing, or is unknown to DirectRunner. With another runner, unknown
      options pass, because its job server may have options of its own.
  """
  if importlib.util.find_spec("apache_beam") is None:
    raise InputError(
      f"--runner={runner} needs Apache Beam: pip install "
      "'official-transformer[beam]'"
    )
  with _quiet():  # Beam logs each store that it cannot use.
    import apache_beam  # noqa: F401
  try:
    parts = shlex.split(options)
  except ValueError as error:
    raise InputError(f"--beam_options={options}: {error}") from None
  said = _complaint(parts)
  if said and ("error:" in said or runner == DIRECT):
    raise InputError(f"--beam_options={options}: {said}")
  for name in ("-h", "--help", "--runner"):
    if any(part.split("=")[0] == name for part in parts):
      raise InputError(f"--beam_options={options}: {name} has no place there")
  _check_together(runner, parts)


def _check_together(runner: str, options: Sequence[str]) -> None:
  """Refuses options that a runner cannot do with."""
  import apache_beam as beam
  from apache_beam.options import pipeline_options

  parsed = pipeline_options.PipelineOptions(list(options))
  direct = parsed.view_as(pipeline_options.DirectOptions)
  if direct.direct_num_workers < 0:
    raise InputError("--beam_options: --direct_num_workers is below 0")
  portable = parsed.view_as(pipeline_options.PortableOptions)
  if runner == "PortableRunner" and not portable.job_endpoint:
    raise InputError(
      "--runner=PortableRunner needs the address of a job server: "
      "--beam_options=--job_endpoint=HOST:PORT"
    )
  try:
    with _quiet():
      beam.Pipeline(None if runner == DIRECT else runner, options=parsed)
  except ValueError as error:
    said = " ".join(str(error).split("\n")[1:]) or str(error)
    raise InputError(f"--runner={runner}, --beam_options: {said}") from None


@contextlib.contextmanager
def _level(logger: logging.Logger, level: int) -> Iterator[None]:
  """Sets a logger's level for a time."""
  before = logger.level
  logger.setLevel(level)
  try:
    yield
  finally:
    logger.setLevel(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Keeps all back that is less than an error."""
  logging.disable(logging.WARNING)
  try:
    yield
  finally:
    logging.disable(logging.NOTSET)


def _complaint(options: Sequence[str]) -> str:
  """Returns the last line of Beam's message about options."""
  from apache_beam.options.pipeline_options import PipelineOptions

  said = io.StringIO()
  logger = logging.getLogger("apache_beam.options.pipeline_options")
  handler = logging.StreamHandler(said)
  logger.addHandler(handler)
  logger.propagate = False
  try:
    with (
      _level(logger, logging.WARNING),
      contextlib.redirect_stderr(said),
      contextlib.suppress(SystemExit),
    ):
      PipelineOptions(list(options)).get_all_options()
  finally:
    logger.removeHandler(handler)
    logger.propagate = True
  return (said.getvalue().strip().splitlines() or [""])[-1]


def run(runner: str, options: str, build: Callable[[Any], None]) -> None:
  """Makes a pipeline and runs it to its end.

  Args:
    runner: as Beam names it.
    options: options that have passed `check`.
    build: adds the stages to a `beam.Pipeline`.

  Raises:
    InputError: if the input of the pipeline is wrong.
    RunError: if it fails otherwise.
  """
  import apache_beam as beam
  from apache_beam.options.pipeline_options import PipelineOptions
  from apache_beam.runners.portability.fn_api_runner import FnApiRunner

  # DirectRunner would look for another on the network first, and use this one
  # where it has none.
  chosen: Any = FnApiRunner() if runner == DIRECT else runner
  try:
    pipeline = beam.Pipeline(
      chosen, options=PipelineOptions(shlex.split(options))
    )
    build(pipeline)
    # Beam logs each of its stages, the messages of its workers, and, once more,
    # a failure that also comes as an exception.
    with _level(logging.getLogger("apache_beam"), logging.CRITICAL):
      pipeline.run().wait_until_finish()
  except (Exception, SystemExit) as error:
    raise _as_ours(runner, error) from error


def _as_ours(runner: str, error: BaseException) -> Exception:
  """Returns the error that explains a failure of a pipeline."""
  said = str(error).strip()
  if isinstance(error, InputError):
    return InputError(_WHERE.sub("", said))
  if found := _INPUT_ERROR.search(said):
    return InputError(_WHERE.sub("", found[1]))
  if found := _SYSTEM_ERROR.search(said):
    return OSError(int(found[1]), _WHERE.sub("", found[2]))
  last = said.splitlines()[-1] if said else repr(error)
  hint = "" if runner == DIRECT else "; is the job server that it needs there?"
  return RunError(f"the pipeline of {runner} has failed: {last}{hint}")
