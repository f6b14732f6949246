"""Commands run inside the test's own process: TensorFlow is imported once."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from absl import flags

from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import Command

# Absl's own, which stay; everything else is defined anew for each command.
_ABSL_FLAGS = frozenset(flags.FLAGS)
MAIN = "official_transformer.transformer_main"
BLEU = "official_transformer.compute_bleu"
IMPORT = "official_transformer.import_checkpoint"
TRANSLATE = "official_transformer.translate"
SERVER = "official_transformer.translation_server"
REPORT = "official_transformer.translation_report"
PREPARE = "data_prep.prepare_data"
DEMO = "data_prep.demo_corpus"
DOWNLOAD = "data_prep.data_download"
CHECK = "data_prep.check_data"


class Done(NamedTuple):
  """How a command ended.

  Attributes:
    status: its exit status.
    stdout: what it has printed.
    stderr: what it has said beside that.
  """

  status: int
  stdout: str
  stderr: str


def record_of(command: str) -> Command:
  """Returns the record of a command's flags, or those of its modes."""
  return importlib.import_module(command).OPTIONS


@contextlib.contextmanager
def fresh_flags(command: str) -> Iterator[flags.FlagValues]:
  """Defines a command's flags, and no other's, for the body."""
  forget_flags()
  flags_core.define_all(record_of(command))
  try:
    yield flags.FLAGS
  finally:
    forget_flags()


def ours() -> list[str]:
  """Returns the flags that are not absl's own, short names among them."""
  return sorted(set(flags.FLAGS) - _ABSL_FLAGS)


def forget_flags() -> None:
  """Leaves absl's own flags alone, with their defaults."""
  for name in ours():
    delattr(flags.FLAGS, name)
  flags.FLAGS.unparse_flags()
  flags.FLAGS["verbosity"].unparse()


@contextlib.contextmanager
def _streams(stdin: str | bytes) -> Iterator[tuple[io.BytesIO, io.StringIO]]:
  """Stands for the standard streams, and for the log."""
  content = stdin.encode() if isinstance(stdin, str) else stdin
  out, err = io.BytesIO(), io.StringIO()
  old = sys.stdin, sys.stdout, sys.stderr
  sys.stdin = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
  sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
  sys.stderr = err
  handler = logging.StreamHandler(err)
  logger = logging.getLogger("absl")
  logger.addHandler(handler)
  try:
    yield out, err
  finally:
    logger.removeHandler(handler)
    sys.stdin, sys.stdout, sys.stderr = old


def run(command: str, *arguments: object, stdin: str | bytes = "") -> Done:
  """Runs a command as its own process would be run.

  Args:
    command: such as `MAIN`.
    *arguments: of the command line.
    stdin: what standard input holds.
  """
  from official_transformer.errors import describe_failures

  module = importlib.import_module(command)
  environment = dict(os.environ)
  with fresh_flags(command), _streams(stdin) as (out, err):
    status: int | str | None = 0
    try:
      rest = flags_core.parse_flags([command, *map(str, arguments)])
      describe_failures(module.main)(rest)
    except SystemExit as end:
      status = end.code
    finally:
      os.environ.clear()
      os.environ.update(environment)
    sys.stdout.flush()
    return Done(int(status or 0), out.getvalue().decode(), err.getvalue())


def succeed(command: str, *arguments: object, stdin: str | bytes = "") -> Done:
  """Runs a command that must succeed."""
  done = run(command, *arguments, stdin=stdin)
  assert done.status == 0, done.stderr
  return done


def fail(command: str, *arguments: object, status: int = 2) -> str:
  """Runs a command that must fail in good order; returns what it says."""
  done = run(command, *arguments)
  assert done.status == status, done.stderr
  assert "Traceback" not in done.stderr
  return done.stderr
