import collections
import unicodedata

import numpy as np
import pytest

from data_prep.encoding import pair_encoder
from data_prep.encoding.augmentation import ALL, KINDS, Augmentation, Augmenter
from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.pair_encoder import EncodingPlan, PairEncoder
from data_prep.reading.text_blocks import Block
from official_transformer.errors import InputError
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import VocabFiles

NAMES = [f"{one}{other}" for one in "BCDFGKLM" for other in "aeiou"]
SOURCES = [f"Where does {name} live, and why?" for name in NAMES] * 25
TARGETS = [f"Wo wohnt {name}, und warum?" for name in NAMES] * 25


def rewritten(sources, targets, number=0, seed=1, **shares):
  augmenter = Augmenter(Augmentation(**shares, seed=seed))
  return list(augmenter.rewrite(sources, targets, number))


def only(source, target, **shares):
  """Returns the one pair that becomes of one."""
  augmenter = Augmenter(Augmentation(**shares))
  (pair,) = augmenter.apply([source], [target], 0)
  return pair


@pytest.mark.parametrize(
  ("kind", "source", "target"),
  [
    ("upper", "DON'T GO, TOM!", "GEH NICHT ÜBER DIE STRASSE, TOM!"),
    ("title", "Don't Go, Tom!", "Geh Nicht Über Die Straße, Tom!"),
    ("lower", "don't go, tom!", "geh nicht über die straße, tom!"),
    ("endpunct", "Don't go, Tom", "Geh nicht über die Straße, Tom"),
  ],
)
def test_both_sides_are_rewritten_alike(kind, source, target):
  pair = ("Don't go, Tom!", "Geh nicht über die Straße, Tom!")
  assert only(*pair, **{kind: 1.0}) == (source, target)


@pytest.mark.parametrize(
  ("pair", "expected"),
  [
    (("Two dogs run", "Zwei Hunde"), ("Two dogs run.", "Zwei Hunde.")),
    (("Two dogs run", "两只狗"), ("Two dogs run.", "两只狗。")),
    (("Two dogs.", "两只狗。"), ("Two dogs", "两只狗")),
    (("What?!", "Was...?"), ("What", "Was")),
    # One side alone has a mark, or is nothing else: nothing is known of it.
    (("Two dogs.", "Zwei Hunde"), ("Two dogs.", "Zwei Hunde")),
    (("?", "?"), ("?", "?")),
    (("(see below)", "(siehe unten)"), ("(see below)", "(siehe unten)")),
    (("He said “go”.", "“Geh.”"), ("He said “go”.", "“Geh.”")),
    (("یہ پانی ہے۔", "This is water."), ("یہ پانی ہے", "This is water")),
    (("នេះជាទឹក។", "Սա ջուր է։"), ("នេះជាទឹក", "Սա ջուր է")),
    # How a Thai or a Hindi sentence ends, a full stop does not say.
    (("ไป", "Go"), ("ไป", "Go")),
    (("वह गया", "He left"), ("वह गया", "He left")),
    (("이름", "Имя"), ("이름.", "Имя.")),
  ],
)
def test_last_marks_go_or_come(pair, expected):
  assert only(*pair, endpunct=1.0) == expected


def test_long_runs_of_marks_take_linear_time():
  line = "." * 60_000 + "a"
  assert only(line, line, endpunct=1.0, merge=1.0) == (line + ".", line + ".")


def test_decomposed_letters_begin_no_word():
  line = unicodedata.normalize("NFD", "cafés über")
  assert only(line, line, title=1.0)[0] == unicodedata.normalize(
    "NFD", "Cafés Über"
  )


@pytest.mark.parametrize(
  "line", ["我昨天在学校看见他。", "ฉันไปโรงเรียน", "それは本です。"]
)
def test_letters_that_are_words_have_no_typing_errors(line):
  assert not rewritten([line] * 20, [str(n) for n in range(20)], typos=1.0)


def test_text_without_capitals_stays_as_it_is():
  assert not rewritten(["你好。"], ["नमस्ते।"], upper=1.0)


def test_typing_errors_are_in_the_source_alone_and_few():
  sources, targets = SOURCES[:200], TARGETS[:200]
  found = rewritten(sources, targets, typos=1.0)
  assert len(found) > 180  # Equal letters that are swapped are no error.
  changes = collections.Counter()
  for one in found:
    before = sources[one.first]
    assert one.target == targets[one.first]
    assert one.source[0] == "W"
    changes[len(one.source) - len(before)] += 1
  # Left out, swapped or another key, doubled.
  assert set(changes) == {-1, 0, 1}
  assert min(changes.values()) > 20


def test_long_lines_have_more_typing_errors_and_keep_their_words():
  line = " ".join(["mountains"] * 40)
  source, _ = only(line, "Berge", typos=1.0)
  words = source.split(" ")
  assert len(words) == 40
  assert 5 <= sum(word != "mountains" for word in words) <= 10


def test_whole_sentences_are_joined_with_those_that_follow():
  sources = ["One.", "Two!", "Three", "Four?", "Five."]
  targets = ["一。", "二！", "三", "四？", "五。"]
  seen = set()
  for seed in range(40):
    for one in rewritten(sources, targets, seed=seed, merge=0.7):
      span = slice(one.first, one.first + one.pairs)
      assert one.source == " ".join(sources[span])
      assert one.target == "".join(targets[span])
      seen.add((one.first, one.pairs))
  # What follows "Three" may be its rest: there is no mark behind it.
  assert seen == {(0, 2), (0, 3), (1, 2), (3, 2)}


def test_no_joined_line_is_too_long():
  sources, targets = ["a" * 400 + "."] * 9, ["b."] * 9
  assert not rewritten(sources, targets, merge=1.0)


def test_shares_are_kept():
  found = rewritten(SOURCES, TARGETS, upper=0.1, title=0.2, typos=0.3)
  plain = set(SOURCES)
  upper = sum(one.source.isupper() for one in found)
  title = sum("Where Does" in one.source for one in found)
  assert 0.05 < upper / len(plain) / 25 < 0.15
  assert 0.05 < title / len(plain) / 25 < 0.3
  assert 0.3 < len(found) / len(SOURCES) < 0.6


def test_seed_pass_and_text_decide_and_nothing_else():
  shares = {"upper": 0.2, "typos": 0.5, "merge": 0.3}
  first = rewritten(SOURCES[:40], TARGETS[:40], **shares)
  assert rewritten(SOURCES[:40], TARGETS[:40], **shares) == first
  assert rewritten(SOURCES[:40], TARGETS[:40], number=1, **shares) != first
  assert rewritten(SOURCES[:40], TARGETS[:40], seed=2, **shares) != first
  # Fixed for all times: data are made anew, bit for bit.
  assert only("Two dogs run.", "Zwei.", typos=1.0)[0] == "Two dogs runn."


def test_flags_are_read():
  found = Augmentation.parse("upper:.5, merge:1", 3, 7)
  assert found == Augmentation(upper=0.5, merge=1.0, passes=3, seed=7)
  assert Augmentation.parse("all", 1, 1) == Augmentation.parse(ALL, 1, 1)
  assert all(getattr(Augmentation.parse("all", 1, 1), kind) for kind in KINDS)
  assert Augmentation.parse("", 1, 1).to_json() == {}
  assert found.to_json()["passes"] == 3


@pytest.mark.parametrize(
  ("text", "said"),
  [
    ("caps:.1", "'caps' is none of upper, title"),
    ("upper", "'upper' has no share"),
    ("upper:x", "'upper:x' has no share"),
    ("upper:nan", "upper:nan is no share"),
    ("upper:1.5", "upper:1.5 is no share"),
    ("merge:.1,merge:.2", "merge is named twice"),
    ("upper:.5,title:.6", "together they must be at most 1"),
    ("upper:.1,,", "'' is none of"),
  ],
)
def test_what_is_no_augmentation_is_told(text, said):
  with pytest.raises(InputError, match="--augment: .*" + said[:20]):
    Augmentation.parse(text, 1, 1)


@pytest.fixture(scope="module")
def vocab_files(tmp_path_factory):
  directory = tmp_path_factory.mktemp("vocabulary")
  text = directory / "text"
  text.write_text("\n".join([*SOURCES, *TARGETS]) + "\n")
  path = str(directory / "vocab")
  Subtokenizer.build([str(text)], 60, min_count=2).save(path)
  return VocabFiles.joint(path)


def encode(vocab_files, augmentation, rows=range(40), **settings):
  plan = EncodingPlan(
    *(vocab_files, TextForm(), FilterSettings(**settings)),
    augmentation=augmentation,
  )
  sides = [
    [side[row].encode() + b"\n" for row in rows] for side in (SOURCES, TARGETS)
  ]
  return PairEncoder(plan).encode(Block(0, 100, "one", "other", 1, *sides))


def test_each_pass_has_records_of_its_own(vocab_files):
  plain = encode(vocab_files, Augmentation())
  found = encode(vocab_files, Augmentation(upper=0.5, passes=3))
  assert plain.pairs.tolist() == list(range(100, 140))
  numbers = [3 * pair + n for n in range(3) for pair in range(100, 140)]
  assert found.pairs.tolist() == numbers
  passes = [found.records[40 * n : 40 * n + 40] for n in range(3)]
  assert passes[0] != passes[1] != passes[2]
  for records in passes:
    same = sum(a == b for a, b in zip(records, plain.records, strict=True))
    assert 8 < same < 32


def test_joined_pairs_are_one_record(vocab_files):
  plain = encode(vocab_files, Augmentation())
  found = encode(vocab_files, Augmentation(merge=0.5))
  assert len(set(found.pairs.tolist())) == len(found.records) < 36
  # An EOS for each record; and no pair is lost.
  tokens = plain.lengths.sum(0) - found.lengths.sum(0)
  assert np.all(tokens <= 40 - len(found.records) + 1)
  assert not found.dropped


def test_what_would_be_left_out_stays_as_it_is(vocab_files):
  plain = encode(vocab_files, Augmentation())
  longest = int(plain.lengths.max())
  found = encode(vocab_files, Augmentation(merge=1.0), max_tokens=longest)
  assert found.records == plain.records
  assert not found.dropped


def test_equal_pairs_are_found_within_a_pass(vocab_files):
  rows = [*range(10), *range(10)]
  augmentation = Augmentation(typos=0.5, passes=2)
  found = encode(vocab_files, augmentation, rows, duplicates=True)
  first, second = np.split(found.fingerprints, 2)
  for one in (first, second):
    assert np.array_equal(one[:10], one[10:])
    assert len(set(one.tolist())) == 10
  assert not set(first.tolist()) & set(second.tolist())


def test_held_out_lines_are_not_made_either(vocab_files):
  held_out = frozenset(source.rstrip("?") for source in SOURCES[:40])
  plan = EncodingPlan(
    *(vocab_files, TextForm(), FilterSettings(held_out=("test",))),
    held_out=held_out,
    augmentation=Augmentation(endpunct=1.0),
  )
  lines = [
    [line.encode() + b"\n" for line in s[:40]] for s in (SOURCES, TARGETS)
  ]
  found = PairEncoder(plan).encode(Block(0, 100, "one", "other", 1, *lines))
  assert found.records == encode(vocab_files, Augmentation()).records


def test_joined_lines_are_no_longer_than_training_takes(
  vocab_files, monkeypatch
):
  plain = encode(vocab_files, Augmentation())
  monkeypatch.setattr(pair_encoder, "DEFAULT_MAX_LENGTH", 5)
  found = encode(vocab_files, Augmentation(merge=1.0))
  assert found.records == plain.records
