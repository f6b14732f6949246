r"""Loads the service, and compares every answer with what predict makes.

    python benchmarks/serve.py --model_dir=model --text=val.en

First, predict translates the file: its text is what every answer must be. Then
a server is started, and in turns predict translates the file again, in a
process of its own, and as many clients as the server takes ask it without
pause: its capacity, beside predict's. Then this process sends requests of one
line each at 0.5, 1 and 3 times that capacity, whether or not earlier ones are
answered, for `--seconds` each; what is refused is not asked again. Prints
a line for each, with the times of those that were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from running_server import Server, running_server

HEAD = (
  b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
# Requests that wait for the service at a time, when its capacity is measured.
CLIENTS = 512
# The server closes a connection that is not used for five seconds.
IDLE_SECONDS = 3.0


def predict(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
  """Returns the lines and their translations."""
  text = pathlib.Path(arguments.text).read_text("utf-8")
  lines = [line.strip() for line in text.split("\n")[:-1]]
  with tempfile.TemporaryDirectory() as directory:
    out = pathlib.Path(directory) / "out"
    subprocess.run(
      [
        *(sys.executable, "-m", "official_transformer.transformer_main"),
        *("--mode=predict", f"--model_dir={arguments.model_dir}"),
        *(f"--file={arguments.text}", f"--file_out={out}"),
        f"--engine={arguments.engine}",
      ],
      check=True,
      stderr=subprocess.DEVNULL,
    )
    return lines, out.read_text("utf-8").split("\n")[:-1]


def predict_rate(arguments: argparse.Namespace, lines: Sequence[str]) -> float:
  """Returns the lines a second of predict, loading left out."""
  measured = subprocess.run(
    [
      *(sys.executable, HERE / "measure_decoding.py", "--workers=2"),
      *(f"--model_dir={arguments.model_dir}", f"--text={arguments.text}"),
      *(f"--beam_size={arguments.beam_size}", f"--engine={arguments.engine}"),
    ],
    check=True,
    capture_output=True,
    text=True,
  )
  found = json.loads(measured.stdout.strip().split("\n")[-1])
  return len(lines) / float(np.median(found["seconds"]))


class Connections:
  """Connections to the server that are used again.

  A client of a library would take more of the processors than it leaves the
  server.
  """

  def __init__(self, port: int) -> None:
    self._port = port
    self._idle: list[tuple[float, asyncio.StreamReader, Any]] = []

  async def post(self, question: Any) -> tuple[int, bytes]:
    """Returns the status and the body of an answer."""
    body = json.dumps(question).encode("utf-8")
    reader = None
    while self._idle and reader is None:
      since, reader, writer = self._idle.pop()
      if time.monotonic() - since > IDLE_SECONDS:
        writer.close()
        reader = None
    if reader is None:
      reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
    writer.write(HEAD % len(body) + body)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    (length,) = re.findall(rb"content-length: (\d+)", head)
    answer = await reader.readexactly(int(length))
    if b"connection: close" in head:
      writer.close()
    else:
      self._idle.append((time.monotonic(), reader, writer))
    return int(head.split(b" ", 2)[1]), answer


class Load:
  """Requests of one line, and what became of them.

  Attributes:
    statuses: how many were answered with each.
    seconds: of those that were translated.
    wrong: answers that are not predict's.
  """

  def __init__(
    self,
    connections: Connections,
    lines: Sequence[str],
    expected: Sequence[str],
  ) -> None:
    self.connections = connections
    self.lines, self.expected = lines, expected
    self.statuses: collections.Counter = collections.Counter()
    self.seconds: list[float] = []
    self.wrong = 0

  async def ask(self, row: int) -> None:
    """Sends one line."""
    began = time.perf_counter()
    try:
      status, answer = await self.connections.post({"text": self.lines[row]})
    except (OSError, EOFError) as error:
      self.statuses[type(error).__name__] += 1
      return
    self.statuses[status] += 1
    if status == 200:
      self.seconds.append(time.perf_counter() - began)
      found = json.loads(answer)["translations"][0]["translation"]
      self.wrong += found != self.expected[row]

  async def without_pause(self, seconds: float) -> float:
    """Returns the lines a second that many clients are answered."""
    end = time.perf_counter() + seconds
    rng = random.Random(0)

    async def client() -> None:
      while time.perf_counter() < end:
        await self.ask(rng.randrange(len(self.lines)))

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return self.statuses[200] / (time.perf_counter() - began)

  async def at_rate(self, rate: float, seconds: float) -> float:
    """Sends so many lines a second; returns those translated a second."""
    rng = random.Random(1)
    began = time.perf_counter()
    sent = set()
    for number in range(int(rate * seconds)):
      pause = began + number / rate - time.perf_counter()
      if pause > 0:
        await asyncio.sleep(pause)
      task = asyncio.create_task(self.ask(rng.randrange(len(self.lines))))
      sent.add(task)
      task.add_done_callback(sent.discard)
    await asyncio.gather(*sent)
    return self.statuses[200] / (time.perf_counter() - began)


def resident_megabytes(server: Server) -> float:
  """Returns the memory that the server's process has."""
  status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
  (line,) = (s for s in status.split("\n") if s.startswith("VmRSS"))
  return int(line.split()[1]) / 1024


async def measure(
  arguments: argparse.Namespace,
  server: Server,
  lines: Sequence[str],
  expected: Sequence[str],
) -> None:
  """Prints what the loads give."""
  connections = Connections(server.port)
  warm = Load(connections, lines, expected)
  await warm.without_pause(10)
  capacities, ratios = [], []
  for _ in range(arguments.rounds):
    # Nothing is asked of the server meanwhile.
    predicted = predict_rate(arguments, lines)
    load = Load(connections, lines, expected)
    capacity = await load.without_pause(arguments.capacity_seconds)
    print(f"{'predict':14} {predicted:8.1f} lines/s")
    print(row("no pause", capacity, load, server), flush=True)
    capacities.append(capacity)
    ratios.append(capacity / predicted)
  print(f"capacity: {np.median(ratios):.2f} of predict", flush=True)
  capacity = float(np.median(capacities))
  for share in (0.5, 1.0, 3.0):
    load = Load(connections, lines, expected)
    rate = await load.at_rate(share * capacity, arguments.seconds)
    print(row(f"{share:g} x capacity", rate, load, server), flush=True)


def row(name: str, rate: float, load: Load, server: Server) -> str:
  """Returns a line of the table."""
  times = np.percentile(load.seconds, [50, 95, 99])
  answered = sorted(load.statuses.items(), key=str)
  return "  ".join(
    [
      f"{name:14} {rate:8.1f} lines/s",
      *(f"p{p} {s:.3f}" for p, s in zip((50, 95, 99), times, strict=True)),
      f"wrong {load.wrong}",
      f"{resident_megabytes(server):.0f} MB",
      ", ".join(f"{number} x {status}" for status, number in answered),
    ]
  )


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--text", required=True)
  parser.add_argument("--engine", default="tensorflow")
  parser.add_argument("--beam_size", type=int, default=5, help="the model's")
  parser.add_argument("--rounds", type=int, default=3, help="of the capacity")
  parser.add_argument("--seconds", type=float, default=100, help="of a load")
  parser.add_argument("--capacity_seconds", type=float, default=30)
  parser.add_argument("--flags", default="", help="more of the server's")
  arguments: Any = parser.parse_args()
  lines, expected = predict(arguments)
  with tempfile.TemporaryDirectory() as directory:
    flags = [f"--engine={arguments.engine}", *arguments.flags.split()]
    with running_server(
      arguments.model_dir, pathlib.Path(directory), *flags
    ) as server:
      asyncio.run(measure(arguments, server, lines, expected))


if __name__ == "__main__":
  main()
