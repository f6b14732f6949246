"""What a service looks at to see that there is another model."""

import os

import pytest

from official_transformer.commands.serve import ServiceOptions, is_local
from official_transformer.errors import InputError

LOCAL = {"localhost", "127.0.0.1", "::1"}


def test_a_checkpoint_whose_files_are_replaced_is_another(tmp_path):
  checkpoint = tmp_path / "checkpoints" / "step-5"
  checkpoint.mkdir(parents=True)
  names = ["model.index", "model.data-00000-of-00001"]
  for name in names:
    (checkpoint / name).write_bytes(b"old")
  (tmp_path / "model.json").write_text("{}")
  options = ServiceOptions(model_dir=str(tmp_path))
  seen = [options.newest()]
  assert options.newest() == seen[0]
  before = os.stat(checkpoint)
  for name in names:  # As `cp` does: the directory's own time stays.
    (checkpoint / name).write_bytes(b"news")
    seen.append(options.newest())
  after = os.stat(checkpoint)
  assert before.st_mtime_ns == after.st_mtime_ns
  assert len(set(seen)) == 3
  assert {newest.step for newest in seen} == {5}


@pytest.mark.parametrize(
  ("host", "allowed", "expected"),
  [
    ("127.0.0.1", None, LOCAL),
    ("LocalHost", None, LOCAL),
    ("127.0.1.1", None, LOCAL | {"127.0.1.1"}),
    ("::1", None, LOCAL),
    ("0.0.0.0", None, set()),
    ("10.0.0.3", None, set()),
    ("127.0.0.1", ("*",), set()),
    ("127.0.0.1", ("Proxy.example:8443", "[::1]"), {"proxy.example", "::1"}),
  ],
)
def test_hosts_are_taken_as_requests_name_them(host, allowed, expected):
  options = ServiceOptions(model_dir="m", host=host, allowed_hosts=allowed)
  assert options._hosts() == expected
  assert is_local(host) == (host not in ("0.0.0.0", "10.0.0.3"))


def test_an_empty_host_is_refused():
  for allowed in ((), ("",), ("a", ":80")):
    with pytest.raises(InputError, match="--allowed_hosts names an empty"):
      ServiceOptions(model_dir="m", allowed_hosts=allowed).check()
