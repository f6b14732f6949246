import os
import subprocess
import sys

import pytest

from official_transformer.errors import InputError
from official_transformer.model_directory.directory_lock import DirectoryLock

HOLD = """
import sys, time
from official_transformer.model_directory.directory_lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
time.sleep(100)
"""


@pytest.fixture
def holder(tmp_path):
  """Another process that holds the lock."""
  process = subprocess.Popen(
    [sys.executable, "-c", HOLD, str(tmp_path)],
    stdout=subprocess.PIPE,
    text=True,
  )
  assert process.stdout.readline() == "held\n"
  yield process
  process.kill()
  process.wait()
  process.stdout.close()


def test_a_second_process_is_refused_and_told_by_whom(tmp_path, holder):
  expected = f"being trained by process {holder.pid} on "
  with pytest.raises(InputError, match=expected):
    DirectoryLock(str(tmp_path)).acquire()


def test_the_lock_dies_with_its_owner(tmp_path, holder):
  holder.kill()
  holder.wait()
  assert os.listdir(tmp_path) == ["train.lock"]
  with DirectoryLock(str(tmp_path)) as lock:
    lock.acquire()
    lock.acquire()
    content = (tmp_path / "train.lock").read_text()
    assert content.startswith(f"process {os.getpid()} on ")
  assert os.listdir(tmp_path) == []


def test_a_lock_on_a_removed_file_is_none(tmp_path, monkeypatch):
  """Its holder removes the file between our opening and our locking it."""
  removed = []
  real_open = os.open

  def racing_open(path, *arguments):
    descriptor = real_open(path, *arguments)
    if not removed:
      os.remove(path)
      removed.append(path)
    return descriptor

  monkeypatch.setattr(os, "open", racing_open)
  with DirectoryLock(str(tmp_path)) as lock:
    lock.acquire()
    assert os.listdir(tmp_path) == ["train.lock"]
    other = DirectoryLock(str(tmp_path))
    with pytest.raises(InputError, match="being trained"):
      other.acquire()


def test_a_lock_file_in_another_encoding_still_refuses(tmp_path, holder):
  (tmp_path / "train.lock").write_bytes("Prozess für \xff".encode("latin-1"))
  with pytest.raises(InputError, match="being trained by Prozess f"):
    DirectoryLock(str(tmp_path)).acquire()
