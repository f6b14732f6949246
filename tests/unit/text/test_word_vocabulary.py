import pytest

from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.text.packed_ids import pack
from official_transformer.text.tokenizer import (
  decoded_spans,
  has_unknown,
  load_tokenizer,
)
from official_transformer.text.word_vocabulary import WordTokenizer

TEXT = [
  'He said: "It isn\'t far, Mr. Smith."',
  "It isn't far; it costs 3.50 euros (or 4).",
  "A well-known T-shirt isn't far.",
]


@pytest.fixture
def words(tmp_path):
  text = tmp_path / "text"
  text.write_text("".join(f"{line}\n" for line in TEXT), "utf-8")
  return WordTokenizer.build([str(text)], "en")


@pytest.mark.parametrize("line", TEXT)
def test_text_comes_back(words, line):
  ids = words.encode(line)
  assert UNK_ID not in ids
  assert words.decode(ids) == line


def test_punctuation_is_split_off_and_abbreviations_are_not(words):
  pieces = words.pieces(words.encode(TEXT[0]))
  assert pieces == [
    f"\u2581{word}"
    for word in 'He said : " It isn \'t far , Mr. Smith . "'.split()
  ]


@pytest.mark.parametrize("line", TEXT)
def test_spans_are_the_words(words, line):
  ids = words.encode(line)
  spans = words.spans(line)
  found = [span.of(line) for span in spans]
  assert found == [w.replace("@-@", "-") for w in words.cut(line)]
  assert decoded_spans(words, ids) == spans


def test_unknown_words_are_flagged_and_marked(words):
  ids = words.encode("A zebra isn't far.")
  assert ids.count(UNK_ID) == 1 and has_unknown(words, ids)
  assert words.decode(ids) == "A \u2047 isn't far."
  assert words.pieces(ids)[1] == "<unk>"


def test_records_hold_the_same_ids(words):
  packed = words.pack_lines(TEXT)
  assert packed.packed == [
    pack(words.encode(line, add_eos=True)) for line in TEXT
  ]
  assert words.encode("far", add_eos=True)[-1] == EOS_ID


def test_rare_words_are_left_out(tmp_path):
  text = tmp_path / "text"
  text.write_text("a a a b b c\nc d\n", "utf-8")

  def kept(*arguments):
    return WordTokenizer.build([str(text)], "en", *arguments).words[3:]

  assert kept() == ["a", "b", "c", "d"]  # The most frequent first.
  assert kept(None, 2) == ["a", "b", "c"]
  assert kept(5, 2) == ["a", "b"]
  with pytest.raises(InputError, match="most frequent one 3 times"):
    kept(None, 4)


def test_a_file_holds_all_of_it(words, tmp_path):
  path = str(tmp_path / "vocab.words")
  words.save(path)
  read = load_tokenizer(path)
  assert read.words == words.words and read.language == "en"
  assert read.vocab_size == words.vocab_size


def test_languages_have_their_own_rules(tmp_path):
  line = "C'est l'eau, z.B. heute."
  cut = {
    language: WordTokenizer(["<pad>", "</s>", "<unk>"], language).cut(line)
    for language in ("fr", "de")
  }
  assert "l'" in cut["fr"] and "l'" not in cut["de"]


@pytest.mark.parametrize(
  "content, said",
  [
    ("#words moses en\na\nb\nc\nd\n", "second to fourth lines"),
    ("#words moses en\n<pad>\n</s>\n<unk>\na\na\n", "no word may come twice"),
    ("#words moses English\n<pad>\n</s>\n<unk>\na\n", "language code"),
  ],
)
def test_damaged_files_are_refused(tmp_path, content, said):
  path = tmp_path / "vocab.words"
  path.write_text(content, "utf-8")
  with pytest.raises(InputError, match=said):
    load_tokenizer(str(path))
