"""A translation server in a process of its own."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from waiting import LONGEST_SECONDS

MODULE = "official_transformer.translation_server"


class Server:
  """A server that runs.

  Attributes:
    process: its own.
    port: where it answers.
    log: what it says.
  """

  def __init__(self, process: subprocess.Popen, log: pathlib.Path) -> None:
    self.process = process
    self.log = log
    self.port = 0

  def url(self, path: str) -> str:
    """Returns an address of the server's."""
    return f"http://127.0.0.1:{self.port}{path}"

  def wait_until_ready(self) -> None:
    """Waits until it says where it answers."""
    began = time.monotonic()
    while time.monotonic() < began + LONGEST_SECONDS:
      said = self.log.read_text("utf-8")
      if found := re.search(r"ready: http://[\d.]+:(\d+)/", said):
        self.port = int(found[1])
        return
      assert self.process.poll() is None, said
      time.sleep(0.1)
    raise AssertionError(f"not ready: {self.log.read_text('utf-8')}")

  def get(self, path: str) -> Any:
    """Returns what an address answers, as text."""
    with urllib.request.urlopen(self.url(path), timeout=60) as answer:
      return answer.read().decode("utf-8")

  def translate(self, text: str | list[str], **options: Any) -> Any:
    """Returns what became of a line or several."""
    request = urllib.request.Request(
      self.url("/translate"),
      json.dumps({"text": text, **options}).encode("utf-8"),
      {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
      return json.load(answer)

  def stop(self, number: int = signal.SIGTERM) -> int:
    """Sends a signal; returns the exit status."""
    self.process.send_signal(number)
    return self.process.wait(60)


@contextlib.contextmanager
def running_server(
  model_dir: object, directory: pathlib.Path, *flags: str
) -> Iterator[Server]:
  """Runs a server for the body, which may stop it.

  Args:
    model_dir: the model.
    directory: gets its log.
    *flags: more of its command line.
  """
  log = directory / "server.log"
  with open(log, "wb") as stream:
    command = [sys.executable, "-m", MODULE, f"--model_dir={model_dir}"]
    process = subprocess.Popen(
      [*command, "--port=0", *flags],
      stdout=stream,
      stderr=subprocess.STDOUT,
      cwd=directory,
    )
  server = Server(process, log)
  try:
    server.wait_until_ready()
    yield server
  finally:
    process.terminate()
    try:
      process.wait(60)
    finally:
      process.kill()
