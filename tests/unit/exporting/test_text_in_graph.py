"""The tokenizers in a graph beside those of Python, on any text."""

import functools
import random

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trained_model import read_frozen

from official_transformer.decoding.batching import pad
from official_transformer.decoding.hypotheses import as_one_line
from official_transformer.text.tokenizer import (
  load_tokenizer,
  train_sentencepiece,
)

text_in_graph = pytest.importorskip(
  "official_transformer.exporting.text_in_graph",
  exc_type=ImportError,
)

KINDS = ["subtokens", "sentencepiece"]
SAMPLE = [
  "A dog runs: 12 _times_.",
  "Zwei Männer sitzen.",
  "一只狗在跑。",
  "ab",
]


@functools.cache
def tokenizers(kind):
  """Returns a tokenizer, and its two functions in a graph."""
  import tempfile

  with tempfile.TemporaryDirectory() as directory:
    path = f"{directory}/vocab"
    if kind == "subtokens":
      with open(path, "wb") as stream:
        stream.write(read_frozen()["vocabulary"].tobytes())
    else:
      with open(f"{directory}/text", "w", encoding="utf-8") as stream:
        stream.write("\n".join(SAMPLE * 50))
      train_sentencepiece([f"{directory}/text"], path, 60)
    tokenizer = load_tokenizer(path)
  module = text_in_graph.text_in_graph(tokenizer)
  encode = tf.function(
    module.encode,
    input_signature=[tf.TensorSpec([None], tf.string)],
    autograph=False,
  )
  decode = tf.function(
    module.decode,
    input_signature=[tf.TensorSpec([None, None], tf.int32)],
    autograph=False,
  )
  return tokenizer, module, encode, decode


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200, deadline=None)
@given(
  st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=4
  )
)
@example(["", " ", "\u3000\x1f a  b\u2028c \x85"])
@example(["\\_u;0 \\u \\\\12;_", "a\nb\r\nc", "\x00", "x" * 3000])
@example(["1\u00b2\u0663", "e\u0301", "\U0001f468\u200d\U0001f469", " \u00a0x"])
@example([])
def test_ids_are_the_tokenizers(kind, lines):
  tokenizer, _, encode, _ = tokenizers(kind)
  expected = [tokenizer.encode(line.strip(), add_eos=True) for line in lines]
  assert encode(tf.constant(lines, tf.string)).to_list() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_the_tokenizers(kind):
  tokenizer, _, _, decode = tokenizers(kind)
  rng = random.Random(0)
  known = range(2, tokenizer.vocab_size)
  rows = [rng.choices(known, k=rng.randrange(20)) for _ in range(2000)]
  if kind == "subtokens":
    # Of what escapes are made of, whole ones and broken ones come.
    escapes = [
      i for i in known if set(tokenizer.subtokens[i]) <= set("\\_u;0123456789")
    ]
    rows += [rng.choices(escapes, k=rng.randrange(30)) for _ in range(4000)]
  found = decode(tf.constant(pad([[*ids, 1, 3, 0] for ids in rows]))).numpy()
  for ids, text in zip(rows, found, strict=True):
    assert text.decode("utf-8") == as_one_line(tokenizer.decode(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_becomes_nothing(kind):
  _, _, encode, decode = tokenizers(kind)
  assert encode(tf.constant([], tf.string)).to_list() == []
  assert decode(tf.zeros([0, 0], tf.int32)).numpy().tolist() == []
  assert decode(tf.zeros([2, 3], tf.int32)).numpy().tolist() == [b"", b""]


def test_what_is_not_utf_8_is_replaced():
  tokenizer, _, encode, _ = tokenizers("subtokens")
  found = encode(tf.constant([b"a\xff b"])).to_list()
  assert found == [tokenizer.encode("a\ufffd b", add_eos=True)]


def test_what_stands_for_nothing_is_left_out():
  """An imported table may have more rows than the vocabulary has entries."""
  tokenizer, _, _, decode = tokenizers("subtokens")
  beyond = tokenizer.vocab_size + 3
  row = tokenizer.encode("dog")
  found = decode(tf.constant([[*row, beyond, 1]])).numpy()
  assert found[0].decode() == tokenizer.decode([*row, beyond])
