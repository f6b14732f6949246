import functools
import os
import pathlib

import pytest

from official_transformer.errors import InputError
from official_transformer.storage import durable_files as lib


def test_a_text_file_is_replaced_whole(tmp_path):
  path = tmp_path / "file"
  lib.write_text(str(path), "old\n")
  lib.write_text(str(path), "neü\n")
  assert path.read_text(encoding="utf-8") == "neü\n"
  assert os.listdir(tmp_path) == ["file"]
  lib.copy_file(str(path), str(tmp_path / "copy"))
  assert (tmp_path / "copy").read_bytes() == path.read_bytes()
  assert sorted(os.listdir(tmp_path)) == ["copy", "file"]


def test_a_text_file_that_cannot_be_written_stays_as_it_was(
  tmp_path, monkeypatch
):
  path = tmp_path / "file"
  lib.write_text(str(path), "old\n")

  def full(_):
    raise OSError("No space left on device")

  monkeypatch.setattr(lib.os, "fsync", full)
  with pytest.raises(OSError, match="No space"):
    lib.write_text(str(path), "new\n")
  assert path.read_text() == "old\n"
  assert os.listdir(tmp_path) == ["file"]


def test_a_directory_appears_whole_and_on_the_disk(tmp_path, monkeypatch):
  path = tmp_path / "parent" / "made"
  synced = []
  monkeypatch.setattr(
    lib.os,
    "fsync",
    lambda d: synced.append(os.readlink(f"/proc/self/fd/{d}")),
  )
  with lib.new_directory(str(path)) as aside:
    (tmp_path / "parent" / "made.incomplete" / "a").write_text("1")
    assert aside == str(path) + ".incomplete"
    assert not path.exists()
  assert (path / "a").read_text() == "1"
  # What it holds before it has its name, and its name after.
  assert synced == [
    str(path) + ".incomplete/a",
    str(path) + ".incomplete",
    str(tmp_path / "parent"),
    str(tmp_path),
  ]


@pytest.mark.parametrize(
  "new",
  [functools.partial(lib.new_file, keep_incomplete=True), lib.new_directory],
)
def test_what_another_writes_is_refused_and_stays(tmp_path, new):
  """As of two predictions into one file, or two exports."""
  path = tmp_path / "out"

  def fill(aside, text):
    place = pathlib.Path(aside)
    (place / "a" if place.is_dir() else place).write_text(text)

  with new(str(path)) as aside:
    fill(aside, "first")
    with (
      pytest.raises(InputError, match="out is being written by process"),
      new(str(path)),
    ):
      pass
  written = path / "a" if path.is_dir() else path
  assert written.read_text() == "first"
  assert os.listdir(tmp_path) == ["out"]
  with new(str(path)) as aside:
    fill(aside, "second")
  assert written.read_text() == "second"


def test_the_name_that_a_file_will_have_is_known(tmp_path):
  path = str(tmp_path / "shard-00001-of-00002")
  with lib.new_file(path) as aside:
    assert lib.final_name(aside) == path
    pathlib.Path(aside).touch()
  assert lib.final_name(path + lib.INCOMPLETE) == path
  assert lib.final_name(path) == path


def test_a_path_may_have_braces(tmp_path):
  path = str(tmp_path / "{run}")
  with (
    lib.new_directory(path),
    pytest.raises(InputError, match=r"\{run\} is being written by process"),
    lib.new_directory(path),
  ):
    pass


def test_files_that_are_not_kept_have_names_of_their_own(tmp_path):
  path = str(tmp_path / "file")
  with lib.new_file(path) as one, lib.new_file(path) as other:
    assert one != other
    pathlib.Path(one).write_text("one")
    pathlib.Path(other).write_text("other")
  assert pathlib.Path(path).read_text() == "one"  # Which has ended last.
  assert os.listdir(tmp_path) == ["file"]


def test_a_directory_is_replaced_or_stays_as_it_was(tmp_path):
  path = tmp_path / "made"
  for content in ("old", "new"):
    with lib.new_directory(str(path)) as aside:
      (tmp_path / aside / content).touch()
  assert os.listdir(path) == ["new"]
  with (
    pytest.raises(RuntimeError, match="half-way"),
    lib.new_directory(str(path)) as aside,
  ):
    (tmp_path / aside / "half").touch()
    raise RuntimeError("half-way")
  assert os.listdir(path) == ["new"]
  assert os.listdir(tmp_path) == ["made"]


def test_a_directory_that_has_come_meanwhile_stays(tmp_path):
  path = tmp_path / "made"
  with (
    pytest.raises(FileExistsError, match="meanwhile"),
    lib.new_directory(str(path), replace=False) as aside,
  ):
    (tmp_path / aside / "new").touch()
    path.mkdir()
    (path / "theirs").touch()
  assert os.listdir(path) == ["theirs"]
  assert os.listdir(tmp_path) == ["made"]


def test_leftovers_are_removed_and_nothing_else(tmp_path):
  (tmp_path / "kept").touch()
  (tmp_path / "other.incomplete").touch()
  (tmp_path / "step-1.incomplete").mkdir()
  (tmp_path / "step-1.incomplete" / "half").touch()
  removed = lib.remove_leftovers(str(tmp_path), "step-")
  assert removed == [str(tmp_path / "step-1.incomplete")]
  assert sorted(os.listdir(tmp_path)) == ["kept", "other.incomplete"]
  assert lib.remove_leftovers(str(tmp_path / "nowhere")) == []
