"""A server of large answers, and clients that take their time."""

import asyncio
import contextlib
import socket
import threading

import pytest

pytest.importorskip("uvicorn")
import uvicorn
from waiting import wait_for

from official_transformer.serving.settings import ServiceLimits
from official_transformer.serving.timeout_protocol import (
  MOST_HEAD_BYTES,
  protocol_with,
)

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


@contextlib.contextmanager
def timed(application):
  """Runs a server; yields its port, and the timers of its connections."""
  timers = []

  class Protocol(protocol_with(LIMITS)):
    def connection_made(self, transport):
      self.loop = Timers(self.loop)
      timers.append(self.loop)
      super().connection_made(transport)

  with running(application, Protocol) as port:
    yield port, timers


@pytest.fixture
def server():
  """A server whose answers are sent at once."""
  with timed(application) as found:
    yield found


@pytest.fixture
def serve_parts():
  """A server whose answers are sent in parts."""
  with timed(in_parts) as found:
    yield found


@contextlib.contextmanager
def running(application, protocol):
  """Runs a server; yields its port."""
  config = uvicorn.Config(
    application,
    http=protocol,
    lifespan="off",
    log_config=None,
    h11_max_incomplete_event_size=MOST_HEAD_BYTES,
  )
  server = uvicorn.Server(config)
  listener = socket.socket()
  listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
  listener.bind(("127.0.0.1", 0))
  thread = threading.Thread(target=server.run, args=[[listener]])
  thread.start()
  wait_for(lambda: server.started)
  try:
    yield listener.getsockname()[1]
  finally:
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


PARTS = 50


async def in_parts(scope, receive, send):
  """Answers as files are sent: each part waits until the last one is read."""
  size = str(SIZE * PARTS).encode()
  fields = [(b"content-length", size)]
  await send({"type": "http.response.start", "status": 200, "headers": fields})
  for number in range(PARTS):
    more = number + 1 < PARTS
    body = {"type": "http.response.body", "body": b"x" * SIZE}
    await send({**body, "more_body": more})


def test_who_does_not_read_a_part_is_cut_off(serve_parts):
  port, timers = serve_parts
  with client(port) as made:
    made.sendall(REQUEST)
    # The client reads the first part, and then no more.
    timer_of_answer(timers, 1)
    assert read(made) >= SIZE
    handle, run_out = timer_of_answer(timers, 2)
    assert timers[0].made[0][0].cancelled() and not handle.cancelled()
    timers[0].call_soon_threadsafe(run_out)
    left = 0
    try:
      while chunk := made.recv(60_000):
        left += len(chunk)
    except ConnectionError:
      pass
    assert left < SIZE * (PARTS - 1)


class Echo:
  """Answers with what it is sent.

  Attributes:
    go: nothing is answered until it is set.
    read: released when a request has been read.
    transports: of the connections.
  """

  def __init__(self):
    self.go = threading.Event()
    self.go.set()
    self.read = threading.Semaphore(0)
    self.transports = []

  async def __call__(self, scope, receive, send):
    content, more = b"", True
    while more:
      message = await receive()
      content += message.get("body", b"")
      more = message.get("more_body", False)
    self.read.release()
    while not self.go.is_set():
      await asyncio.sleep(0.01)
    length = str(len(content)).encode()
    fields = [(b"content-length", length)]
    await send(
      {"type": "http.response.start", "status": 200, "headers": fields}
    )
    await send({"type": "http.response.body", "body": content})


@pytest.fixture
def echo():
  """An application, and where it answers."""
  made = Echo()

  class Protocol(protocol_with(ServiceLimits(seconds=300.0))):
    def connection_made(self, transport):
      made.transports.append(transport)
      super().connection_made(transport)

  with running(made, Protocol) as port:
    yield made, port
    made.go.set()


def post(body, *fields):
  head = [b"POST / HTTP/1.1", b"Host: x", *fields]
  head.append(b"Content-Length: %d" % len(body))
  return b"\r\n".join([*head, b"", b""]) + body


def answer(made):
  """Reads an answer of a short body; returns its status and body."""
  found = b""
  while b"\r\n\r\n" not in found or not found.endswith(b"!"):
    chunk = made.recv(1000)
    assert chunk, found
    found += chunk
  return int(found.split()[1]), found.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("split", [False, True])
def test_an_offer_to_upgrade_costs_no_body(echo, split):
  """As Java's HTTP client and `curl --http2` make it."""
  _, port = echo
  offer = b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"
  with client(port) as made:
    for body in (b"one!", b"two!"):
      request = post(body, *offer, b"HTTP2-Settings: AAEAAEAAAAIAAAAA")
      place = request.index(b"\r\n\r\n") + 4 if split else len(request)
      made.sendall(request[:place])
      made.sendall(request[place:])
      assert answer(made) == (200, body)
    made.sendall(post(b"plain!"))
    assert answer(made) == (200, b"plain!")


def flood(made, block, most):
  """Sends a block again and again, until the other side has had enough."""
  with contextlib.suppress(ConnectionError):
    for _ in range(most // len(block)):
      made.sendall(block)


def test_what_follows_a_body_is_bounded(echo):
  _, port = echo
  with client(port) as made:
    chunked = (
      b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    made.sendall(chunked + b"2\r\n{}\r\n0\r\n")
    flood(made, b"T: x\r\n" * 1000, 4 * MOST_HEAD_BYTES)
    with contextlib.suppress(ConnectionError):
      assert made.recv(1000).startswith(b"HTTP/1.1 400")


def test_what_comes_while_another_is_answered_is_not_read(echo):
  application, port = echo
  application.go.clear()
  with client(port) as made:
    made.sendall(post(b"first!"))
    assert application.read.acquire(timeout=120)
    made.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n")
    wait_for(lambda: not all(t.is_reading() for t in application.transports))
    application.go.set()
    assert answer(made) == (200, b"first!")
    made.sendall(b"Content-Length: 7\r\n\r\nsecond!")
    assert answer(made) == (200, b"second!")
