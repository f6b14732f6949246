import dataclasses
import os

import pytest

from official_transformer.errors import InputError
from official_transformer.importing.model_writing import new_directory
from official_transformer.model_directory import directory as lib
from official_transformer.model_directory.description import (
  ModelDescription,
  Origin,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  ModelDirectory,
)
from official_transformer.model_params import TINY
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)


@pytest.fixture
def directory(tmp_path):
  vocabulary = tmp_path / "vocab"
  vocabulary.write_text("'<pad>'\n'<EOS>'\n")
  model = ModelDirectory(str(tmp_path / "model"))
  vocabularies = load_vocabularies(VocabFiles.joint(str(vocabulary)))
  description = ModelDescription(
    dataclasses.replace(TINY, vocab_size=2),
    vocabularies.identity,
    origin=Origin("v2", "/old/cp", 7),
  )
  model.write(description, vocabularies)
  return model


def test_what_is_written_is_read(directory):
  assert directory.read().origin == Origin("v2", "/old/cp", 7)
  assert directory.read().batching is None
  assert directory.read().data is None
  assert directory.read().params == dataclasses.replace(TINY, vocab_size=2)


def test_cleaning_removes_the_model_and_nothing_else(directory):
  os.makedirs(directory.checkpoint_directory(5))
  os.makedirs(directory.checkpoint_directory(5, AVERAGE))
  os.makedirs(directory.join("logs"))
  os.makedirs(directory.join("translations"))
  for name in ("step-5.txt", "dev-step-5.scores.txt", "my-notes.txt"):
    with open(directory.join("translations", name), "wb"):
      pass
  with open(directory.join("nonfinite-step-7.jsonl"), "wb"):
    pass
  mine = directory.join("notes.txt")
  with open(mine, "w", encoding="utf-8") as stream:
    stream.write("mine")
  directory.remove_model()
  # The vocabulary may be the one that the next model is to have.
  names = ["notes.txt", "translations", "vocab"]
  assert sorted(os.listdir(directory.path)) == names
  assert os.listdir(directory.join("translations")) == ["my-notes.txt"]


def test_a_directory_that_is_no_model_is_not_cleaned(tmp_path):
  (tmp_path / "thesis.tex").write_text("years of work")
  with pytest.raises(InputError, match="nothing was deleted"):
    ModelDirectory(str(tmp_path)).remove_model()
  assert (tmp_path / "thesis.tex").exists()
  ModelDirectory(str(tmp_path / "new")).remove_model()


def test_cleaning_that_was_broken_off_is_repeated(directory, monkeypatch):
  os.makedirs(directory.checkpoint_directory(5))

  def interrupt(path):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    patch.setattr(lib.file_system, "remove_tree", interrupt)
    directory.remove_model()
  assert not directory.exists()
  directory.remove_model()
  assert os.listdir(directory.path) == ["vocab"]


def test_weights_that_training_would_remove_are_told(directory):
  directory.check_nothing_derived()
  os.makedirs(directory.checkpoint_directory(5, BEST))
  with open(directory.checkpoint_prefix(5, BEST) + ".index", "wb"):
    pass
  with pytest.raises(InputError, match="a best checkpoint, and no checkpoint"):
    directory.check_nothing_derived()
  with pytest.raises(InputError, match="--checkpoint=best"):
    directory.choose_checkpoints("latest")


def test_a_disk_that_is_missing_is_told(directory, tmp_path):
  os.symlink(tmp_path / "unmounted", directory.join("checkpoints"))
  with pytest.raises(InputError, match="unmounted, which does not exist"):
    directory.check_nothing_derived()


def test_a_file_of_the_vocabularys_name_is_not_replaced(directory, tmp_path):
  (tmp_path / "other").mkdir()
  (tmp_path / "other" / "vocab").write_text("mine")
  other = ModelDirectory(str(tmp_path / "other"))
  with pytest.raises(InputError, match="another file than"):
    other.write(directory.read(), load_vocabularies(directory.vocab_files()))
  assert (tmp_path / "other" / "vocab").read_text() == "mine"


def test_cleaning_follows_a_link_and_leaves_what_is_others(directory, tmp_path):
  large = tmp_path / "large_disk"
  (large / "step-600").mkdir(parents=True)
  (large / "thesis.tex").write_text("years of work")
  for name in ("backup-step-600", "step-5-backup", "step-500.damaged"):
    (large / name).mkdir()
  (large / "step-700.lock.incomplete").touch()
  os.symlink(large, directory.join("checkpoints"))
  translations = tmp_path / "translations"
  translations.mkdir()
  for name in (
    *("scores.json", "scores.json.0123456789ab.incomplete", "step-600.txt"),
    *("dev-step-600.compared.txt", "dev-step-600-beam-4.scores.txt"),
    *("old-steps.txt", "my-notes-step-2.docx"),
  ):
    (translations / name).touch()
  os.symlink(translations, directory.join("translations"))
  assert directory.checkpoint_steps() == [600]
  directory.remove_model()
  names = ["my-notes-step-2.docx", "old-steps.txt"]
  assert sorted(os.listdir(translations)) == names
  assert directory.checkpoint_steps() == []
  # The next model's lie there too.
  assert os.path.islink(directory.join("checkpoints"))
  left = ["backup-step-600", "step-5-backup", "thesis.tex"]
  assert sorted(os.listdir(large)) == left


def test_what_cannot_be_removed_is_told(directory, monkeypatch):
  os.makedirs(directory.checkpoint_directory(5))

  def refuse(path):
    raise PermissionError(f"cannot remove {path}")

  monkeypatch.setattr(lib.file_system, "remove_tree", refuse)
  with pytest.raises(PermissionError, match="checkpoints"):
    directory.remove_model()


def test_an_average_alone_is_what_there_is_to_use(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  (tmp_path / "average" / "step-30").mkdir(parents=True)
  (tmp_path / "average" / "step-30" / "model.index").write_bytes(b"")
  assert directory.is_finished
  assert directory.choose_checkpoints("latest") == ("average", [30])
  assert directory.latest_checkpoint() == directory.checkpoint_prefix(
    30, "average"
  )
  for name in ("best", "30"):
    with pytest.raises(InputError, match="--checkpoint=average"):
      directory.choose_checkpoints(name)
  with pytest.raises(InputError, match="holds a trained model"):
    new_directory(str(tmp_path))
  best = ModelDirectory(str(tmp_path / "other"))
  os.makedirs(best.checkpoint_directory(30, BEST))
  with open(best.checkpoint_prefix(30, BEST) + ".index", "wb"):
    pass
  with pytest.raises(InputError, match="holds a trained model"):
    new_directory(best.path)
  (tmp_path / "checkpoints" / "step-40").mkdir(parents=True)
  (tmp_path / "checkpoints" / "step-40" / "model.index").write_bytes(b"")
  assert not directory.is_finished
  assert directory.choose_checkpoints("latest") == ("checkpoints", [40])
