import dataclasses
import os
import shutil

import pytest

from data_prep.prepare_data import Corpus, DataSettings, prepare
from official_transformer.errors import InputError
from official_transformer.model_directory import ModelDirectory
from official_transformer.model_params import TINY
from official_transformer.training.model_setup import prepare_directory


@pytest.fixture(scope="module")
def data_dirs(tmp_path_factory):
  """Two data directories with different vocabularies."""
  root = tmp_path_factory.mktemp("data")
  text = root / "text"
  text.write_text("eins zwei drei vier fünf\n" * 50, encoding="utf-8")
  for name, size in (("one", 40), ("two", 35)):
    prepare(
      {"train": Corpus([str(text)], [str(text)])},
      DataSettings(str(root / name), "subtoken", size),
    )
  with (root / "two" / "vocab.35.subtokens").open("a") as stream:
    stream.write("'more'\n")
  prepare(
    {"train": Corpus([str(text)], [str(text)])},
    DataSettings(
      str(root / "two"), vocab_file=str(root / "two" / "vocab.35.subtokens")
    ),
  )
  return str(root / "one"), str(root / "two")


def trained(path, data_dir):
  """Makes a model directory that looks trained."""
  directory = ModelDirectory(str(path))
  params = prepare_directory(directory, TINY, True, None, data_dir)
  os.makedirs(directory.checkpoint_directory(5))
  return directory, params


def test_the_directory_is_complete_in_itself(tmp_path, data_dirs):
  directory, params = trained(tmp_path, data_dirs[0])
  assert params == directory.read().params
  assert params.vocab_size == directory.read().vocabulary["size"] > 0
  assert os.path.exists(directory.vocab_file())
  assert {"tensorflow", "keras"} <= set(directory.read().versions)


def test_resuming_takes_the_stored_parameters(tmp_path, data_dirs):
  directory, params = trained(tmp_path, data_dirs[0])
  big = dataclasses.replace(TINY, hidden_size=64)
  again = prepare_directory(directory, big, False, None, data_dirs[0])
  assert again == params


def test_contradicting_parameters_name_both_values(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  other = dataclasses.replace(TINY, hidden_size=64, relu_dropout=0.3)
  with pytest.raises(InputError) as caught:
    prepare_directory(directory, other, True, None, data_dirs[0])
  assert "hidden_size: 64 given, 32 stored" in str(caught.value)
  assert "relu_dropout: 0.3 given, 0.1 stored" in str(caught.value)


def test_how_to_decode_may_change(tmp_path, data_dirs):
  directory, params = trained(tmp_path, data_dirs[0])
  other = dataclasses.replace(TINY, beam_size=8, alpha=1.0)
  assert prepare_directory(directory, other, True, None, data_dirs[0]) == params


def test_a_model_that_was_never_trained_binds_nobody(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  shutil.rmtree(directory.join("checkpoints"))
  other = dataclasses.replace(TINY, hidden_size=64)
  made = prepare_directory(directory, other, True, None, data_dirs[0])
  assert made.hidden_size == 64


def test_another_vocabulary_is_refused_with_both(tmp_path, data_dirs):
  directory, params = trained(tmp_path, data_dirs[0])
  (name,) = (n for n in os.listdir(data_dirs[1]) if n.startswith("vocab"))
  with pytest.raises(InputError, match=f"trained with {params.vocab_size}"):
    prepare_directory(
      directory, TINY, False, os.path.join(data_dirs[1], name), data_dirs[1]
    )


def test_data_of_another_vocabulary_is_refused(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  with pytest.raises(InputError, match="tokenized with another vocabulary"):
    prepare_directory(directory, TINY, False, None, data_dirs[1])


def test_a_damaged_description_is_reported(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  with pytest.raises(InputError, match="is no model directory"):
    directory.read()
  (tmp_path / "model.json").write_text("{}")
  with pytest.raises(InputError, match="damaged"):
    directory.read()


def test_half_made_checkpoints_do_not_count(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  for name in ("step-9.incomplete", "step-30", "step-4", "notes"):
    os.makedirs(directory.join("checkpoints", name))
  assert directory.checkpoint_steps() == [4, 30]
  assert directory.latest_checkpoint().endswith("step-30/model")
