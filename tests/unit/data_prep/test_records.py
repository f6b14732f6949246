import os

import tensorflow as tf

from data_prep.records import write_shards


def read(path):
  for raw in tf.data.TFRecordDataset(path).as_numpy_iterator():
    feature = tf.train.Example.FromString(raw).features.feature
    yield tuple(
      list(feature[name].int64_list.value) for name in ("inputs", "targets")
    )


def pairs():
  return [([i, 1], [i, i, 1]) for i in range(2, 102)]


def test_shards_hold_all_pairs_shuffled(tmp_path):
  histogram = write_shards(pairs(), str(tmp_path), "x", "train", 4, seed=1)
  names = sorted(os.listdir(tmp_path))
  assert names == [f"x-train-{n:05d}-of-00004" for n in range(1, 5)]
  shards = [list(read(str(tmp_path / name))) for name in names]
  together = [pair for shard in shards for pair in shard]
  assert sorted(together) == pairs()
  assert together != pairs()
  assert all(shard != sorted(shard) for shard in shards)
  assert histogram == {3: 100}


def test_the_seed_decides(tmp_path):
  contents = []
  for run, seed in enumerate((1, 1, 2)):
    directory = tmp_path / str(run)
    directory.mkdir()
    write_shards(pairs(), str(directory), "x", "train", 2, seed=seed)
    contents.append([p.read_bytes() for p in sorted(directory.iterdir())])
  assert contents[0] == contents[1]
  assert contents[0] != contents[2]


def test_without_a_seed_the_order_is_kept(tmp_path):
  write_shards(pairs(), str(tmp_path), "x", "dev", 1, seed=None)
  assert list(read(str(tmp_path / "x-dev-00001-of-00001"))) == pairs()
