"""A shell whose calls of this project's commands run in the test's process.

TensorFlow takes seconds to start, and a page of the manual has many commands.
Here bash runs a script as it stands, with pipes, redirections and variables;
only the commands themselves are handed to this process, one after another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import threading
from collections.abc import Mapping

import command_line
from command_line import Done

# Each command's function sends its directory and arguments down one pipe, and
# waits for its exit status from the other. Standard input is handed over where
# it is a pipe or a file.
_FUNCTIONS = """
in_process() {
  : > "$STREAMS/in"
  if [ -p /dev/stdin ] || [ -f /dev/stdin ]; then cat > "$STREAMS/in"; fi
  printf '%s\\0' "$PWD" "$#" "$@" >&"$REQUESTS"
  local status
  read -r status <&"$STATUSES" || return 70
  cat "$STREAMS/out"
  cat "$STREAMS/err" >&2
  return "$status"
}
"""


@dataclasses.dataclass(frozen=True)
class CommandShell:
  """Runs bash scripts.

  Attributes:
    commands: what a command is called in the scripts, and its module, as
      `command_line.run` wants it.
    streams: a directory of its own, where standard streams pass through.
    prelude: bash, run before each script.
  """

  commands: Mapping[str, str]
  streams: pathlib.Path
  prelude: str = ""

  def run(
    self,
    script: str,
    directory: pathlib.Path,
    variables: Mapping[str, str] | None = None,
  ) -> Done:
    """Runs a script.

    Args:
      script: bash; unless its prelude says otherwise, it goes on after errors.
      directory: where it begins.
      variables: of its environment, beside this process's own.
    """
    self.streams.mkdir(exist_ok=True)
    functions = "".join(
      f'{name}() {{ in_process {name} "$@"; }}\n' for name in self.commands
    )
    requests, requests_end = os.pipe()
    statuses, statuses_end = os.pipe()
    environment = {
      **os.environ,
      **(variables or {}),
      "STREAMS": str(self.streams),
      "REQUESTS": str(requests_end),
      "STATUSES": str(statuses),
    }
    with contextlib.ExitStack() as stack:
      answers = stack.enter_context(open(statuses_end, "w"))
      asked = stack.enter_context(open(requests, "rb"))
      process = stack.enter_context(
        subprocess.Popen(
          ["bash", "-c", _FUNCTIONS + functions + self.prelude + script],
          cwd=directory,
          env=environment,
          pass_fds=(requests_end, statuses),
          stdin=subprocess.DEVNULL,
          stdout=subprocess.PIPE,
          stderr=subprocess.PIPE,
          text=True,
          encoding="utf-8",
        )
      )
      os.close(requests_end)
      os.close(statuses)
      # Read while it runs, or a full pipe would keep it waiting.
      told: list[tuple[str, str]] = []
      reader = threading.Thread(
        target=lambda: told.append(process.communicate())
      )
      reader.start()
      buffer = _Fields(asked)
      while (cwd := buffer.next()) is not None:
        arguments = [buffer.next() for _ in range(int(buffer.next() or 0))]
        answers.write(f"{self._serve(cwd, *arguments)}\n")
        answers.flush()
      reader.join()
    return Done(process.returncode, *told[0])

  def _serve(self, cwd: str, name: str, *arguments: str) -> int:
    """Runs one command where the script is; returns its exit status."""
    with contextlib.chdir(cwd):
      done = command_line.run(
        self.commands[name],
        *arguments,
        stdin=(self.streams / "in").read_bytes(),
      )
    (self.streams / "out").write_text(done.stdout, "utf-8")
    (self.streams / "err").write_text(done.stderr, "utf-8")
    return done.status


class _Fields:
  """Reads fields that end in a NUL byte."""

  def __init__(self, stream):
    self._stream = stream
    self._rest = b""

  def next(self) -> str | None:
    """Returns the next field; None at the end of the stream."""
    while b"\0" not in self._rest:
      more = os.read(self._stream.fileno(), 1 << 16)
      if not more:
        return None
      self._rest += more
    field, _, self._rest = self._rest.partition(b"\0")
    return field.decode("utf-8")
