import pytest
import tensorflow as tf

from official_transformer.data import record_check as lib

GOOD = ([5, 6, 1], [7, 1])


def serialize_pair(source, target):
  """Returns an example, which may hold what is no id."""
  features = {
    name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
    for name, ids in (("inputs", source), ("targets", target))
  }
  example = tf.train.Example(features=tf.train.Features(feature=features))
  return example.SerializeToString(deterministic=True)


def write(path, records):
  with tf.io.TFRecordWriter(str(path)) as writer:
    for record in records:
      writer.write(
        record if isinstance(record, bytes) else serialize_pair(*record)
      )
  return str(path)


def test_what_is_usable_is_counted(tmp_path):
  paths = [
    write(tmp_path / "a", [GOOD, ([9, 9, 9, 9, 1], [3, 1])]),
    write(tmp_path / "b", [GOOD]),
  ]
  check = lib.check_records(paths, 10)
  assert check.lengths == {3: 2, 5: 1}
  assert (check.pairs, check.source_tokens, check.target_tokens) == (3, 11, 6)
  assert check.problems == ()
  assert check.index.lengths.tolist() == [3, 5, 3]
  assert check.count_longer(3) == 1


def test_the_fingerprint_is_of_the_records_and_their_order(tmp_path):
  others = ([5, 6, 1], [8, 1]), ([6, 5, 1], [7, 1])
  files = [
    write(tmp_path / "a", [GOOD, *others]),
    write(tmp_path / "b", [*others, GOOD]),
    write(tmp_path / "c", [GOOD, others[0], GOOD]),
  ]
  seen = {lib.check_records([path], 10).fingerprint for path in files}
  assert len(seen) == 3
  again = write(tmp_path / "d", [GOOD, *others])
  assert lib.check_records([again], 10).fingerprint in seen


@pytest.mark.parametrize(
  ("bad", "reason"),
  [
    (([5, 10, 1], [7, 1]), "inputs has the id 10, the vocabulary 1 to 9"),
    (([5, 1], [-1, 1]), "targets has the id -1, the vocabulary 1 to 9"),
    (([5, 0, 6, 1], [7, 1]), "inputs has the id 0, the vocabulary 1 to 9"),
    (([5, 1], []), "targets is empty"),
    (([1], [5, 1]), "inputs is empty"),
    (b"\xff\xff\xff", "not a tf.train.Example"),
    (b"", "inputs is empty"),
  ],
)
def test_a_bad_record_is_named(tmp_path, bad, reason):
  first = write(tmp_path / "a", [GOOD])
  path = write(tmp_path / "b", [GOOD, bad, GOOD])
  check = lib.check_records([first, path], 10)
  assert check.problems == (lib.Problem(path, 2, reason),)
  assert str(check.problems[0]) == f"{path}, record 2: {reason}"
  assert check.lengths == {3: 3}
  assert check.index.lengths.tolist() == [3, 3, 0, 3]


def test_a_bad_record_does_not_slow_the_others_down(tmp_path, monkeypatch):
  path = write(tmp_path / "a", [GOOD, ([5, 10, 1], [7, 1]), GOOD] * 3)

  def slow(*_):
    raise AssertionError("all records are looked at one by one")

  looked_at = []
  reason = lib._reason
  monkeypatch.setattr(lib, "_tally_one_by_one", slow)
  monkeypatch.setattr(
    lib, "_reason", lambda *a: looked_at.append(a) or reason(*a)
  )
  assert [p.number for p in lib.check_records([path], 10).problems] == [2, 5, 8]
  assert len(looked_at) == 3


def test_what_is_no_example_slows_down_those_that_are_read_with_it(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(lib, "_RECORDS_AT_ONCE", 2)
  slow = []
  one_by_one = lib._tally_one_by_one
  monkeypatch.setattr(
    lib,
    "_tally_one_by_one",
    lambda batch, size: slow.append(len(batch)) or one_by_one(batch, size),
  )
  path = write(tmp_path / "a", [GOOD] * 5 + [b"\xff\xff"] + [GOOD] * 3)
  check = lib.check_records([path], 10)
  assert check.pairs == 8
  assert [p.number for p in check.problems] == [6]
  assert slow == [2]


def test_damage_ends_a_shard(tmp_path):
  path = write(tmp_path / "a", [GOOD, GOOD, GOOD])
  content = bytearray((tmp_path / "a").read_bytes())
  content[len(content) // 3 + 20] ^= 1
  (tmp_path / "a").write_bytes(content)
  other = write(tmp_path / "b", [GOOD])
  gone = str(tmp_path / "gone")
  check = lib.check_records([path, other, gone], 10)
  assert [p.path for p in check.problems] == [path, gone]
  assert [p.number for p in check.problems] == [2, 1]
  assert all(p.ends_shard for p in check.problems)
  assert check.lengths == {3: 2}
  # Nothing after the damage is read.
  assert check.index.counts.tolist() == [1, 1]


def test_only_the_first_problems_are_shown(tmp_path):
  path = write(tmp_path / "a", [([5, 1], [])] * 7)
  shown = lib.describe_problems(lib.check_records([path], 10).problems).split(
    "\n"
  )
  assert len(shown) == 6
  assert shown[0] == f"  {path}, record 1: targets is empty"
  assert shown[-1] == "  and 2 more"
