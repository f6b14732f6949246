import numpy as np
import pytest

from data_prep.encoding import pair_encoder as lib
from data_prep.encoding.augmentation import Augmentation
from data_prep.encoding.filters import FilterSettings
from data_prep.reading.text_blocks import Block
from official_transformer.errors import InputError
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import VocabFiles


def clean(sources, targets, form=None, **settings):
  block = Block(0, 10, "one", "other", 5, sources, targets)
  cleaner = lib.PairCleaner(form or TextForm(), FilterSettings(**settings))
  return cleaner.clean(block)


def test_blanks_at_the_ends_are_no_part_of_a_line():
  found = clean([b" a  b\r\n", b"\n", b"c"], [b"\xe3\x80\x80x\n", b"y\n", b"z"])
  assert found.sources == ["a  b", "c"]
  assert found.targets == ["x", "z"]
  assert found.rows == [0, 2]
  assert found.dropped == {"empty source": 1}


@pytest.mark.parametrize("inner", ["\x85", "\u2028", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(inner):
  line = f"a{inner}b\n".encode()
  found = clean([line, b"c\n"], [b"x\n", line])
  assert found.sources == [f"a{inner}b", "c"]
  assert found.targets == ["x", f"a{inner}b"]


def test_what_is_not_utf8_is_named_or_dropped():
  lines = ([b"a\n", b"b\xff\n", b"c\n"], [b"x\n", b"y\n", b"\xe4z\n"])
  with pytest.raises(InputError, match=r"one, line 6: not UTF-8 \(byte 2 of"):
    clean(*lines)
  found = clean(*lines, invalid_utf8="drop")
  assert found.sources == ["a"]
  assert found.dropped == {"not UTF-8": 2}


def test_two_columns():
  found = clean([b"a\tx\tmore\n", b"alone\n", b"\n", b"\ty\n"], None)
  assert (found.sources, found.targets) == (["a"], ["x"])
  assert found.dropped == {"not two columns": 1, "empty source": 2}


def test_the_form_comes_before_the_filters():
  form = TextForm("nfkc", lowercase=True)
  found = clean(["\uff21\uff22\n".encode()], [b"ab\n"], form, identical=True)
  assert found.dropped == {"identical sides": 1}


def test_fingerprints_tell_pairs_apart():
  pairs = [("a", "b c"), ("a b", "c"), ("a", "b"), ("b", "a"), ("a", "b c")]
  found = [lib.fingerprint(*pair) for pair in pairs]
  assert len(set(found)) == 4 and found[0] == found[4]
  assert all(0 <= n < 1 << 64 for n in found)


@pytest.fixture
def vocab_file(tmp_path):
  text = tmp_path / "text"
  text.write_text("aa bb cc dd\n" * 10)
  path = str(tmp_path / "vocab")
  Subtokenizer.build([str(text)], 20, min_count=2).save(path)
  return path


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("passes", [1, 2])
def test_sources_of_several_sentences_are_counted(
  vocab_file, lowercase, passes
):
  """As the text has them: in lower case they end nowhere, joined everywhere."""
  encoder = lib.PairEncoder(
    lib.EncodingPlan(
      VocabFiles.joint(vocab_file),
      TextForm(lowercase=lowercase),
      FilterSettings(max_tokens=60),
      augmentation=Augmentation(merge=1.0, passes=passes),
    )
  )
  sources = [
    b"Aa. Bb.\n",
    b"Aa.\n",
    b"aa\n",
    b"\n",
    b"Aa. " * 30 + b"\n",
    b"Bb. Cc\n",
  ]
  block = Block(0, 0, "one", "other", 1, sources, [b"Aa.\n"] * 6)
  encoded = encoder.encode(block)
  assert (encoded.kept_pairs, encoded.several_sentences) == (4, 2)


def test_records_know_their_pairs(vocab_file):
  settings = FilterSettings(duplicates=True, max_tokens=3)
  encoder = lib.PairEncoder(
    lib.EncodingPlan(VocabFiles.joint(vocab_file), TextForm(), settings)
  )
  block = Block(
    *(2, 100, "one", "other", 1),
    [b"aa\n", b"\n", b"aa bb cc\n", b"cc dd\n"],
    [b"bb\n", b"aa\n", b"dd\n", b"cc\n"],
  )
  encoded = encoder.encode(block)
  assert encoded.pairs.tolist() == [100, 103]
  assert encoded.lengths.tolist() == [[2, 2], [3, 2]]
  assert encoded.dropped == {"empty source": 1, "too many tokens": 1}
  assert encoded.fingerprints.tolist() == [
    lib.fingerprint("aa", "bb"),
    lib.fingerprint("cc dd", "cc"),
  ]
  assert encoded.fingerprints.dtype == np.uint64
  assert len(encoded.records) == 2
