import logging
import os
import random
import re

import pytest
from written_shards import write_shards

from official_transformer.data import data_directory
from official_transformer.data import prepared_data as lib
from official_transformer.data.buckets import Batching
from official_transformer.data.data_pipeline import dev_dataset, train_dataset
from official_transformer.errors import InputError
from official_transformer.text.identity import Vocabularies, Vocabulary

PAIRS = [([n + 2, 5, 1], [5, 5, 1]) for n in range(30)]


@pytest.fixture
def data_dir(tmp_path):
  directory = str(tmp_path)
  histogram = write_shards(PAIRS, directory, "x", "train", 3, seed=1)
  write_shards(PAIRS[:4], directory, "x", "dev", 1, seed=None)
  data_directory.write_description(
    directory,
    data_directory.DataDescription(
      Vocabularies.joint(Vocabulary("v", 40, "ab")),
      data_directory.CorpusDescription(30, 90, 90, {}, histogram),
    ),
  )
  return directory


def shard(data_dir, number):
  return os.path.join(data_dir, f"x-train-0000{number}-of-00003")


def first_ids(dataset, number):
  return sorted(
    int(row[0]) - 2
    for inputs, _ in dataset.take(number).as_numpy_iterator()
    for row in inputs
  )


def test_good_data(data_dir):
  data = lib.read_prepared_data(data_dir, 40, with_dev=True)
  assert data.train.pairs == 30
  assert data.dev.pairs == 4
  assert data.is_whole
  assert lib.read_prepared_data(data_dir, 40, with_dev=False).dev is None


def test_the_identity_tells_data_apart(data_dir, tmp_path_factory):
  def identity(directory):
    return lib.read_prepared_data(directory, 40, with_dev=False).identity()

  given = identity(data_dir)
  assert given.pairs == 30
  assert given.source_tokens == given.target_tokens == 90
  assert given.shards == 3
  # The same pairs in another order, wherever they lie.
  for seed, same in ((1, True), (2, False)):
    other = str(tmp_path_factory.mktemp("data"))
    write_shards(PAIRS, other, "y", "train", 3, seed=seed)
    assert (identity(other) == given) == same


def test_bad_ids_are_refused_or_left_out(data_dir, caplog):
  with pytest.raises(InputError, match="2 bad records in the train data:\n"):
    lib.read_prepared_data(data_dir, 30, with_dev=False)
  with caplog.at_level(logging.WARNING, logger="absl"):
    data = lib.read_prepared_data(
      data_dir, 30, with_dev=False, skip_bad_records=True
    )
  assert "leaving out 2 bad records" in caplog.text
  assert not data.is_whole
  dataset = train_dataset(data.train.index, Batching(84, 20), 1)
  # 28 sentences of the bucket below 8: four batches of 10 are an epoch and a
  # half; the whole epoch comes first.
  assert set(first_ids(dataset, 4)) == set(range(28))


def test_a_cut_off_shard_is_refused_or_used_up_to_there(data_dir, caplog):
  path = shard(data_dir, 2)
  os.truncate(path, os.path.getsize(path) // 2)
  with pytest.raises(InputError, match=r"00002-of-00003, record \d+: .*trunc"):
    lib.read_prepared_data(data_dir, 40, with_dev=False)
  with caplog.at_level(logging.WARNING, logger="absl"):
    data = lib.read_prepared_data(
      data_dir, 40, with_dev=False, skip_bad_records=True
    )
  assert "nothing after it can be read" in caplog.text
  assert 20 < data.train.pairs < 30
  assert not data.is_whole
  dataset = train_dataset(data.train.index, Batching(100, 20), 1)
  assert len(set(first_ids(dataset, 20))) == data.train.pairs


def test_a_shard_cut_off_between_records_is_noticed(data_dir):
  open(shard(data_dir, 3), "wb").close()
  with pytest.raises(InputError, match="usable pairs, data.json says 30: a"):
    lib.read_prepared_data(data_dir, 40, with_dev=False)


def test_a_missing_shard_is_refused_or_reported(data_dir, caplog):
  os.remove(shard(data_dir, 1))
  with pytest.raises(InputError, match="lacks 1 of its train shards"):
    lib.read_prepared_data(data_dir, 40, with_dev=False)
  with caplog.at_level(logging.WARNING, logger="absl"):
    data = lib.read_prepared_data(
      data_dir, 40, with_dev=False, skip_bad_records=True
    )
  assert "missing, and left out: " in caplog.text
  assert len(data.train.paths) == 2
  assert not data.is_whole
  # Neither where nothing says how many pairs there should be.
  os.remove(os.path.join(data_dir, "data.json"))
  data = lib.read_prepared_data(
    data_dir, 40, with_dev=False, skip_bad_records=True
  )
  assert not data.is_whole


def test_what_was_read_is_not_read_again(data_dir, tmp_path_factory):
  cache = str(tmp_path_factory.mktemp("model") / "data_index.npz")

  def read(vocab_size=40):
    return lib.read_prepared_data(
      data_dir, vocab_size, with_dev=True, cache_file=cache
    )

  first = read()
  first.remember()
  again = read()
  assert (first.is_remembered, again.is_remembered) == (False, True)
  assert again.identity() == first.identity()
  assert again.usable() == first.usable()
  assert again.train.lengths == first.train.lengths
  ids = first_ids(train_dataset(first.train.index, Batching(84, 20), 1), 9)
  assert ids == first_ids(
    train_dataset(again.train.index, Batching(84, 20), 1), 9
  )
  # Another vocabulary, or a shard that has been written since.
  assert not read(41).is_remembered
  path = shard(data_dir, 2)
  os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 1))
  assert not read().is_remembered


@pytest.mark.parametrize("size", [0, 10, 300])
def test_a_damaged_memory_is_none(data_dir, tmp_path_factory, size):
  cache = str(tmp_path_factory.mktemp("model") / "data_index.npz")

  def read():
    return lib.read_prepared_data(
      data_dir, 40, with_dev=False, cache_file=cache
    )

  read().remember()
  os.truncate(cache, size)
  data = read()
  assert not data.is_remembered
  assert data.train.pairs == 30


def test_any_damage_of_a_memory_is_noticed(data_dir, tmp_path_factory):
  cache = tmp_path_factory.mktemp("model") / "data_index.npz"

  def read():
    return lib.read_prepared_data(
      data_dir, 40, with_dev=False, cache_file=str(cache)
    )

  expected = read()
  expected.remember()
  good = cache.read_bytes()
  rng = random.Random(1)
  for _ in range(60):
    bad = bytearray(good)
    for _ in range(rng.choice([1, 5])):
      bad[rng.randrange(len(bad))] = rng.randrange(256)
    cache.write_bytes(bad)
    assert read().identity() == expected.identity()


def test_bad_records_are_remembered_too(data_dir, tmp_path_factory, caplog):
  """Leaving them out again costs no more; without that they are refused."""
  cache = str(tmp_path_factory.mktemp("model") / "data_index.npz")

  def read(skip):
    return lib.read_prepared_data(
      data_dir, 30, False, skip_bad_records=skip, cache_file=cache
    )

  first = read(True)
  first.remember()
  again = read(True)
  assert again.is_remembered
  assert again.train.problems == first.train.problems
  assert again.usable() == first.usable()
  assert caplog.text.count("leaving out 2 bad records") == 2
  with pytest.raises(InputError, match="2 bad records in the train data:\n"):
    read(False)


def test_shards_written_while_they_are_read_are_read_again(
  data_dir, tmp_path_factory
):
  cache = str(tmp_path_factory.mktemp("model") / "data_index.npz")
  data = lib.read_prepared_data(data_dir, 40, False, cache_file=cache)
  os.remove(os.path.join(data_dir, "data.json"))
  write_shards(PAIRS[:20], data_dir, "x", "train", 3, seed=1)
  data.remember()
  again = lib.read_prepared_data(data_dir, 40, False, cache_file=cache)
  assert not again.is_remembered
  assert again.train.pairs == 20


def test_damage_that_shows_nowhere_is_not_remembered_for_ever(
  data_dir, tmp_path_factory
):
  """A flipped bit, of the same size and time: the run meets it."""
  cache = str(tmp_path_factory.mktemp("model") / "data_index.npz")
  lib.read_prepared_data(data_dir, 40, False, cache_file=cache).remember()
  path = shard(data_dir, 2)
  written = os.stat(path).st_mtime_ns
  with open(path, "r+b") as stream:
    stream.seek(30)
    stream.write(b"\xff")
  os.utime(path, ns=(written, written))
  data = lib.read_prepared_data(data_dir, 40, False, cache_file=cache)
  assert data.is_remembered
  assert "since the run began" in data.change()
  with pytest.raises(InputError, match="in the train data"):
    lib.read_prepared_data(data_dir, 40, False, cache_file=cache)


def test_what_is_damaged_later_is_told_from_what_was(data_dir):
  data = lib.read_prepared_data(
    data_dir, 30, with_dev=False, skip_bad_records=True
  )
  assert data.change() is None
  path = shard(data_dir, 2)
  os.truncate(path, os.path.getsize(path) - 1)
  assert re.match(".*since the run began:\n.*00002-of-0000", data.change())


@pytest.mark.parametrize("shards", [3, 5])
def test_other_data_in_the_same_place_are_no_damage(data_dir, shards):
  """Of a larger vocabulary, even: their ids are not those of the run."""
  data = lib.read_prepared_data(data_dir, 40, False)
  pairs = [([n + 30, 5, 6, 7, 1], [5, 5, 1]) for n in range(40)]
  write_shards(pairs, data_dir, "x", "train", shards, seed=2)
  said = data.change()
  assert "replaced during the run" in said
  assert "skip_bad_records" not in said


def test_development_data_are_read_too(data_dir, tmp_path, caplog):
  write_shards([*PAIRS[:4], ([99, 1], [5, 1])], data_dir, "x", "dev", 1, None)
  with pytest.raises(InputError, match="1 bad record in the dev data"):
    lib.read_prepared_data(data_dir, 40, with_dev=True)
  data = lib.read_prepared_data(
    data_dir, 40, with_dev=True, skip_bad_records=True
  )
  drawn = dev_dataset(data.dev.index, Batching(100, 20))
  assert first_ids(drawn, -1) == [0, 1, 2, 3]
  assert data.is_whole  # The order of training does not depend on them.
  os.remove(tmp_path / "x-dev-00001-of-00001")
  with caplog.at_level(logging.WARNING, logger="absl"):
    assert lib.read_prepared_data(data_dir, 40, with_dev=True).dev is None
  assert "no validation loss" in caplog.text
