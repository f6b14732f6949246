import pytest
import sentencepiece

from official_transformer.errors import InputError
from official_transformer.text import packed_ids
from official_transformer.text import tokenizer as lib
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.text_form import TextForm


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
  path = tmp_path_factory.mktemp("text") / "text"
  words = "eins zwei drei vier fünf sechs sieben acht neun zehn".split()
  lines = [" ".join(words[i:] + words[:i]) for i in range(10)] * 20
  path.write_text("\n".join(lines) + "\n", encoding="utf-8")
  return str(path)


@pytest.fixture(scope="module")
def vocab_file(text_file, tmp_path_factory):
  path = str(tmp_path_factory.mktemp("vocab") / "v.model")
  lib.train_sentencepiece([text_file], path, 60)
  return path


def test_both_kinds_are_told_apart(vocab_file, text_file, tmp_path):
  subtokens = str(tmp_path / "v.subtokens")
  Subtokenizer.build([text_file], 50, min_count=5).save(subtokens)
  assert isinstance(lib.load_tokenizer(subtokens), Subtokenizer)
  assert isinstance(lib.load_tokenizer(vocab_file), lib.SentencePieceTokenizer)


@pytest.mark.parametrize("model_type", lib.SENTENCEPIECE_TYPES)
def test_pieces_are_of_the_type_that_was_asked_for(
  text_file, tmp_path, model_type
):
  path = str(tmp_path / "v.model")
  lib.train_sentencepiece([text_file], path, 60, model_type)
  tokenizer = lib.load_tokenizer(path)
  pieces = tokenizer.pieces(tokenizer.encode("zwei fünf"))
  if model_type == "char":
    assert pieces == list("▁zwei▁fünf")
  elif model_type == "word":
    assert pieces == ["▁zwei", "▁fünf"]
    assert tokenizer.encode("zwei unerhört")[1] == lib.UNK_ID
  assert tokenizer.decode(tokenizer.encode("zwei fünf")) == "zwei fünf"


def test_sentencepiece_has_the_official_ids(vocab_file):
  tokenizer = lib.load_tokenizer(vocab_file)
  assert tokenizer.processor.unk_id() == 2
  assert tokenizer.processor.bos_id() == -1
  assert tokenizer.vocab_size <= 60
  ids = tokenizer.encode("zwei fünf", add_eos=True)
  assert ids[-1] == lib.EOS_ID
  assert lib.PAD_ID not in ids
  assert tokenizer.decode(ids[:-1]) == "zwei fünf"


def test_other_ids_are_refused_with_the_options_to_use(text_file, tmp_path):
  prefix = str(tmp_path / "default")
  sentencepiece.SentencePieceTrainer.Train(
    input=text_file,
    model_prefix=prefix,
    vocab_size=40,
    minloglevel=2,
    hard_vocab_limit=False,
  )
  with pytest.raises(InputError, match=r"PAD -1, EOS 2.*--pad_id=0"):
    lib.load_tokenizer(prefix + ".model")


def test_what_is_no_vocabulary_is_refused(tmp_path):
  path = tmp_path / "notes.txt"
  path.write_text("some notes\n", encoding="utf-8")
  with pytest.raises(InputError, match="neither a SentencePiece model nor"):
    lib.load_tokenizer(str(path))
  with pytest.raises(InputError, match="no file"):
    lib.load_tokenizer(str(tmp_path / "missing"))


def test_many_lines_are_packed_as_each(vocab_file, text_file, tmp_path):
  subtokens = str(tmp_path / "v.subtokens")
  Subtokenizer.build([text_file], 50, min_count=5).save(subtokens)
  lines = ["eins zwei", "", "ACHT \u00e9", " neun", "eins zwei"]
  for path in (vocab_file, subtokens):
    for form in (None, TextForm(lowercase=True)):
      tokenizer = lib.load_tokenizer(path, form)
      ids = [tokenizer.encode(line, add_eos=True) for line in lines]
      packed = tokenizer.pack_lines(lines)
      assert packed.packed == list(map(packed_ids.pack, ids))
      assert packed.counts == list(map(len, ids))
      assert tokenizer.pack_lines([]) == ([], [])


def test_text_is_brought_into_its_form_first(vocab_file):
  plain = lib.load_tokenizer(vocab_file)
  formed = lib.load_tokenizer(vocab_file, TextForm("nfkc", lowercase=True))
  assert isinstance(lib.load_tokenizer(vocab_file, TextForm()), type(plain))
  ids = plain.encode("f\u00fcnf eins")
  assert formed.encode("\u3000FU\u0308NF \uff25INS") == ids
  assert formed.vocab_size == plain.vocab_size
  assert formed.decode(ids) == "f\u00fcnf eins"
  assert formed.pieces(ids) == plain.pieces(ids)


def test_no_common_character_is_left_out(tmp_path):
  """Of 80,000 characters, a few question marks are not one in 10,000."""
  text = tmp_path / "text"
  lines = ["the dog runs along the long beach"] * 2500
  lines += ["what? ÄÖ 6%"] * 5 + ["once: ♥"] * 4
  text.write_text("\n".join(lines) + "\n", encoding="utf-8")
  path = str(tmp_path / "v.model")
  lib.train_sentencepiece([str(text)], path, 400)
  tokenizer = lib.load_tokenizer(path)
  for kept in "what? ÄÖ 6%":
    assert lib.UNK_ID not in tokenizer.encode(kept), kept
  assert lib.UNK_ID in tokenizer.encode("♥")


@pytest.mark.parametrize(
  ("lines", "most", "expected"),
  [
    (["ba", "ab"] * 3 + ["z"] * 4, 9, "ab"),
    # More than there may be: SentencePiece chooses.
    (["abc"] * 5, 2, ""),
    (["abc"] * 5, 3, "abc"),
    # As they are: full width, a ligature; but no space of any kind,
    # SentencePiece's own mark, a control character.
    (["\uff21\ufb01\u3000\u2581\x07\xa0"] * 5, 9, "\uff21\ufb01"),
    ([], 9, ""),
  ],
)
def test_common_characters(lines, most, expected):
  counts = lib.count_characters([lines])
  assert lib.common_characters(counts, most) == "".join(sorted(expected))
