import dataclasses
import functools
import threading

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from official_transformer.decoding import batching
from official_transformer.decoding import searcher as searcher_lib
from official_transformer.decoding import translator as lib
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.long_lines import Piece
from official_transformer.decoding.options import BatchLimits
from official_transformer.decoding.output import flags_of
from official_transformer.decoding.phrases import DecodingConstraints
from official_transformer.decoding.requests import (
  LineRequest,
  TranslationRequest,
)
from official_transformer.errors import InputError
from official_transformer.model.building import build_transformer
from official_transformer.model_params import UNK_ID, TransformerParams
from official_transformer.search.options import Sampling, SearchOptions
from official_transformer.text.letter_case import LetterCase
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import FormedTokenizer
from official_transformer.text.vocabulary_files import Tokenizers
from official_transformer.text.words import Span


class Letters:
  """A tokenizer of single letters: a is 2, b is 3, ..."""

  vocab_size = 20

  def encode(self, text, add_eos=False):
    ids = [ord(c) - ord("a") + 2 for c in text if "a" <= c <= "r"]
    return ids + [1] * add_eos

  def decode(self, ids):
    return "".join(chr(i - 2 + ord("a")) for i in ids)

  def pieces(self, ids):
    return list(self.decode(ids))

  def spans(self, text):
    return [Span(n, n + 1) for n, c in enumerate(text) if "a" <= c <= "r"]


LINES = ["abc", "", "f", "hgfedcba", "   ", "abc", "bb", "!?", "cafe", "dad"]


@pytest.fixture(scope="module")
def transformer():
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
  # Towards EOS, so that some translations finish.
  table = transformer.embedding.shared_weights.numpy()
  transformer.decoder_stack.output_normalization.beta.assign(table[1])
  return transformer


@pytest.fixture(scope="module")
def make(transformer):
  """Returns a translator of three lines at a time, with other options too."""

  @functools.cache  # Each traces its search.
  def make(longest_piece=256, **options):
    return lib.Translator(
      transformer,
      Letters(),
      lib.DecodingOptions(limits=BatchLimits(lines=3), **options),
      longest_piece,
    )

  return make


@pytest.fixture(scope="module")
def translator(make):
  return make()


def same(found, expected):
  """Tells whether translations are equal, but for rounding in their scores."""
  assert len(found) == len(expected)
  for one, other in zip(found, expected, strict=True):
    assert one.pieces == other.pieces
    for a, b in zip(one.hypotheses, other.hypotheses, strict=True):
      assert (a.text, a.tokens, a.finished) == (b.text, b.tokens, b.finished)
      assert a.score == pytest.approx(b.score, abs=1e-5)
  return True


def test_one_line_out_for_each_line_in_and_in_order(translator):
  together = translator.translate(LINES)
  assert len(together) == len(LINES)
  for text, line in zip(together, LINES, strict=True):
    assert line.strip() or text == line
  assert together[0] == together[5]


def test_company_changes_nothing(make):
  translator = make(n_best=4)
  together = list(translator.translate_stream(LINES))
  assert any(t.finished for t in together)
  alone = [t for line in LINES for t in translator.translate_stream([line])]
  assert same(alone, together)
  assert same([translator.translate_line(line) for line in LINES], together)


def test_neither_do_workers_nor_static_shapes(make):
  expected = list(make(n_best=2).translate_stream(LINES))
  assert same(list(make(n_best=2, workers=3).translate_stream(LINES)), expected)
  static = make(n_best=2, padded_length=6)  # One line needs the next multiple.
  assert same(list(static.translate_stream(LINES)), expected)


def test_static_shapes_are_static(transformer):
  """What XLA compiles holds no dynamic dimension."""
  shapes = searcher_lib.StaticShapes(6, BatchLimits(tokens=18))
  assert [shapes.shape(n) for n in (1, 6, 7, 19)] == [
    (3, 6), (3, 6), (1, 12), (1, 24),
  ]  # fmt: skip
  searcher = searcher_lib.Searcher(transformer, static_shapes=shapes)
  compiled = searcher.search_function.experimental_get_compiler_ir(
    tf.constant(searcher.prepare_kernel([[3, 4, 1]]))
  )
  # A dimension of at most n is written <=n.
  assert "<=" not in compiled(stage="hlo")
  hlo = compiled(stage="optimized_hlo")
  assert "while(" in hlo
  for dynamic in ("<=", "et-dimension-size", "ToDynamic", "PadToStatic"):
    assert dynamic not in hlo


def test_windows_are_translated_as_they_come(translator, monkeypatch):
  expected = translator.translate(LINES)
  monkeypatch.setattr(batching, "WINDOW_ITEMS", 1)
  read = threading.Semaphore(0)

  def lines():
    for line in LINES:
      yield line
      read.acquire()

  stream = translator.translate_stream(lines())
  # Two windows are computed and a third is read before the first is seen.
  read.release(2)
  found = [next(stream).text]
  read.release(len(LINES))
  assert [*found, *(t.text for t in stream)] == expected


def test_long_lines_come_in_smaller_batches(transformer, monkeypatch):
  translator = lib.Translator(
    transformer, Letters(), lib.DecodingOptions(BatchLimits(tokens=100))
  )
  shapes = []

  def search(sources):
    shapes.append((len(sources), max(map(len, sources))))
    found = searcher_lib.FoundSequence([5], -1.0, True)
    return [[found]] * len(sources)

  monkeypatch.setattr(translator.searchers.plain, "search", search)
  assert translator.translate(["d" * 70] * 2 + ["ab"] * 4) == ["d"] * 6
  assert shapes == [(1, 71)] * 2 + [(4, 3)]


def test_every_line_is_counted_once_however_it_is_decoded(make):
  lines = ["abc. bad, gag. ee", "abc", "", "dad", "!?"]
  counts = []
  stream = make(longest_piece=5).translate_stream(lines, counts.append)
  assert len(list(stream)) == 5
  assert sum(counts) == 5


def test_long_lines_are_cut_and_joined(make, transformer):
  line = "abc. bad, gag. ee"
  cut = make(longest_piece=5).translate_stream([line, "abc"])
  pieces = [*make().translate_stream(["abc.", "bad,", "gag.", "ee"])]
  long, short = cut
  assert long.pieces == 4 and short.pieces == 1
  assert long.text == " ".join(p.text for p in pieces)
  assert long.score == pytest.approx(sum(p.score for p in pieces), abs=1e-5)
  whole = make(longest_piece=5, split_long_lines=False).translate_line(line)
  assert whole.pieces == 1
  assert whole.text != long.text


@pytest.mark.parametrize(
  ("source", "joint", "translations", "text"),
  [
    ("Ja. Nein.", " ", "One. Two.", "One. Two."),
    ("Ja. Nein.", " \t ", "One. Two.", "One. \t Two."),
    ("Ja. Nein.", "  ", "One. Two.", "One.  Two."),
    ("Ja. Nein.", "\r\n", "One. Two.", "One. Two."),
    ("Ja. Nein.", "\u2028", "好。 不。", "好。不。"),
    ("好。 不。", "", "One. Two.", "One. Two."),
    ("他说：“好。” “不。”", "", "“Yes.” “No.”", "“Yes.” “No.”"),
    ("好 不", "", "One Two", "One Two"),  # Cut amid a sentence.
    ("हाँ। नहीं।", "", "One. Two.", "One. Two."),
    ("Ja. Nein.", " ", "好。 不。", "好。不。"),
    ("Ja. Nein.", " ", "“好。” “不。”", "“好。”“不。”"),
    ("Tom. Nein.", " ", "Tom。 不。", "Tom。不。"),
    ("Ja. Nein.", "\t", "好。 不。", "好。\t不。"),
    ("Ja. Nein.", " ", "그래. 아니.", "그래. 아니."),
    ("Ja. Nein.", " ", "ใช่ ไม่", "ใช่ ไม่"),
    ("abc def", "", "abc def", "abcdef"),  # A word that was cut.
    ("Ja. Nein.", "", "3. 二", "3. 二"),
  ],
)
def test_joints_suit_the_scripts(source, joint, translations, text):
  first, second = source.split(" ")
  left, right = translations.split(" ")
  line = lib.PreparedLine(
    [Piece(first, ""), Piece(second, joint)], [[2, 1], [3, 1]]
  )
  parts = [[lib.Hypothesis(t, -1.0, [t], True)] for t in (left, right)]
  assert lib.join_pieces(line, parts).text == text


def test_what_the_tokenizer_drops_is_not_decoded(make):
  dropped, mixed = make(longest_piece=5).translate_stream(
    ["!!! ??", "abcd. !!! ??"]
  )
  assert dropped.pieces == 0 and dropped.text == ""
  assert mixed.text == make().translate_line("abcd.").text
  (cut,) = make(longest_piece=5).translate_stream(["?????. " * 9 + "abcdef"])
  assert cut.pieces == 2 and not cut.text.startswith(" ")


def test_n_best_of_a_cut_line_has_as_many_as_all_its_pieces(make):
  (found,) = make(longest_piece=5, n_best=4).translate_stream(["abc. bad."])
  pieces = list(make(n_best=4).translate_stream(["abc.", "bad."]))
  assert len(found.hypotheses) == max(len(p.hypotheses) for p in pieces)
  for n, hypothesis in enumerate(found.hypotheses):
    parts = [p.hypotheses[min(n, len(p.hypotheses) - 1)] for p in pieces]
    assert hypothesis.text == " ".join(p.text for p in parts)
    assert hypothesis.tokens == parts[0].tokens + parts[1].tokens


def test_hypotheses_come_best_first(make):
  for translation in make(n_best=4).translate_stream(LINES):
    scores = [h.score for h in translation.hypotheses]
    assert scores == sorted(scores, reverse=True)
    if translation.pieces:
      assert len({h.finished for h in translation.hypotheses}) == 1


def test_the_front_of_a_long_line_matters(translator):
  one, other = "ab" * 60, "ba" + "ab" * 59
  a, b = translator.translate_stream([one, other])
  assert a.score != b.score


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"workers": 0}, "workers is 0"),
    ({"n_best": 0}, "n_best is 0"),
    ({"n_best": 5}, "n_best is 5, but a beam of 4"),
    ({"padded_length": -1}, "padded_length is -1"),
  ],
)
def test_impossible_options_are_refused(make, options, message):
  with pytest.raises(InputError, match=message):
    make(**options)


def test_a_lack_of_memory_has_a_remedy(translator, monkeypatch):
  def search(_):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM of [9]\nmore")

  monkeypatch.setattr(translator.searchers.plain, "search_function", search)
  with pytest.raises(InputError, match=r"OOM of \[9\]\).*decode_batch_tokens"):
    translator.translate(["abc"])


HOSTILE = [
  "a\0b", "\0", "\ufeff", "a\u2028b\u0085c", "\u200b", "\u00a0", "\r", "a\rb",
  "\U0001f600\u200d\U0001f525 ab", "\u05d0\u05d1 \u202eabc", "a" * 300, "\t\t",
  "\x1c", "e\u0301" * 9, "<s> </s> <unk> <pad>", "\uffff\ufffd",
]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
  st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))
    | st.text("abc. ", max_size=40),
    max_size=8,
  )
)
@example(HOSTILE)
def test_any_text_gives_one_line_for_each_line(make, lines):
  translator = make(longest_piece=30)
  found = list(translator.translate_stream(lines))
  assert len(found) == len(lines)
  for line, translation in zip(lines, found, strict=True):
    assert "\n" not in translation.text and "\r" not in translation.text
    assert translation.pieces > 0 or not translation.text.strip()
    if not line.strip():
      assert translation.pieces == 0


def test_no_translation_holds_a_line_feed(translator, monkeypatch):
  monkeypatch.setattr(Letters, "decode", lambda self, ids: "a\nb\r\nc")
  assert translator.translate(["abc"]) == ["a b  c"]


def test_nothing_in_nothing_out(translator):
  assert translator.translate([]) == []


def test_one_text_in_several_spellings_is_one_hypothesis(make, monkeypatch):
  """The best of them stays, and what comes after moves up."""
  translator = make(n_best=3)
  found = [
    searcher_lib.FoundSequence(ids, score, True)
    for ids, score in (([5, 6], -1.0), ([5, 19, 6], -2.0), ([6], -3.0))
  ]
  monkeypatch.setattr(
    translator.searchers.plain, "search", lambda sources: [found] * len(sources)
  )
  # 19 is a piece that stands for nothing.
  monkeypatch.setattr(
    Letters,
    "decode",
    lambda self, ids: "".join("def"[i - 5] for i in ids if i != 19),
  )
  hypotheses = next(translator.translate_stream(["ab"])).hypotheses
  assert [(h.text, h.score) for h in hypotheses] == [("de", -1.0), ("e", -3.0)]


@pytest.mark.parametrize("ids", [[5, 2, 6], [5, 6]])
def test_an_unknown_token_in_a_translation_is_told(make, monkeypatch, ids):
  translator = make()
  found = searcher_lib.FoundSequence(ids, -1.0, True)
  monkeypatch.setattr(
    translator.searchers.plain, "search", lambda rows: [[found]]
  )
  monkeypatch.setattr(lib, "has_unknown", lambda tokenizer, ids: UNK_ID in ids)
  (translation,) = translator.translate_stream(["ab"])
  assert ("unknown" in flags_of(translation)) == (UNK_ID in ids)
  # The official vocabularies spell what they do not know.
  monkeypatch.undo()
  monkeypatch.setattr(
    translator.searchers.plain, "search", lambda rows: [[found]]
  )
  (translation,) = translator.translate_stream(["ab"])
  assert flags_of(translation) == []


@pytest.mark.parametrize("phrases", [(), ("z",)])
def test_what_is_suppressed_is_never_written(transformer, phrases):
  """By the model's own search, and by a guided one."""
  search = SearchOptions(forbidden=phrases)
  found = {}
  for suppress in (False, True):
    params = dataclasses.replace(transformer.params, suppress_unk=suppress)
    model = build_transformer(params)
    model.set_weights(transformer.get_weights())
    table = model.embedding.shared_weights.numpy()
    # Towards the token that is, in a SentencePiece model, the unknown one.
    norm = model.decoder_stack.output_normalization
    norm.gamma.assign(tf.zeros_like(norm.gamma))
    norm.beta.assign(table[UNK_ID])
    translator = lib.Translator(
      model, Letters(), lib.DecodingOptions(search=search)
    )
    found[suppress] = translator.searchers.search(
      [PieceToTranslate("", [5, 6, 1], search=search)]
    )[0][0].ids
  assert UNK_ID in found[False]
  assert UNK_ID not in found[True]


def test_each_sentence_is_translated_by_itself(make):
  """What stands between them stays; one with a prefix is never cut."""
  line = " abc.\tBad.  Cab! "
  found = make(n_best=2).translate_line(line)
  parts = [
    make(n_best=2).translate_line(s).hypotheses
    for s in ("abc.", "Bad.", "Cab!")
  ]
  assert found.pieces == 3
  assert found.hypotheses[0].text == " {}\t{}  {} ".format(
    *(p[0].text for p in parts)
  )
  assert "split" in flags_of(found)
  together = list(make(n_best=2).translate_stream([line, "abc"]))
  assert same([found], together[:1])
  long = make(longest_piece=4).translate_line(line + "abcdef")
  assert long.pieces == 5
  prefixed = LineRequest(line, DecodingConstraints(prefix="a"))
  assert make().prepare(prefixed).to_translate()[1:] == []
  whole = make(split_sentences=False).translate_line(line)
  assert whole.pieces == 1
  assert flags_of(whole) == flags_of(make().translate_line("abc"))


@pytest.mark.parametrize(
  ("trained", "asked", "pieces"),
  [
    ([True], None, 2),
    ([True], False, 1),
    ([False], None, 1),
    ([False], True, 2),
    ([True, False], None, 1),
  ],
)
def test_lines_are_cut_as_models_were_trained(
  transformer, caplog, trained, asked, pieces
):
  caplog.set_level("INFO", logger="absl")
  tokenizers = Tokenizers.of(Letters())
  models = [
    LoadedModel(transformer, tokenizers, 9, None, splits) for splits in trained
  ]
  options = lib.DecodingOptions(split_sentences=asked)
  translator = lib.Translator.of(models, options)
  assert len(translator.prepare("abc. Cab.").pieces) == pieces
  said = asked is None and pieces == 1
  assert ("lines are translated whole" in caplog.text) == said


@pytest.mark.parametrize(
  ("before", "behind"),
  [("  ", ""), ("\t", " "), ("\u3000", "\t\n"), ("", "\r\n")],
)
def test_blanks_around_a_line_come_back(make, before, behind):
  kept = behind.rstrip("\r\n")
  (plain,) = make(n_best=2).translate_stream(["abc"])
  (found,) = make(n_best=2).translate_stream([f"{before}abc{behind}"])
  assert [h.text for h in found.hypotheses] == [
    before + h.text + kept for h in plain.hypotheses
  ]
  whole = make(split_sentences=False).translate_line(f"{before}abc{behind}")
  assert whole.text == make().translate_line("abc").text
  (blank,) = make().translate_stream([before + behind])
  assert blank.text == before + kept and blank.pieces == 0


def test_capitals_are_translated_as_a_sentence(make):
  (plain,) = make(n_best=2).translate_stream(["Abc cab bad."])
  (found,) = make(n_best=2).translate_stream(["ABC CAB BAD."])
  assert [h.tokens for h in found.hypotheses] == [
    h.tokens for h in plain.hypotheses
  ]
  assert [h.text for h in found.hypotheses] == [
    h.text.upper() for h in plain.hypotheses
  ]
  assert flags_of(found) == ["recased", *flags_of(plain)]
  assert same([found], [make(n_best=2).translate_line("ABC CAB BAD.")])


@pytest.mark.parametrize(
  ("line", "text", "sources"),
  [
    ("ABC CAB BAD.", "CAFE", ["ABC", "CAB", "BAD."]),
    ("Abc Bad Cab Dab Fad", "Cafe", ["Abc", "Bad", "Cab", "Dab", "Fad"]),
    ("Abc bad cab dab fad", "cafe", ["Abc", "bad", "cab", "dab", "fad"]),
  ],
)
def test_translations_get_the_case_of_their_source(make, line, text, sources):
  translator = make()
  batch = translator.prepare(line).to_translate()
  found = FoundSequence(Letters().encode("cafe"), -1.0, True)
  worse = FoundSequence(Letters().encode("cafe"), -2.0, True)
  (hypotheses,) = translator.hypotheses(batch, [[found, worse]], aligned=True)
  best = hypotheses[0]
  assert (best.text, best.score) == (text, -1.0)
  assert best.alignment.source_words == sources
  assert best.alignment.target_words == [text]
  # Two texts that differ in case only are one in capitals; samples all count.
  assert len(hypotheses) == (1 if batch[0].case else 2)
  sampled = SearchOptions(sampling=Sampling(seed=1))
  batch = [piece._replace(search=sampled) for piece in batch]
  (samples,) = translator.hypotheses(batch, [[found, worse]], aligned=False)
  assert [sample.text for sample in samples] == [text, text]


def test_each_sentence_may_have_its_case(make):
  found = make().translate_line("Abc. CAB BAD FAD. Bad.")
  parts = [make().translate_line(s).text for s in ("Abc.", "Bad.")]
  inner = make().translate_line("Cab bad fad.").text.upper()
  assert found.text == " ".join([parts[0], inner, parts[1]])
  # A line in capitals is, with all its sentences.
  pieces = make().prepare("BAD. ABC CAB FADE.").pieces
  assert [piece.text for piece in pieces] == ["Bad.", "Abc cab fade."]
  assert all(piece.case for piece in pieces)
  # The cells of a table are not one line, and a title is one sentence.
  table = "abc\tABC CAB FADE\tabc"
  cases = [piece.case for piece in make().prepare(table).pieces]
  assert cases == [None, LetterCase.CAPITALS, None]
  title = make().prepare("A Bad. Cab Fed. Dab Hid. Gag.")
  assert len(title.pieces) == 4 and not any(p.case for p in title.pieces)
  whole = make(split_sentences=False).prepare("ABC CAB. BAD FADE.")
  assert [piece.text for piece in whole.pieces] == ["Abc cab. Bad fade."]
  long = make(longest_piece=7).prepare("ABC CAB BAD FADE.")
  assert len(long.pieces) > 1 and all(piece.case for piece in long.pieces)


def test_letter_case_is_kept_if_asked(make, transformer):
  # The tokenizer has no capitals: nothing is left to translate.
  assert make(recase=False).prepare("ABC CAB BAD.").pieces == []
  for constraints in (
    DecodingConstraints(prefix="a"),
    DecodingConstraints(forbidden=("a",)),
  ):
    asked = LineRequest("ABC CAB BAD.", constraints)
    assert make().prepare(asked).pieces == []
  lowercase = FormedTokenizer(Letters(), TextForm(lowercase=True))
  translator = lib.Translator(transformer, lowercase)
  (piece,) = translator.prepare("ABC CAB BAD.").to_translate()
  assert piece.case is None


def test_one_string_is_not_a_list_of_lines(make):
  with pytest.raises(TypeError, match="pass \\[line\\]"):
    make().translate("abc")


def test_half_of_a_character_is_refused(make):
  with pytest.raises(InputError, match="character 3 of .* half of a surrogate"):
    make().translate(["abc", "ab\ud83d"])


@pytest.mark.parametrize(
  ("constraints", "search"),
  [
    (DecodingConstraints(prefix="a"), SearchOptions()),
    (DecodingConstraints(required=("a",)), SearchOptions()),
    (DecodingConstraints(), SearchOptions(min_length=2)),
  ],
  ids=["prefix", "phrase", "min_length"],
)
def test_a_request_has_no_endless_line_that_is_not_cut(
  make, constraints, search
):
  def request(letters):
    return TranslationRequest(("a" * letters,), (constraints,), search)

  translator = make(longest_piece=5)
  translator.check(request(255))  # And EOS.
  with pytest.raises(InputError, match="may have 256 tokens"):
    translator.check(request(256))
  plain = TranslationRequest(("a" * 1000,))
  translator.check(plain)


def test_a_prefix_may_be_longer_than_the_usual_line(make):
  prefix = DecodingConstraints(prefix="abc " * 9)
  request = TranslationRequest(("abc",), (prefix,))
  make(longest_piece=5).check(request)
  long = dataclasses.replace(prefix, prefix="abc " * 99)
  with pytest.raises(InputError, match="more than 256 tokens"):
    make(longest_piece=5).check(TranslationRequest(("abc",), (long,)))
