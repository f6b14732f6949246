"""A client and a server that answers at the third attempt."""

import http.server
import itertools
import json
import socket
import threading
import time

import pytest

from official_transformer.errors import RunError
from official_transformer.serving.client import TranslationClient


@pytest.fixture
def server():
  """A server that does what its list `script` says, one after the other."""

  class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
      content = self.rfile.read(int(self.headers["Content-Length"]))
      self.server.asked.append((self.path, json.loads(content)))
      self.server.keys.append(self.headers["Authorization"])
      status = self.server.script.pop(0)
      if status == "gone":
        self.connection.close()
        return
      body = json.dumps({"translations": [{"translation": "ja"}]}).encode()
      if status == "page":
        body = b"<html>A proxy's.</html>"
      elif status not in (200, "cut"):
        body = b'{"error": {"message": "not now"}}'
      self.send_response(200 if isinstance(status, str) else status)
      self.send_header("Content-Length", str(len(body)))
      if status == "cut":
        body = body[:5]
        self.close_connection = True
      if status == 429:
        self.send_header("Retry-After", "0")
      self.end_headers()
      self.wfile.write(body)

    def log_message(self, *_):
      pass

  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    server.asked, server.keys, server.script = [], [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


@pytest.fixture
def pauses(monkeypatch):
  """How long a client has waited; it does not, really."""
  waited = []
  monkeypatch.setattr(time, "sleep", waited.append)
  return waited


def url(server):
  return f"http://127.0.0.1:{server.server_port}/"


def test_what_is_refused_for_now_or_lost_is_asked_again(server, pauses):
  server.script += [429, 500, "gone", 503, "cut", "cut", 200]
  client = TranslationClient(url(server), api_key="schlüssel")
  assert client.translate(["yes"], n_best=2) == [{"translation": "ja"}]
  question = {"text": ["yes"], "n_best": 2}
  assert server.asked == [("/translate", question)] * 7
  # With a fifth of a second of chance, each is longer than the one before.
  assert all(b > a - 0.2 for a, b in itertools.pairwise(pauses))
  assert pauses[-1] > 2
  key = server.keys[0].encode("latin-1").decode("utf-8")
  assert key == "Bearer schlüssel"


def test_what_is_wrong_is_not_asked_again(server):
  server.script += [422]
  with pytest.raises(RunError, match=r"status 422.*not now"):
    TranslationClient(url(server)).translate(["yes"])
  assert len(server.asked) == 1


def test_patience_ends(server):
  server.script += [503] * 3
  with pytest.raises(RunError, match="status 503"):
    TranslationClient(url(server), attempts=3).translate(["yes"])
  assert len(server.asked) == 3


@pytest.mark.parametrize("before", [[], [503]])
def test_answers_that_are_always_cut(server, before):
  server.script += before + ["cut"] * (3 - len(before))
  with pytest.raises(RunError, match="no answer from"):
    TranslationClient(url(server), attempts=3).translate(["yes"])
  assert len(server.asked) == 3


def test_what_is_no_service(server):
  server.script += ["page"]
  with pytest.raises(RunError, match=r"otherwise than.*<html>A proxy's"):
    TranslationClient(url(server)).translate(["yes"])


def test_nobody_there():
  with socket.socket() as silent:  # It does not listen.
    silent.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(RunError, match="no answer from"):
      TranslationClient(address, attempts=1).translate(["yes"])
