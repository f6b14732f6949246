import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from official_transformer.text import packed_ids as lib

IDS = st.one_of(
  st.integers(0, 20_000),
  st.integers(0, 2**63 - 1),
  st.sampled_from([2**n + d for n in range(7, 63, 7) for d in (-1, 0)]),
)


@given(st.lists(st.lists(IDS, max_size=6), max_size=6))
def test_ids_are_packed_as_protocol_buffers_pack_them(lines):
  theirs = []
  for ids in lines:
    serialized = tf.train.Int64List(value=ids).SerializeToString()
    theirs.append(serialized[2:])  # After the field's tag and size.
  assert lib.pack_lines(lines).packed == theirs
  assert list(map(lib.pack, lines)) == theirs
  assert lib.pack_lines(lines).counts == list(map(len, lines))
  assert list(map(lib.count, theirs)) == list(map(len, lines))
