"""An HTTP server with the faults that downloads meet."""

import collections
import http.server
import re
import threading

Request = collections.namedtuple("Request", "path start if_range")


class FaultyServer:
  """Serves bytes by their paths, after the faults that are asked for.

  Attributes:
    files: what is served.
    faults: for each path what to do wrong, one a request: a status to answer
      with; `("cut", n)`, to close after n bytes; `("length", n)`, to promise n
      more than come; `("shift", n)`, to begin a range n bytes off;
      `("tag", t)`, to have another version, and to know it; `("mix", t)`, to
      send the rest of another version as if it were of the one asked for;
      `("label", e)`, to say that what it sends is encoded so. None is none.
    ranges: whether ranges are known.
    requests: those that came.
  """

  def __init__(self):
    self.files = {}
    self.faults = collections.defaultdict(list)
    self.ranges = True
    self.requests = []
    self._server = http.server.ThreadingHTTPServer(
      ("127.0.0.1", 0), type("Handler", (_Handler,), {"state": self})
    )
    self._thread = threading.Thread(target=self._server.serve_forever)

  def url(self, path):
    """Returns a file's address."""
    return f"http://127.0.0.1:{self._server.server_port}/{path}"

  def __enter__(self):
    self._thread.start()
    return self

  def __exit__(self, *_):
    self._server.shutdown()
    self._thread.join()
    self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
  state = None

  def do_GET(self):
    state = self.state
    path = self.path[1:]
    asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
    start = int(asked[1]) if asked else 0
    if_range = self.headers.get("If-Range")
    state.requests.append(Request(path, start, if_range))
    waiting = state.faults[path]
    fault = waiting.pop(0) if waiting else None
    if path not in state.files:
      fault = 404
    if isinstance(fault, int):
      self.send_response(fault)
      self.send_header("Content-Length", "0")
      self.end_headers()
      return
    kind, value = fault or (None, None)
    tag = f'"{value}"' if kind in ("tag", "mix") else '"one"'
    if not state.ranges or (if_range != tag and kind != "mix"):
      start = 0
    self._answer(state.files[path], start, tag, kind, value)

  def _answer(self, whole, start, tag, kind, value):
    if start >= len(whole) and start:
      self.send_response(416)
      self.send_header("Content-Length", "0")
      self.end_headers()
      return
    body = whole[start:]
    self.send_response(206 if start else 200)
    if start:
      first = start + (value if kind == "shift" else 0)
      self.send_header(
        "Content-Range", f"bytes {first}-{len(whole) - 1}/{len(whole)}"
      )
    more = value if kind == "length" else 0
    self.send_header("Content-Length", str(len(body) + more))
    self.send_header("ETag", tag)
    if kind == "label":
      self.send_header("Content-Encoding", value)
    self.end_headers()
    self.wfile.write(body[:value] if kind == "cut" else body)
    self.close_connection = True

  def log_message(self, *_):
    pass
