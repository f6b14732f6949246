import numpy as np
import pytest
import tensorflow as tf
from written_shards import encoded_block

from data_prep.encoding import shuffle as lib

PAIRS = [([i, 1], [i, i, 1]) for i in range(2, 302)]


def read(path):
  for raw in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
    feature = tf.train.Example.FromString(raw).features.feature
    yield tuple(
      list(feature[name].int64_list.value) for name in ("inputs", "targets")
    )


def shards_of(directory, block_sizes, shards=3, seed=7, duplicates=()):
  """Returns the bytes of all shards of PAIRS, made from some blocks."""
  directory.mkdir()
  order, paths, first = lib.Order(shards, seed), [], 0
  for size in block_sizes:
    paths.append(str(directory / f"block{len(paths)}"))
    block = encoded_block(PAIRS[first : first + size], first)
    lib.write_block(paths[-1], block, order)
    first += size
  assert first == len(PAIRS)
  corpus = lib.ShuffledCorpus(str(directory / "all"), order, paths)
  statistics = corpus.join_indices(np.array(duplicates, np.int64))
  for shard in range(shards):
    corpus.write_shard(shard, str(directory / f"shard{shard}"))
  contents = [(directory / f"shard{n}").read_bytes() for n in range(shards)]
  return contents, statistics


def test_splitmix64_of_the_paper():
  """The first outputs for the seed 0, as Vigna's splitmix64.c gives them."""
  state = np.arange(1, 4).astype(np.uint64)
  assert [hex(n) for n in lib._splitmix64(state).tolist()] == [
    "0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f",
  ]  # fmt: skip


def test_no_two_pairs_have_the_same_key():
  keys = lib.shuffle_keys(np.arange(300_000), seed=1)
  assert len(np.unique(keys)) == len(keys)
  shards = np.bincount(lib.Order(10, 1).shards_of(keys))
  # Of a binomial distribution, five deviations.
  assert np.abs(shards - 30_000).max() < 5 * np.sqrt(300_000 * 0.1 * 0.9)


def test_the_result_does_not_depend_on_the_blocks(tmp_path, monkeypatch):
  whole, statistics = shards_of(tmp_path / "a", [300])
  assert statistics.pairs == 300
  assert statistics.histogram == {3: 300}
  assert statistics.tokens == (600, 900)
  parts, other = shards_of(tmp_path / "b", [1, 0, 99, 150, 50])
  assert parts == whole and other == statistics
  # Nor on how much of a shard is held at a time.
  monkeypatch.setattr(lib, "_GATHERED_BYTES", 700)
  assert shards_of(tmp_path / "c", [120, 180])[0] == whole


def test_shards_hold_all_pairs_shuffled(tmp_path):
  shards_of(tmp_path / "a", [300], shards=4)
  shards = [list(read(tmp_path / "a" / f"shard{n}")) for n in range(4)]
  together = [pair for shard in shards for pair in shard]
  assert sorted(together) == PAIRS
  assert together != PAIRS
  assert all(shard != sorted(shard) for shard in shards)


def test_the_seed_decides(tmp_path):
  one, two, three = (
    shards_of(tmp_path / str(n), [300], seed=seed)[0]
    for n, seed in enumerate((1, 1, 2))
  )
  assert one == two != three


def test_without_a_seed_the_order_is_kept(tmp_path):
  shards_of(tmp_path / "a", [100, 200], shards=1, seed=None)
  assert list(read(tmp_path / "a" / "shard0")) == PAIRS


def test_duplicates_are_left_out_and_counted(tmp_path):
  contents, statistics = shards_of(
    tmp_path / "a", [100, 200], shards=1, seed=None, duplicates=[0, 100, 299]
  )
  kept = [p for n, p in enumerate(PAIRS) if n not in (0, 100, 299)]
  assert list(read(tmp_path / "a" / "shard0")) == kept
  assert len(contents) == 1
  assert statistics.pairs == 297
  assert statistics.dropped == {"duplicate": 3}


@pytest.mark.parametrize("at_once", [1 << 22, 7])
def test_all_but_the_first_of_equals_are_found(tmp_path, monkeypatch, at_once):
  monkeypatch.setattr(lib, "_DUPLICATES_AT_ONCE", at_once)
  fingerprints = np.random.default_rng(3).integers(0, 60, 90).astype(np.uint64)
  paths = []
  for first in range(0, 90, 30):
    block = encoded_block(PAIRS[:30], first)._replace(
      fingerprints=fingerprints[first : first + 30]
    )
    paths.append(str(tmp_path / str(first)))
    lib.write_block(paths[-1], block, lib.Order(4, 1))
  seen, expected = set(), []
  for number, fingerprint in enumerate(fingerprints.tolist()):
    if fingerprint in seen:
      expected.append(number)
    seen.add(fingerprint)
  assert lib.find_duplicates(paths).tolist() == expected
  assert expected
