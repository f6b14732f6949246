import dataclasses
import html
import pathlib
import re
import sys

import numpy as np
import pytest

from official_transformer.decoding.alignment import (
  Alignment,
  Link,
  Separator,
  TranslatedPiece,
  Words,
  join_alignments,
  link_words,
  piece_weights,
  word_weights,
)
from official_transformer.decoding.engines import Engine
from official_transformer.decoding.options import AlignmentRule, DecodingOptions
from official_transformer.decoding.output import fields_of, text_lines
from official_transformer.decoding.phrases import DecodingConstraints
from official_transformer.decoding.requests import LineRequest
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.text.words import words_of

SENTENCES = [
  "A dog runs.",
  "The woman must help the small child today.",
  "",
  "He says that the men buy a car.",
]


def test_a_rule_for_what_a_model_does_not_have():
  AlignmentRule((1,)).check(2)
  with pytest.raises(InputError, match="no layer 2: the model has 2"):
    AlignmentRule((2,)).check(2)


def test_both_pieces_must_mean_each_other_by_hand():
  # Two layers of one head; the last row and column are of EOS.
  one = [[0.6, 0.3, 0.1], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]
  two = [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
  cross = np.array([[one], [two]])
  # Each weight, times its share of its column of the first two rows, when rows
  # and columns have been brought to a sum of 1 twice more.
  shares = np.array([[0.5, 3 / 7], [0.5, 4 / 7]])
  for _ in range(2):
    shares /= shares.sum(1, keepdims=True)
    shares /= shares.sum(0, keepdims=True)
  first = np.array([[0.6, 0.3], [0.6, 0.4]]) * shares
  np.testing.assert_allclose(piece_weights(AlignmentRule((0,)), cross), first)
  both = np.add(first, [[0, 0.5], [1, 0]])
  np.testing.assert_allclose(piece_weights(AlignmentRule(), cross), both)


def test_a_source_word_that_is_wanted_by_another_is_not_taken():
  """Both attend to the second word most, the first one less so."""
  assert link_words(np.array([[0.4, 0.6], [0.1, 0.9]])) == [(0, 0), (1, 1)]


def test_pieces_are_joined_to_words_by_hand():
  # "ab c" of three pieces, "x yz" of three.
  source = Words("ab c", words_of("ab c"), [[0], [0], [1]])
  target = Words("x yz", words_of("x yz"), [[0], [1], [1]])
  weights = np.array([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
  words = word_weights(weights, source, target)
  np.testing.assert_allclose(words, [[0.6, 0.4], [0.5, 0.5]])
  assert link_words(np.array([[0.6, 0.4], [0.2, 0.8]])) == [(0, 0), (1, 1)]
  # A piece of two words belongs to both.
  both = Words("xy", words_of("xy"), [[0]])
  found = word_weights(np.array([[0.2, 0.8, 0.0]]), source, both)
  np.testing.assert_allclose(found, [[1.0, 0.0]])


def test_words_without_weight_have_no_link():
  assert link_words(np.array([[0.0, 0.0], [0.1, 0.0]])) == [(0, 1)]
  assert link_words(np.zeros([0, 2])) == []
  assert link_words(np.zeros([2, 0])) == []


def test_parts_follow_each_other():
  one = Alignment(["a", "b"], ["x"], [Link(1, 0)], [[0.2, 0.8]])
  two = Alignment(["c"], ["y", "z"], [Link(0, 0), Link(0, 1)], [[0.5], [0.1]])
  joined = join_alignments([one, two], [Separator(" ", " ")])
  assert joined.source_words == ["a", "b", "c"]
  assert joined.target_words == ["x", "y", "z"]
  assert str(joined) == "1-0 2-1 2-2"
  assert joined.weights == [[0.2, 0.8, 0], [0, 0, 0.5], [0, 0, 0.1]]
  assert join_alignments([one], []) == one


@pytest.mark.parametrize(
  ("seam", "sources", "targets", "links"),
  [
    # A word that was cut is one word; what both parts link, is linked once.
    (Separator("", " "), ["a", "bc", "d"], ["x", "y"], "0-0 1-0 1-1 2-1"),
    (Separator(" ", ""), ["a", "b", "c", "d"], ["xy"], "0-0 1-0 2-0 3-0"),
    (Separator("", ""), ["a", "bc", "d"], ["xy"], "0-0 1-0 2-0"),
  ],
)
def test_a_word_that_was_cut_is_one_again(seam, sources, targets, links):
  one = Alignment(["a", "b"], ["x"], [Link(0, 0), Link(1, 0)])
  two = Alignment(["c", "d"], ["y"], [Link(0, 0), Link(1, 0)])
  joined = join_alignments([one, two], [seam])
  assert joined.source_words == sources
  assert joined.target_words == targets
  assert str(joined) == links


def test_in_scripts_without_blanks_no_cut_is_within_a_word():
  one = Alignment(["学"], ["x"], [Link(0, 0)])
  two = Alignment(["习"], ["y"], [Link(0, 0)])
  assert join_alignments([one, two], [Separator("", " ")]).source_words == [
    "学",
    "习",
  ]


def test_a_cut_within_a_word_leaves_the_lines_words_as_they_are(aligning):
  line = "a" * 3000 + " The man buys a car."
  translation = aligning.translate_line(line)
  assert translation.pieces > 1
  alignment = translation.hypotheses[0].alignment
  assert alignment.source_words == line.split()
  assert alignment.target_words == translation.text.split()


@pytest.fixture(scope="module")
def aligning(trained_model):
  options = DecodingOptions(alignment=AlignmentRule())
  return Translator.load(trained_model, options=options)


def test_alignments_come_with_translations(aligning, trained_model):
  plain = Translator.load(trained_model).translate(SENTENCES)
  found = list(aligning.translate_stream(SENTENCES))
  assert [t.text for t in found] == plain
  for source, translation in zip(SENTENCES, found, strict=True):
    alignment = translation.hypotheses[0].alignment
    assert alignment.source_words == source.split()
    assert alignment.target_words == translation.text.split()
    linked = [link.target for link in alignment.links]
    assert sorted(linked) == list(range(len(alignment.target_words)))


def test_company_changes_no_alignment(aligning):
  together = list(aligning.translate_stream(SENTENCES))
  for sentence, translation in zip(SENTENCES, together, strict=True):
    alone = aligning.translate_line(sentence)
    one, other = (t.hypotheses[0].alignment for t in (alone, translation))
    assert dataclasses.replace(one, weights=[]) == dataclasses.replace(
      other, weights=[]
    )
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-5)


def test_a_line_in_pieces_is_aligned_as_a_whole(aligning):
  line = " ".join([SENTENCES[1]] * 40)
  translation = aligning.translate_line(line)
  assert translation.pieces > 1
  alignment = translation.hypotheses[0].alignment
  assert alignment.source_words == line.split()
  assert alignment.target_words == translation.text.split()
  assert max(link.source for link in alignment.links) > 8 * 35


def test_what_is_written_of_them(aligning):
  first, _, blank, _ = aligning.translate_stream(SENTENCES)
  (line,) = text_lines(first, 1)
  text, links = line.split(" ||| ")
  assert text == first.text
  assert all(part.count("-") == 1 for part in links.split())
  assert list(text_lines(blank, 1)) == [" ||| "]
  fields = fields_of(first, 1)
  assert fields["alignment"] == links
  assert fields["source_words"] == ["A", "dog", "runs."]
  assert "alignment" in fields_of(blank, 1)


def test_they_need_tensorflow(trained_model):
  with pytest.raises(InputError, match="TensorFlow's attention"):
    DecodingOptions(alignment=AlignmentRule((0,)), engine=Engine("ctranslate2"))
  pytest.importorskip("ctranslate2")
  translator = Translator.load(trained_model, engine="ctranslate2")
  with pytest.raises(InputError, match="only TensorFlow has attention"):
    translator.attention("A dog runs.")


def test_attention_of_given_and_of_own_translations(aligning):
  source = SENTENCES[1]
  own = aligning.attention(source)
  given = aligning.attention(source, aligning.translate([source])[0])
  heads = aligning.params.num_heads
  size, length = len(own.source), len(own.target)
  assert own.source[-1] == own.target[-1] == "</s>"
  assert own.inputs == ["<s>", *own.target[:-1]]
  layers = aligning.params.num_hidden_layers
  assert own.encoder.shape == (layers, heads, size, size)
  assert own.decoder.shape == (layers, heads, length, length)
  assert own.cross.shape == (layers, heads, length, size)
  assert own.target == given.target
  np.testing.assert_allclose(own.cross, given.cross, atol=1e-6)
  other = aligning.attention(source, "Ein Hund.")
  assert "".join(other.target).startswith("Ein_")


def test_an_alignment_is_of_the_words_that_are_given(aligning):
  tokenizers = aligning.tokenizers
  target = "Ein  Hund läuft."
  ids = tokenizers.target.encode(target)
  (found,) = aligning.align(
    [
      TranslatedPiece(
        "A dog runs.",
        tokenizers.source.encode("A dog runs.", add_eos=True),
        target,
        ids,
      )
    ]
  )
  assert found.target_words == ["Ein", "Hund", "läuft."]


@pytest.mark.parametrize("seed", [5, 6])
def test_the_rule_finds_the_demo_grammars_true_words(
  seed, trained_model, monkeypatch
):
  """50 sentences, by the script that measures all layers."""
  root = pathlib.Path(__file__).parents[3]
  monkeypatch.syspath_prepend(str(root / "benchmarks"))
  import alignments

  model = alignments.load(trained_model)
  pairs = alignments.draw_aligned(seed, count=50)
  chosen = alignments.scores_of(model, pairs, AlignmentRule())
  assert sum(len(pair.sure) for pair in pairs) > 300
  assert chosen.precision > 0.85
  assert chosen.recall > 0.85
  # Better than its layers by themselves are in the mean, as others read them:
  # which layer is the best, and how good, differs between trainings.
  params = model.transformer.params
  heads = tuple(range(params.num_heads))
  errors = []
  for layer in range(params.num_hidden_layers):
    plain = alignments.Reading(f"layer {layer}", (layer,), heads)
    errors.append(alignments.scores_of(model, pairs, plain).error)
  assert chosen.error < sum(errors) / len(errors)
  for name in ("alignments", "demo_alignments"):
    del sys.modules[name]


def test_html_comes_back_in_every_way_of_translating(aligning, trained_model):
  """Its text is translated as plain text is."""
  options = DecodingOptions(is_html=True, n_best=2)
  translator = Translator.load(trained_model, options=options)
  line = "<p>The <b>old</b> man sleeps. The &#100;og runs.</p>\n<br>The cat "
  plain = aligning.translate(["The old man sleeps. The dog runs.", "The cat "])
  found, blank = translator.translate_stream([line, "<p> &nbsp;</p>"])
  stripped = re.sub("<[^>]*>", "", found.text)
  assert html.unescape(stripped) == "\n".join(plain)
  assert found.text.startswith("<p>") and "</p>\n<br>" in found.text
  assert found.text.count("<b>") == found.text.count("</b>") > 0
  assert found.pieces == 3 and len(found.hypotheses) == 2
  assert blank.text == "<p> &nbsp;</p>" and blank.pieces == 0
  assert translator.translate_line(line).text == found.text
  asked, given = aligning.translate_stream(
    [LineRequest(line, is_html=True), LineRequest("The cat ")]
  )
  assert asked.text == found.text and asked.hypotheses[0].alignment is None
  assert given.text == plain[1]
  # What is forbidden is so in every part.
  words = plain[0].split()
  constraints = DecodingConstraints(forbidden=(words[0], words[-1]))
  without = aligning.translate_line(
    LineRequest(line, constraints, is_html=True)
  )
  assert not {words[0], words[-1]} & set(
    re.sub("<[^>]*>", " ", without.text).split()
  )
