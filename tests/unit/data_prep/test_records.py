import pytest
import tensorflow as tf

from data_prep.encoding.records import framed, serialize_pair

PAIRS = [
  ([1], [1]),
  ([2, 1], [127, 128, 1]),
  ([16383, 16384, 2097151, 2097152, 1], [2**31 - 1, 1]),
  ([*range(2, 300), 1], [5] * 20000 + [1]),
  ([131071, 131072, 1], [1]),
]


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_an_example_has_tensorflows_bytes(pair):
  features = {
    name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
    for name, ids in zip(("inputs", "targets"), pair, strict=True)
  }
  example = tf.train.Example(features=tf.train.Features(feature=features))
  assert serialize_pair(*pair) == example.SerializeToString(deterministic=True)


def test_a_file_has_tensorflows_bytes(tmp_path):
  records = [serialize_pair(*pair) for pair in PAIRS] + [b"", b"x" * 100000]
  with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
    for record in records:
      writer.write(record)
  theirs = (tmp_path / "theirs").read_bytes()
  assert b"".join(map(framed, records)) == theirs
