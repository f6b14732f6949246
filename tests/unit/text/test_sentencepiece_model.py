"""What a vocabulary that is made here does to text before it cuts it."""

import pytest
import sentencepiece

from official_transformer.errors import InputError
from official_transformer.text import sentencepiece_model as lib
from official_transformer.text import tokenizer

TEXT = [
  "你好，世界！是吗？",
  "她说：“我们（也许）明天去。”",
  "½ １２％ ﬁ ™ … à la carte",
  "a dog: runs, and 34 50 ABC fi oe °C",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
  directory = tmp_path_factory.mktemp("vocabulary")
  text = directory / "text"
  text.write_text("".join(f"{line}\n" for line in TEXT * 5), encoding="utf-8")
  path = str(directory / "v.model")
  tokenizer.train_sentencepiece([str(text)], path, 2000)
  return path


def round_trip(path, line):
  loaded = tokenizer.load_tokenizer(path)
  return loaded.decode(loaded.encode(line))


@pytest.mark.parametrize("line", TEXT)
def test_no_character_of_the_text_becomes_another(path, line):
  assert round_trip(path, line) == line


@pytest.mark.parametrize(
  ("line", "read"),
  [
    # Full width, and a sign, where the text has what they stand for.
    ("３４ ℃", "34 °C"),
    # A letter whose accent is a character of its own; one that is not known.
    ("a\u0300 la carte", "à la carte"),
    ("a\u200bdog\u00ad", "adog"),
    # Blanks of all kinds.
    ("a\u00a0dog\truns\u3000and\ufffd", "a dog runs and"),
  ],
)
def test_what_the_text_does_not_have_is_read_as_what_it_stands_for(
  path, line, read
):
  assert round_trip(path, line) == read


def test_a_rule_that_rewrites_is_told(path, tmp_path):
  with open(path, "rb") as stream:
    assert lib.rewriting_rule(stream.read()) is None
  for name, told in (("identity", None), ("nmt_nfkc", "nmt_nfkc")):
    prefix = str(tmp_path / name)
    sentencepiece.SentencePieceTrainer.Train(
      sentence_iterator=iter(TEXT * 5),
      model_prefix=prefix,
      vocab_size=200,
      hard_vocab_limit=False,
      normalization_rule_name=name,
      minloglevel=2,
    )
    with open(f"{prefix}.model", "rb") as stream:
      assert lib.rewriting_rule(stream.read()) == told


def test_what_is_no_model_is_refused():
  with pytest.raises(InputError, match="x is no SentencePiece model"):
    lib.parse_model("x", b"\xff\xff")
