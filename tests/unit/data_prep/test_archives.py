import gzip
import io
import os
import tarfile
import zipfile

import pytest

from data_prep.downloading.archives import extract
from official_transformer.errors import RunError


def tar(path, members, mode="w:gz"):
  """Writes an archive of names and bytes, links (`->target`) and devices."""
  with tarfile.open(path, mode) as archive:
    for name, content in members:
      entry = tarfile.TarInfo(name)
      if content is None:
        entry.type = tarfile.CHRTYPE
      elif isinstance(content, str):
        entry.type = tarfile.SYMTYPE
        entry.linkname = content.removeprefix("->")
      else:
        entry.size = len(content)
      data = io.BytesIO(content) if isinstance(content, bytes) else None
      archive.addfile(entry, data)
  return str(path)


def files_in(path):
  return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_file_by_its_name(tmp_path, mode):
  archive = tar(
    tmp_path / "a.tgz",
    [("deep/dir/text.en", b"a\n"), ("text.de", b"b\n")],
    mode,
  )
  out = tmp_path / "out"
  out.mkdir()
  for name, content in (("text.en", b"a\n"), ("text.de", b"b\n")):
    with open(extract(archive, name, str(out)), "rb") as stream:
      assert stream.read() == content
  assert files_in(out) == ["text.de", "text.en"]
  with pytest.raises(
    RunError, match="has no file text.fr; it has deep"
  ) as told:
    extract(archive, "text.fr", str(out))
  assert "damaged" not in str(told.value)


@pytest.mark.parametrize(
  "members",
  [
    [("../text.en", b"evil\n")],
    [("/tmp/text.en", b"evil\n")],
    [("dir", "->/tmp"), ("dir/text.en", b"evil\n")],
  ],
)
def test_nothing_is_written_where_an_archive_says(tmp_path, members):
  archive = tar(tmp_path / "a.tgz", members)
  out = tmp_path / "deep" / "out"
  out.mkdir(parents=True)
  extract(archive, "text.en", str(out))
  assert files_in(tmp_path) == ["a.tgz", "deep", "deep/out", "deep/out/text.en"]
  assert not os.path.exists("/tmp/text.en")


@pytest.mark.parametrize("content", ["->/etc/passwd", None])
def test_links_and_devices_are_no_text(tmp_path, content):
  archive = tar(tmp_path / "a.tgz", [("text.en", content)])
  with pytest.raises(RunError, match="has no file"):
    extract(archive, "text.en", str(tmp_path))
  assert files_in(tmp_path) == ["a.tgz"]


def test_a_bomb_is_let_lie(tmp_path):
  path = tmp_path / "bomb.zip"
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("text.en", bytes(50_000_000))
  with pytest.raises(RunError, match="more than 200 times as large") as told:
    extract(str(path), "text.en", str(tmp_path))
  assert "damaged" not in str(told.value)
  assert files_in(tmp_path) == ["bomb.zip"]


def test_zip_files_and_files_by_themselves(tmp_path):
  with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
    archive.writestr("../../Tatoeba.de-en.de", "a\n")
    archive.writestr("inner.en.gz", gzip.compress(b"b\n"))
  assert extract(
    str(tmp_path / "a.zip"), "Tatoeba.de-en.de", str(tmp_path)
  ) == str(tmp_path / "Tatoeba.de-en.de")
  with open(
    extract(str(tmp_path / "a.zip"), "inner.en", str(tmp_path)), "rb"
  ) as stream:
    assert stream.read() == b"b\n"
  (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"c\n"))
  with open(
    extract(str(tmp_path / "train.en.gz"), "train.en", str(tmp_path)), "rb"
  ) as stream:
    assert stream.read() == b"c\n"


def test_segments_of_sgml_are_lines(tmp_path):
  content = (
    '<refset setid="x"><doc>\n<hl>\n<seg id="1">A &amp; B</seg>\n</hl>\n'
    '<p>\n<seg id="2"> two\nlines </seg><seg id="3"></seg>\n</p></doc></refset>'
  )
  archive = tar(tmp_path / "a.tgz", [("dev/x-src.en.sgm", content.encode())])
  path = extract(archive, "x-src.en.sgm", str(tmp_path))
  assert path == str(tmp_path / "x-src.en")
  with open(path, encoding="utf-8") as stream:
    assert stream.read() == "A & B\ntwo lines\n\n"


@pytest.mark.parametrize("kind", ["a.tgz", "a.zip", "train.en.gz"])
def test_damage_is_named(tmp_path, kind):
  path = tmp_path / kind
  content = os.urandom(100_000)
  if kind == "a.tgz":
    tar(path, [("train.en", content)])
  elif kind == "a.zip":
    with zipfile.ZipFile(path, "w") as archive:
      archive.writestr("train.en", content)
  else:
    path.write_bytes(gzip.compress(content))
  whole = path.read_bytes()
  if kind == "a.zip":
    damaged = whole[:50_000] + b"damage" + whole[50_006:]
  else:
    damaged = whole[:50_000]
  path.write_bytes(damaged)
  with pytest.raises(RunError, match="is damaged"):
    extract(str(path), "train.en", str(tmp_path))
  assert files_in(tmp_path) == [kind]


@pytest.mark.parametrize(
  ("name", "content"),
  [
    (name, content)
    for name in ("a.tgz", "a.zip", "a.tar", "text.en.gz")
    for content in (b"<html>Not found</html>", b"", b"PK\x03\x04cut off")
    # Nothing, compressed by gzip, is nothing.
    if content or name != "text.en.gz"
  ],
)
def test_what_is_no_archive_is_no_text(tmp_path, name, content):
  path = tmp_path / name
  path.write_bytes(content)
  with pytest.raises(RunError, match="damaged, or no such archive|has no file"):
    extract(str(path), "text.en", str(tmp_path))
  assert files_in(tmp_path) == [name]


def test_an_unknown_kind_is_refused(tmp_path):
  (tmp_path / "a.rar").write_bytes(b"Rar!")
  with pytest.raises(RunError, match="no archive of a known kind"):
    extract(str(tmp_path / "a.rar"), "text.en", str(tmp_path))


def test_a_header_is_not_read_without_bounds(tmp_path):
  path = tmp_path / "a.tgz"
  entry = tarfile.TarInfo("header")
  entry.type, entry.size = tarfile.XHDTYPE, 1 << 31
  with gzip.open(path, "wb") as stream:
    stream.write(entry.tobuf())
    stream.write(bytes(1 << 21))
  with pytest.raises(RunError, match="a header of 2147483648 bytes"):
    extract(str(path), "text.en", str(tmp_path))


def test_a_link_in_a_zip_is_no_text(tmp_path):
  entry = zipfile.ZipInfo("text.en")
  entry.external_attr = 0o120777 << 16
  with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
    archive.writestr(entry, "/etc/passwd")
  with pytest.raises(RunError, match="has no file"):
    extract(str(tmp_path / "a.zip"), "text.en", str(tmp_path))


def test_segments_in_another_encoding_are_damage(tmp_path):
  archive = tar(tmp_path / "a.tgz", [("x.sgm", b"<seg>\xff</seg>")])
  with pytest.raises(RunError, match="damaged"):
    extract(archive, "x.sgm", str(tmp_path))
  assert files_in(tmp_path) == ["a.tgz"]


@pytest.mark.parametrize(
  "content", ["<seg ", "<seg>", "</seg>", "<seg <seg>a</seg> "]
)
def test_what_is_hardly_sgml_is_read_in_one_pass(tmp_path, content):
  """A megabyte would take minutes, and this longer than anybody waits."""
  times = 3_000_000 // len(content)
  members = [("x.sgm", content.encode() * times)]
  archive = tar(tmp_path / "a.tar", members, "w")
  with open(extract(archive, "x.sgm", str(tmp_path))) as stream:
    assert stream.read() == "a\n" * (times if "a" in content else 0)
