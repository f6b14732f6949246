import gzip
import hashlib
import random

import pytest
from faulty_server import FaultyServer

from data_prep.downloading import downloads as lib
from data_prep.downloading.downloads import RemoteFile
from official_transformer.errors import RunError

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
  monkeypatch.setattr(lib, "_FIRST_PAUSE_SECONDS", 0.001)
  # Of a chunk that breaks off nothing is kept.
  monkeypatch.setattr(lib, "_CHUNK_BYTES", 1000)
  with FaultyServer() as running:
    running.files["text.gz"] = CONTENT
    yield running


def remote(server, *names, **known):
  urls = [server.url(name) for name in names or ("text.gz",)]
  return RemoteFile(urls, **{"sha256": SHA256, **known})


def content(path):
  with open(path, "rb") as stream:
    return stream.read()


def test_what_breaks_off_is_gone_on_with(server, tmp_path):
  server.faults["text.gz"] = [("cut", 100_000), 503, ("cut", 70_000), None]
  path = lib.download(remote(server, size=len(CONTENT)), str(tmp_path))
  assert content(path) == CONTENT
  assert [r.start for r in server.requests] == [0, 100_000, 100_000, 170_000]
  assert [r.if_range for r in server.requests][1:] == ['"one"'] * 3
  assert [p.name for p in tmp_path.iterdir()] == ["text.gz"]
  lib.download(remote(server), str(tmp_path))
  assert len(server.requests) == 4


def test_another_run_goes_on(server, tmp_path):
  server.faults["text.gz"] = [("cut", 100_000), *[500] * 5, None]
  with pytest.raises(RunError, match="status 500.*goes on with what has come"):
    lib.download(remote(server), str(tmp_path))
  assert content(tmp_path / "text.gz.1.part") == CONTENT[:100_000]
  assert content(lib.download(remote(server), str(tmp_path))) == CONTENT
  assert server.requests[-1].start == 100_000


def test_a_server_without_ranges_begins_anew(server, tmp_path):
  server.ranges = False
  server.faults["text.gz"] = [("cut", 100_000), None]
  assert content(lib.download(remote(server), str(tmp_path))) == CONTENT


def test_another_version_begins_anew(server, tmp_path):
  server.faults["text.gz"] = [("cut", 100_000), ("tag", "two")]
  assert content(lib.download(remote(server), str(tmp_path))) == CONTENT


def test_a_range_that_was_not_asked_for_is_not_taken(server, tmp_path):
  server.faults["text.gz"] = [("cut", 100_000), ("shift", 10), None]
  assert content(lib.download(remote(server), str(tmp_path))) == CONTENT
  assert [r.start for r in server.requests] == [0, 100_000, 0]


def test_more_has_come_than_there_is(server, tmp_path):
  """A server whose file has become shorter answers with 416."""
  server.faults["text.gz"] = [("length", 5)]
  assert content(lib.download(remote(server), str(tmp_path))) == CONTENT
  assert [r.start for r in server.requests] == [0, len(CONTENT), 0]


def test_nothing_but_the_end_was_missing(server, tmp_path):
  server.faults["text.gz"] = [("length", 5)]
  file = remote(server)
  (tmp_path / "text.gz.1.part").write_bytes(CONTENT)
  (tmp_path / "text.gz.1.part.json").write_text(
    f'{{"url": "{file.urls[0]}", "validator": "\\"one\\""}}'
  )
  known = remote(server, size=len(CONTENT))
  assert content(lib.download(known, str(tmp_path))) == CONTENT
  assert [r.start for r in server.requests] == [len(CONTENT)]


@pytest.mark.parametrize(
  ("wrong", "said"),
  [
    (CONTENT[:-1], "it has 299999 bytes there, not 300000"),
    (CONTENT + b"x", "it has 300001 bytes there, not 300000"),
    (CONTENT[:-1] + b"x", "its sha256 is"),
    (None, "status 404"),
  ],
)
def test_a_mirror_takes_over(server, tmp_path, wrong, said, caplog):
  if wrong is not None:
    server.files["wrong/text.gz"] = wrong
  file = remote(server, "wrong/text.gz", "text.gz", size=len(CONTENT))
  assert content(lib.download(file, str(tmp_path))) == CONTENT
  alone = remote(server, "wrong/text.gz", size=len(CONTENT))
  with pytest.raises(RunError, match=f"{said}.*--source_dir"):
    lib.download(alone, str(tmp_path / "elsewhere"))
  assert not (tmp_path / "elsewhere" / "text.gz").exists()


def test_a_file_at_its_place_is_checked(server, tmp_path):
  (tmp_path / "text.gz").write_bytes(b"something else")
  with pytest.raises(RunError, match="text.gz is not the expected file"):
    lib.download(remote(server), str(tmp_path))
  assert content(tmp_path / "text.gz") == b"something else"
  assert not server.requests


def test_no_server_at_all(tmp_path, monkeypatch):
  monkeypatch.setattr(lib, "_FIRST_PAUSE_SECONDS", 0.001)
  file = RemoteFile(["http://127.0.0.1:9/text.gz", "nonsense://x/text.gz"])
  with pytest.raises(RunError, match="text.gz cannot be downloaded"):
    lib.download(file, str(tmp_path))


def test_one_address_leaves_what_came_from_another(server, tmp_path):
  server.files["b/text.gz"] = CONTENT
  server.faults["text.gz"] = [("cut", 200_000), *[503] * 5, None]
  server.faults["b/text.gz"] = [("cut", 1000), *[503] * 5]
  file = remote(server, "text.gz", "b/text.gz")
  with pytest.raises(RunError, match="cannot be downloaded"):
    lib.download(file, str(tmp_path))
  assert content(tmp_path / "text.gz.1.part") == CONTENT[:200_000]
  assert content(lib.download(file, str(tmp_path))) == CONTENT
  assert server.requests[-1].start == 200_000
  assert [p.name for p in tmp_path.iterdir()] == ["text.gz"]


def test_another_version_is_not_mixed_in(server, tmp_path):
  """By a server that does not look at what it is asked for."""
  server.faults["text.gz"] = [("cut", 100_000), ("mix", "two"), None]
  unchecked = remote(server, sha256=None)
  assert content(lib.download(unchecked, str(tmp_path))) == CONTENT
  assert [r.start for r in server.requests] == [0, 100_000, 0]


@pytest.mark.parametrize("label", ["gzip", "x-gzip"])
def test_a_compressed_file_stays_as_it_is(server, tmp_path, label):
  """Some servers say of a .gz that it is text, compressed on its way."""
  packed = gzip.compress(CONTENT[:1000])
  server.files["text.gz"] = packed
  server.faults["text.gz"] = [("label", label)]
  file = RemoteFile([server.url("text.gz")])
  assert content(lib.download(file, str(tmp_path))) == packed
