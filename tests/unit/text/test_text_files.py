import gzip
import io
import sys
import types

import pytest

from official_transformer.errors import InputError
from official_transformer.text import text_files


@pytest.mark.parametrize(
  ("raw", "lines"),
  [
    (b"", []),
    (b"a\nb\n", ["a", "b"]),
    (b"a\nb", ["a", "b"]),
    (b"\n\na\n\n", ["", "", "a", ""]),
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"\xef\xbb\xbfa\n", ["a"]),
    ("a\u2028b\u0085c\x0bd\n".encode(), ["a\u2028b\u0085c\x0bd"]),
    (b"a\rb\n", ["a\rb"]),
  ],
)
def test_lines_end_at_line_feeds_alone(tmp_path, raw, lines):
  plain = tmp_path / "plain"
  plain.write_bytes(raw)
  zipped = tmp_path / "zipped.gz"
  zipped.write_bytes(gzip.compress(raw))
  assert list(text_files.read_lines(str(plain))) == lines
  assert list(text_files.read_lines(str(zipped))) == lines


def test_standard_streams(monkeypatch):
  stdin = types.SimpleNamespace(buffer=io.BytesIO(b"a\nb\n"))
  stdout = types.SimpleNamespace(buffer=io.BytesIO())
  monkeypatch.setattr(sys, "stdin", stdin)
  monkeypatch.setattr(sys, "stdout", stdout)
  assert text_files.write_lines("-", text_files.read_lines("-")) == 2
  assert stdout.buffer.getvalue() == b"a\nb\n"


def test_invalid_bytes_are_replaced_and_reported(tmp_path, caplog):
  path = tmp_path / "mixed"
  raw = "gut\nschön\n�\n".encode() + b"\xff\n" * 12 + b"a\xc3"
  path.write_bytes(raw)
  with caplog.at_level("WARNING"):
    lines = list(text_files.read_lines(str(path), replace_invalid=True))
  assert lines == ["gut", "schön", "�"] + ["�"] * 12 + ["a�"]
  said = [record.getMessage() for record in caplog.records]
  assert len(said) == text_files.REPORTED_LINES + 1
  assert said[0].endswith("mixed, line 4: not UTF-8; replaced")
  assert said[-1].endswith("mixed: 13 lines were not UTF-8; replaced")


@pytest.mark.parametrize(
  "raw", [b"", b"a", b"a\n", b"\n\n", b"a\nb", b"\r\n\xff\n"]
)
def test_lines_are_counted_as_they_are_read(tmp_path, raw):
  path = tmp_path / "text"
  path.write_bytes(raw)
  read = list(text_files.read_lines(str(path), replace_invalid=True))
  assert text_files.count_lines(str(path)) == len(read)
  assert text_files.count_lines(str(tmp_path / "text.gz")) is None
  assert text_files.count_lines("-") is None


def test_errors_name_file_line_and_remedy(tmp_path):
  path = tmp_path / "latin1"
  path.write_bytes("gut\nschön\n".encode("latin1"))
  with pytest.raises(InputError, match=r"latin1, line 2: not UTF-8.*iconv"):
    list(text_files.read_lines(str(path)))
  with pytest.raises(InputError, match="no file"):
    text_files.check_input(str(tmp_path / "missing"))
  with pytest.raises(InputError, match="is a directory"):
    text_files.check_input(str(tmp_path))
  zipped = bytearray(gzip.compress(b"some text " * 100))
  zipped[20:24] = b"\xff\xff\xff\xff"
  (tmp_path / "corrupt.gz").write_bytes(bytes(zipped))
  with pytest.raises(InputError, match="not a whole .gz file"):
    list(text_files.read_lines(str(tmp_path / "corrupt.gz")))
  broken = tmp_path / "broken.gz"
  broken.write_bytes(gzip.compress(b"a\n" * 100)[:-9])
  with pytest.raises(InputError, match="not a whole .gz file"):
    list(text_files.read_lines(str(broken)))


def test_an_output_appears_once_it_is_whole(tmp_path):
  path = tmp_path / "out"
  path.write_text("earlier\n")

  def lines():
    yield "new"
    assert path.read_text() == "earlier\n"
    yield "lines"

  assert text_files.write_lines(str(path), lines()) == 2
  assert path.read_text() == "new\nlines\n"
  assert list(tmp_path.iterdir()) == [path]


def test_links_and_pipes_are_written_through(tmp_path):
  target, link = tmp_path / "target", tmp_path / "link"
  link.symlink_to(target)
  text_files.check_output(str(link))
  text_files.write_lines(str(link), ["a"])
  assert link.is_symlink()
  assert target.read_text() == "a\n"


def test_outputs_that_cannot_be_written_are_refused(tmp_path):
  with pytest.raises(InputError, match="is a directory"):
    text_files.check_output(str(tmp_path))
  with pytest.raises(InputError, match="does not exist"):
    text_files.check_output(str(tmp_path / "no" / "file"))
  text_files.check_output(str(tmp_path / "new"))
  text_files.check_output("-")
