import numpy as np
import pytest

from official_transformer.decoding.engines import Engine
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translation import Hypothesis
from official_transformer.decoding.unknown_words import replace_unknown
from official_transformer.errors import InputError
from official_transformer.model_params import UNK_ID
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  load_tokenizer,
  train_sentencepiece,
)
from official_transformer.text.vocabulary_files import Tokenizers
from official_transformer.text.word_vocabulary import WordTokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  root = tmp_path_factory.mktemp("vocabulary")
  text = root / "text"
  text.write_text("my name is sam\nich heiße sam\ntom and anna\n" * 20)
  path = str(root / "vocab.model")
  train_sentencepiece([str(text)], path, 40, "char")
  return load_tokenizer(path)


class Diagonal:
  """Attention from the n-th piece of a translation to the n-th of its source.

  But where one is named: from `row` to `column`.
  """

  def __init__(self, tokenizer, pairs=()):
    self.tokenizers = Tokenizers.of(tokenizer)
    self.pairs = dict(pairs)

  def read_cross(self, lines):
    self.asked = len(lines)
    found = []
    for source, target in lines:
      cross = np.full([1, 1, len(target), len(source)], 0.01, np.float32)
      for row in range(len(target)):
        cross[0, 0, row, self.pairs.get(row, min(row, len(source) - 1))] = 0.9
      found.append(cross)
    return found


def replaced(reader, source, *targets):
  """Returns what becomes of the translations of a line."""
  tokenizer = reader.tokenizers.source
  piece = PieceToTranslate(source, tokenizer.encode(source, add_eos=True))
  ids = [tokenizer.encode(target) for target in targets]
  found = [FoundSequence(i, 0.0, True) for i in ids]
  hypotheses = [
    Hypothesis(tokenizer.decode(i), 0.0, [], True, has_unknown=UNK_ID in i)
    for i in ids
  ]
  (result,), spans = replace_unknown(
    reader, None, [piece], [found], [hypotheses]
  )
  for n, (i, hypothesis) in enumerate(zip(ids, result, strict=True)):
    assert hypothesis.has_unknown == ("\u2047" in hypothesis.text)
    if (0, n) in spans:
      pieces = tokenizer.pieces(i)
      for token, part, span in zip(i, pieces, spans[0, n], strict=True):
        known = part.replace("\u2581", " ").strip()
        assert token == UNK_ID or span.of(hypothesis.text).strip() == known
  return [hypothesis.text for hypothesis in result]


def test_an_unknown_character_is_that_of_the_source(tokenizer):
  reader = Diagonal(tokenizer)
  assert tokenizer.decode(tokenizer.encode("is ☃am")) == "is  \u2047 am"
  assert replaced(reader, "is ☃am", "my ☃am", "sam") == ["my ☃am", "sam"]
  assert reader.asked == 1  # What is known is not looked up.


def test_several_are_told_apart(tokenizer):
  reader = Diagonal(tokenizer)
  assert replaced(reader, "☃s Ω", "☃s ☃") == ["☃s Ω"]


def test_where_the_source_is_known_its_word_is_taken(tokenizer):
  reader = Diagonal(tokenizer, {8: 9})
  # The tenth of the source's characters is one of "anna".
  assert replaced(reader, "tom and anna", "ich hei ☃") == ["ich hei anna"]


@pytest.mark.parametrize(
  ("target", "text"),
  [
    ("ma☃na", "ma\u2047na"),  # No word belongs amid another.
    ("anna☃", "anna\u2047"),
    ("ich ☃ sam", "ich tom sam"),
  ],
)
def test_what_is_no_word_by_itself_stays_unknown(tokenizer, target, text):
  reader = Diagonal(tokenizer, {5: 3})
  found = replaced(reader, "tom anna", target)
  assert [f.replace(" \u2047 ", "\u2047") for f in found] == [text]


def test_a_blank_of_the_source_is_no_word(tokenizer):
  # The fifth of the source's pieces is the blank between its words.
  reader = Diagonal(tokenizer, {4: 4})
  assert replaced(reader, "tom anna", "is ☃") == ["is anna"]


def test_text_is_that_of_the_models_form(tokenizer):
  formed = FormedTokenizer(tokenizer, TextForm("nfkc", lowercase=True))
  assert replaced(Diagonal(formed), "IS Ωam", "is ☃am") == ["is ωam"]


def test_whole_words_get_their_blanks(tmp_path):
  text = tmp_path / "text"
  text.write_text("my name is sam\ntom and anna\n" * 20)
  train_sentencepiece([str(text)], str(tmp_path / "vocab"), 40, "word")
  words = load_tokenizer(str(tmp_path / "vocab"))
  reader = Diagonal(words)
  source = "my name is Xyz and Abc"
  assert replaced(reader, source, "tom and is Xyz is Abc") == [
    "tom and is Xyz is Abc"
  ]
  # A known word of the source stands apart as well.
  assert replaced(reader, "tom and anna", "my Xyz is") == ["my and is"]


def test_it_needs_attention():
  with pytest.raises(InputError, match="replace_unk needs TensorFlow's"):
    DecodingOptions(replace_unk=True, engine=Engine("ctranslate2"))


def test_a_word_is_joined_as_its_language_joins_words():
  known = "<pad> </s> <unk> my name is , Sam . ( )".split()
  reader = Diagonal(WordTokenizer(known, "en"))
  source = "my name is (Anna), Sam."
  assert replaced(reader, source, "my name is (Xyz), Sam.") == [source]
