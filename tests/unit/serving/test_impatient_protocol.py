"""A server of large answers, and clients that take their time."""

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("uvicorn")
import uvicorn

from official_transformer.serving.impatient_protocol import protocol_with
from official_transformer.serving.settings import ServiceLimits

SIZE = 3_000_000
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope, receive, send):
  assert scope["type"] == "http"
  fields = [(b"content-length", str(SIZE).encode())]
  await send({"type": "http.response.start", "status": 200, "headers": fields})
  await send({"type": "http.response.body", "body": b"x" * SIZE})


@pytest.fixture
def port():
  """Where a server answers that waits for a second."""
  config = uvicorn.Config(
    application,
    http=protocol_with(ServiceLimits(seconds=1.0)),
    lifespan="off",
    log_config=None,
  )
  server = uvicorn.Server(config)
  listener = socket.socket()
  listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
  listener.bind(("127.0.0.1", 0))
  thread = threading.Thread(target=server.run, args=[[listener]])
  thread.start()
  while not server.started:
    time.sleep(0.01)
  yield listener.getsockname()[1]
  server.should_exit = True
  thread.join()
  listener.close()


@contextlib.contextmanager
def client(port):
  with socket.socket() as made:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(20)
    made.connect(("127.0.0.1", port))
    yield made


def read(made, seconds):
  """Reads an answer in so many seconds; returns its bytes."""
  size, began = 0, time.monotonic()
  while size < SIZE:
    chunk = made.recv(60_000)
    if not chunk:
      break
    size += len(chunk)
    pause = began + seconds * size / SIZE - time.monotonic()
    time.sleep(max(pause, 0))
  return size


def test_who_reads_slowly_and_asks_again_is_not_cut_off(port):
  """The time of an answer that has been read must not end a later one."""
  with client(port) as made:
    for _ in range(4):
      made.sendall(REQUEST)
      assert read(made, 0.7) >= SIZE


def test_who_does_not_read_is_cut_off(port):
  with client(port) as made:
    made.sendall(REQUEST)
    time.sleep(2.5)
    try:
      size = read(made, 0.0)
    except ConnectionError:
      size = 0
    assert size < SIZE
