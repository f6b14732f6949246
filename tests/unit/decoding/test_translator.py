import pytest
import tensorflow as tf

from official_transformer.decoding import batching
from official_transformer.decoding import translator as lib
from official_transformer.model.beam_search import SearchResult
from official_transformer.model.transformer import build_transformer


class Letters:
  """A tokenizer of single letters: a is 2, b is 3, ..."""

  vocab_size = 20

  def encode(self, text, add_eos=False):
    ids = [ord(c) - ord("a") + 2 for c in text if c.isalpha()]
    return ids + [1] * add_eos

  def decode(self, ids):
    return "".join(chr(i - 2 + ord("a")) for i in ids)


LINES = ["abc", "", "f", "hgfedcba", "   ", "abc", "bb", "!?", "cafe", "dad"]


@pytest.fixture(scope="module")
def translator():
  from official_transformer.model_params import TransformerParams

  tf.keras.utils.set_random_seed(5)
  transformer = build_transformer(
    TransformerParams(
      vocab_size=20,
      hidden_size=16,
      num_hidden_layers=1,
      num_heads=2,
      filter_size=32,
      extra_decode_length=3,
    )
  )
  return lib.Translator(transformer, Letters(), decode_batch_size=3)


def test_one_line_out_for_each_line_in_and_in_order(translator):
  together = translator.translate(LINES)
  assert len(together) == len(LINES)
  assert [t for t, s in zip(together, LINES, strict=True) if not s.strip()] == [
    "",
    "",
  ]
  assert together[0] == together[5]


def test_company_changes_nothing(translator):
  together = list(translator.translate_stream(LINES))
  for line, expected in zip(LINES, together, strict=True):
    (alone,) = translator.translate_stream([line])
    assert alone.text == expected.text
    assert alone.finished == expected.finished
    assert alone.score == pytest.approx(expected.score, abs=1e-5)


def test_windows_are_translated_as_they_come(translator, monkeypatch):
  monkeypatch.setattr(batching, "BATCHES_PER_WINDOW", 1)
  taken = []

  def lines():
    for line in LINES:
      taken.append(line)
      yield line

  stream = translator.translate_stream(lines())
  first = next(stream)
  assert len(taken) == 3
  assert [first.text, *(t.text for t in stream)] == translator.translate(LINES)


def test_long_lines_reach_the_model_whole_in_smaller_batches(
  translator, monkeypatch
):
  shapes = []

  def search(batch):
    shapes.append(batch.shape)
    assert (batch[:, -1] != 0).any()
    empty = tf.zeros([len(batch), 4, 1], tf.int32)
    return SearchResult(empty, tf.zeros(empty.shape[:2]), empty[..., 0] > 0)

  monkeypatch.setattr(translator, "_search", search)
  lines = ["d" * 700] * 3 + ["ab"] * 4
  assert translator.translate(lines) == [""] * 7
  # Three lines of 700 tokens and EOS are over the budget of 3 * 256.
  assert shapes == [(1, 701)] * 3 + [(3, 3), (1, 3)]


def test_the_front_of_a_long_line_matters(translator):
  one, other = "ab" * 60, "ba" + "ab" * 59
  a, b = translator.translate_stream([one, other])
  assert a.score != b.score


def test_an_impossible_batch_size_is_refused(translator):
  with pytest.raises(ValueError, match="decode_batch_size is 0"):
    lib.Translator(translator.transformer, Letters(), decode_batch_size=0)


def test_no_translation_holds_a_line_feed(translator, monkeypatch):
  monkeypatch.setattr(Letters, "decode", lambda self, ids: "a\nb\r\nc")
  assert translator.translate(["abc"]) == ["a b  c"]


def test_nothing_in_nothing_out(translator):
  assert translator.translate([]) == []
