"""The whole job on a file system that is not the machine's.

TensorFlow's `ram://` lives in its process. It stands for `gs://` and its like:
no directory there can be renamed.
"""

import json
import uuid

import command_line
import pytest
import tensorflow as tf
from command_line import BLEU, MAIN, PREPARE, succeed
from conftest import MODEL

from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.storage import durable_files, file_system

pytestmark = pytest.mark.slow


@pytest.fixture
def remote():
  """A directory of its own."""
  root = f"ram://{uuid.uuid4().hex}"
  tf.io.gfile.makedirs(root)
  return root


def write(path, text):
  with file_system.open_file(path, "w") as stream:
    stream.write(text)


def read(path):
  with file_system.open_file(path) as stream:
    return stream.read()


def test_files_are_read_and_written(remote):
  path = f"{remote}/a/file"
  file_system.make_directories(f"{remote}/a")
  write(path, "grün\r\n\u2028line\n")
  assert read(path) == "grün\r\n\u2028line\n"
  assert list(file_system.open_file(path)) == ["grün\r\n", "\u2028line\n"]
  assert file_system.exists(path) and file_system.is_file(path)
  assert file_system.is_directory(f"{remote}/a")
  assert file_system.names_in(f"{remote}/a") == ["file"]
  assert file_system.names_in(f"{remote}/nowhere") == []
  assert file_system.size(path) == len("grün\r\n\u2028line\n".encode())
  durable_files.copy_file(path, f"{remote}/b")
  assert file_system.sha256(path) == file_system.sha256(f"{remote}/b")
  file_system.remove_file(path)
  with pytest.raises(FileNotFoundError):
    file_system.open_file(path)
  with pytest.raises(FileNotFoundError):
    file_system.remove_file(path)
  file_system.remove_if_there(path)
  file_system.remove_tree(remote)
  assert not file_system.exists(f"{remote}/b")


def test_a_directory_counts_once_it_is_whole(remote):
  path = f"{remote}/step-1"
  with durable_files.new_directory(path) as aside:
    write(f"{aside}/data", "1")
    assert not durable_files.is_whole(path)
  assert durable_files.is_whole(path)
  assert file_system.names_in(path) == ["data"]
  # A process that is killed has no time to tidy up.
  writing = durable_files.new_directory(f"{remote}/step-2")
  write(f"{writing.__enter__()}/data", "2")
  assert not durable_files.is_whole(f"{remote}/step-2")
  assert durable_files.remove_leftovers(remote, "step-") == [f"{remote}/step-2"]
  durable_files.remove_directory(path)
  assert file_system.names_in(remote) == []


class Killed(BaseException):
  """What no `except` clause takes for a failure, as SIGKILL."""


def test_the_whole_job(remote, demo_text, monkeypatch):
  """Prepared, trained, killed while it saves, gone on with, and used."""
  for path in demo_text.iterdir():
    if path.suffix in (".en", ".de"):
      file_system.copy(str(path), f"{remote}/{path.name}")
  data, model = f"{remote}/data", f"{remote}/model"
  sides = {
    f"{tag}_{side}": f"{remote}/{tag}.{language}"
    for tag in ("train", "dev")
    for side, language in (("source", "en"), ("target", "de"))
  }
  succeed(
    PREPARE,
    *(f"--{name}={path}" for name, path in sides.items()),
    *(f"--data_dir={data}", "--vocab_size=400", "--shards=2"),
  )
  train = (
    *(MAIN, "--mode=train", f"--data_dir={data}", f"--model_dir={model}"),
    *(f"--bleu_source={remote}/test.en", f"--bleu_ref={remote}/test.de"),
    *("--steps_between_evals=4", "--seed=1", "--train_steps=8", *MODEL),
  )
  rename = file_system.remove_file

  def killed(path):
    if "step-8" in path:
      raise Killed
    rename(path)

  # In the midst of saving step 8, with what tidies up as dead as the rest.
  monkeypatch.setattr(durable_files.file_system, "remove_file", killed)
  monkeypatch.setattr(durable_files, "remove_tree", lambda path: None)
  with pytest.raises(Killed):
    command_line.run(*train)
  monkeypatch.undo()
  assert tf.io.gfile.exists(f"{model}/checkpoints/step-8")
  assert ModelDirectory(model).checkpoint_steps() == [4]
  remembered = read_prepared_data(
    data, 400, with_dev=False, cache_file=f"{model}/data_index.npz"
  )
  assert remembered.is_remembered
  succeed(*train)
  assert ModelDirectory(model).checkpoint_steps() == [4, 8]
  lines = read(f"{model}/measurements.jsonl").splitlines()
  assert [json.loads(line)["step"] for line in lines] == [4, 8]
  use = (MAIN, f"--model_dir={model}")
  out, reference = f"{remote}/out", f"{remote}/test.de"
  succeed(
    *(*use, "--mode=predict", f"--file={remote}/test.en", f"--file_out={out}")
  )
  assert read(out).count("\n") == 20
  succeed(BLEU, f"--translation={out}", f"--reference={reference}")
  scores = succeed(
    *(*use, "--mode=score", f"--file={remote}/test.en"),
    f"--reference_file={reference}",
  )
  assert scores.stdout.count("\n") == 20
  succeed(*use, "--mode=average", "--average_last=2")
  printed = succeed(
    *(*use, "--mode=eval", "--checkpoint=average"),
    *(f"--bleu_source={remote}/test.en", f"--bleu_ref={reference}"),
  )
  assert "Case-insensitive results" in printed.stdout
  second = f"--model_dir={remote}/second"
  succeed(
    *(MAIN, "--mode=train", f"--data_dir={data}", second),
    *(f"--init_checkpoint={model}", "--train_steps=2"),
  )
  assert ModelDirectory(f"{remote}/second").checkpoint_steps()[-1] == 2
  succeed(*train, "--clean")
  assert ModelDirectory(model).checkpoint_steps() == [4, 8]
