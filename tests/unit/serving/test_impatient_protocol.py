"""A server of large answers, and clients that take their time."""

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("uvicorn")
import uvicorn
from waiting import wait_for

from official_transformer.serving.impatient_protocol import protocol_with
from official_transformer.serving.settings import ServiceLimits

SIZE = 3_000_000
LIMITS = ServiceLimits(seconds=1.0)
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope, receive, send):
  assert scope["type"] == "http"
  fields = [(b"content-length", str(SIZE).encode())]
  await send({"type": "http.response.start", "status": 200, "headers": fields})
  await send({"type": "http.response.body", "body": b"x" * SIZE})


class Timers:
  """A loop whose timers run out when the test says."""

  def __init__(self, loop):
    self._loop = loop
    self.made = []

  def __getattr__(self, name):
    return getattr(self._loop, name)

  def call_later(self, seconds, callback, *arguments):
    # Not begun, but for what is of no interest here.
    handle = self._loop.call_later(3600, callback, *arguments)
    if callback.__name__ == "_abort_if_unread":
      assert seconds == LIMITS.seconds
      self.made.append((handle, callback))
    return handle


@pytest.fixture
def server():
  """Where a server answers, and the timers of its connection."""
  timers = []

  class Protocol(protocol_with(LIMITS)):
    def connection_made(self, transport):
      self.loop = Timers(self.loop)
      timers.append(self.loop)
      super().connection_made(transport)

  config = uvicorn.Config(
    application, http=Protocol, lifespan="off", log_config=None
  )
  server = uvicorn.Server(config)
  listener = socket.socket()
  listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
  listener.bind(("127.0.0.1", 0))
  thread = threading.Thread(target=server.run, args=[[listener]])
  thread.start()
  while not server.started:
    time.sleep(0.01)
  yield listener.getsockname()[1], timers
  server.should_exit = True
  thread.join()
  listener.close()


@contextlib.contextmanager
def client(port):
  with socket.socket() as made:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(120)
    made.connect(("127.0.0.1", port))
    yield made


def read(made):
  """Reads an answer; returns how many bytes it had."""
  size = 0
  while size < SIZE and (chunk := made.recv(60_000)):
    size += len(chunk)
  return size


def timer_of_answer(timers, number):
  """Waits until an answer's time has begun; returns its timer."""
  wait_for(lambda: timers and len(timers[0].made) >= number)
  return timers[0].made[number - 1]


def test_the_time_of_an_answer_that_was_read_ends_no_later_one(server):
  port, timers = server
  with client(port) as made:
    for number in (1, 2, 3):
      made.sendall(REQUEST)
      timer_of_answer(timers, number)
      cancelled = [handle.cancelled() for handle, _ in timers[0].made]
      assert cancelled == [True] * (number - 1) + [False]
      assert read(made) >= SIZE


def test_who_does_not_read_is_cut_off(server):
  port, timers = server
  with client(port) as made:
    made.sendall(REQUEST)
    _, run_out = timer_of_answer(timers, 1)
    timers[0].call_soon_threadsafe(run_out)
    try:
      size = read(made)
    except ConnectionError:
      size = 0
    assert size < SIZE
