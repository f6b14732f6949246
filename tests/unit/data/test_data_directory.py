import json

import pytest

from official_transformer.data import data_directory as lib
from official_transformer.errors import InputError
from official_transformer.text.identity import Vocabularies, Vocabulary


def touch(directory, *names):
  for name in names:
    (directory / name).write_bytes(b"")


def describe(vocabulary, lengths):
  return lib.DataDescription(
    Vocabularies.joint(Vocabulary(vocabulary, 9, "ab")),
    lib.CorpusDescription(14, 100, 90, {"empty source": 1}, lengths),
  )


def test_names_are_upstreams():
  assert lib.shard_name("wmt32k", "train", 1, 100) == (
    "wmt32k-train-00001-of-00100"
  )


def test_shards_are_found_and_half_made_ones_are_not(tmp_path):
  names = [lib.shard_name("x", "train", n, 2) for n in (1, 2)]
  touch(tmp_path, *names, names[0] + ".incomplete", "train.txt", "data.json")
  touch(tmp_path, lib.shard_name("training", "dev", 1, 1))
  assert lib.shard_paths(str(tmp_path), "train") == [
    str(tmp_path / name) for name in names
  ]


def test_a_missing_shard_is_named(tmp_path):
  touch(tmp_path, lib.shard_name("x", "train", 1, 2))
  with pytest.raises(InputError, match="lacks 1 .*x-train-00002-of-00002"):
    lib.shard_paths(str(tmp_path), "train")


def test_no_data_names_the_command_that_makes_it(tmp_path):
  with pytest.raises(InputError, match="with: prepare_data"):
    lib.shard_paths(str(tmp_path), "train")
  with pytest.raises(InputError, match="with: prepare_data"):
    lib.DataDirectory(str(tmp_path)).vocab_files()


def test_description_round_trip(tmp_path):
  directory = str(tmp_path)
  assert lib.read_description(directory) is None
  touch(tmp_path, "v.model")
  description = describe("v.model", {3: 2, 10: 5, 11: 7})
  lib.write_description(directory, description)
  assert lib.read_description(directory) == description
  path = str(tmp_path / "v.model")
  assert lib.DataDirectory(directory).vocab_files() == (path, path)
  content = json.loads((tmp_path / "data.json").read_text())
  assert content["vocabulary"]["sha256"] == "ab"
  assert content["train"]["length_histogram"] == {"3": 2, "10": 5, "11": 7}
  assert "dev" not in content


def test_damage_is_reported(tmp_path):
  for content in ("{", "{}", '{"vocabulary": 3}', "[]"):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(InputError, match="damaged"):
      lib.read_description(str(tmp_path))
  lib.write_description(str(tmp_path), describe("gone", {}))
  with pytest.raises(InputError, match="gone, which is not there"):
    lib.DataDirectory(str(tmp_path)).vocab_files()
