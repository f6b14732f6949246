"""Samples, phrases, prefixes, penalties and several models, on small models."""

import dataclasses
import functools
import itertools
import math
import re
from typing import NamedTuple

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from official_transformer.decoding.guided_searcher import GuidedSearcher
from official_transformer.decoding.mbr import chrf_matrix, utilities
from official_transformer.decoding.phrases import (
  DecodingConstraints,
  as_written,
  holds,
  overgrown,
  places_of,
  prefix_of,
  tokens_of,
)
from official_transformer.decoding.requests import LineRequest
from official_transformer.decoding.searcher import Searcher
from official_transformer.decoding.translator import DecodingOptions, Translator
from official_transformer.errors import InputError
from official_transformer.model.building import build_transformer
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.search.options import (
  Sampling,
  SamplingRule,
  SearchOptions,
)
from official_transformer.search.required_phrases import turns
from official_transformer.search.sampling import sample_tokens
from official_transformer.text import tokenizer as tokenizer_lib
from official_transformer.text.vocabulary_files import Tokenizers
from official_transformer.text.words import Span

PARAMS = TransformerParams(
  vocab_size=24,
  hidden_size=16,
  num_heads=2,
  filter_size=32,
  num_hidden_layers=1,
  extra_decode_length=6,
  beam_size=3,
  # What holds PAD is told without it.
  suppress_pad=True,
)


class Words:
  """A tokenizer whose tokens are `w2` to `w23`."""

  vocab_size = 24

  def encode(self, text, add_eos=False):
    return [int(word[1:]) for word in text.split()] + [EOS_ID] * add_eos

  def decode(self, ids):
    return " ".join(f"w{i}" for i in ids)

  def pieces(self, ids):
    return [f"w{i}" for i in ids]


class AlignedWords(Words):
  """The same, whose tokens know which characters they stand for."""

  def spans(self, text):
    return [Span(*m.span()) for m in re.finditer(r"\S+", text)]


def model(seed=0, **changes):
  tf.keras.utils.set_random_seed(seed)
  made = build_transformer(dataclasses.replace(PARAMS, **changes))
  table = made.embedding.shared_weights.numpy()
  made.embedding.shared_weights.assign(table * 3.0)
  # Towards EOS: it comes neither at once nor never.
  made.decoder_stack.output_normalization.beta.assign(table[1] * 2.0)
  return made


@pytest.fixture(scope="module")
def transformer():
  yield model()
  guided_searcher.cache_clear()


def led(models, **options):
  models = models if isinstance(models, list) else [models]
  return Guided(guided_searcher(tuple(models)), SearchOptions(**options))


@functools.lru_cache(maxsize=20)
def guided_searcher(models):
  """Tracing a search takes seconds, and is the same in many tests."""
  return GuidedSearcher(list(models), Tokenizers.of(Words()))


class Guided(NamedTuple):
  """A searcher with the options of one test."""

  searcher: GuidedSearcher
  options: SearchOptions

  def search(self, sources, constraints=None):
    return self.searcher.search(sources, constraints, self.options)


rng = np.random.default_rng(4)
SOURCES = [
  [*rng.integers(2, 24, size=n).tolist(), EOS_ID] for n in (3, 8, 1, 5, 6, 2)
]


def ids_of(found):
  return [[s.ids for s in sentence] for sentence in found]


def logits_of(transformer, source, target):
  """Returns logits, PAD's as low as they come."""
  logits = transformer([np.array([source]), np.array([target])])[0].numpy()
  logits[:, 0] = -1e9
  return logits.astype(np.float64)


def log_probabilities(transformer, source, target):
  logits = logits_of(transformer, source, target)
  logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  return logs[np.arange(len(target)), target]


def test_led_by_nothing_it_is_the_search_itself(transformer):
  plain = Searcher(transformer, 24).search(SOURCES)
  found = led(transformer).search(SOURCES)
  assert ids_of(found) == ids_of(plain)
  for one, other in zip(
    itertools.chain(*found), itertools.chain(*plain), strict=True
  ):
    assert one.score == pytest.approx(other.score, abs=1e-5)


def test_three_times_one_model_is_that_model(transformer):
  plain = Searcher(transformer, 24).search(SOURCES)
  assert ids_of(led([transformer] * 3).search(SOURCES)) == ids_of(plain)


def test_an_ensembles_score_is_of_the_mean_of_probabilities(transformer):
  models = [transformer, model(1), model(2, hidden_size=24, num_heads=3)]
  for source, found in zip(SOURCES, led(models).search(SOURCES), strict=True):
    best = found[0]
    target = [*best.ids, EOS_ID] if best.finished else best.ids
    each = np.stack([log_probabilities(m, source, target) for m in models])
    total = np.log(np.exp(each).mean(0)).sum()
    norm = ((5 + len(target)) / 6) ** 0.6 if best.finished else 1.0
    assert best.score == pytest.approx(total / norm, abs=1e-4)


def test_rows_beyond_the_vocabulary_keep_their_share_in_an_ensemble():
  larger = model(vocab_size=30)
  alone, paired = (led([larger] * n).search(SOURCES) for n in (1, 2))
  assert ids_of(paired) == ids_of(alone)
  for one, other in zip(
    itertools.chain(*alone), itertools.chain(*paired), strict=True
  ):
    assert one.score == pytest.approx(other.score, abs=1e-5)


def test_scores_stay_the_models_own(transformer):
  """Whatever is forbidden, a score is what the model gives to the ids."""
  constraints = [
    DecodingConstraints(forbidden=("w5", "w7 w8"), prefix="w9 w4")
  ] * len(SOURCES)
  found = led(transformer, no_repeat_ngram_size=2, min_length=4).search(
    SOURCES, constraints
  )
  for source, sentence in zip(SOURCES, found, strict=True):
    for sequence in sentence:
      target = sequence.ids + [EOS_ID] * sequence.finished
      total = log_probabilities(transformer, source, target).sum()
      norm = ((5 + len(target)) / 6) ** 0.6 if sequence.finished else 1.0
      assert sequence.score == pytest.approx(total / norm, abs=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(transformer, size):
  repeated = 0
  plain = led(transformer).search(SOURCES)
  found = led(transformer, no_repeat_ngram_size=size).search(SOURCES)
  for sentences, expected in ((plain, None), (found, 0)):
    for sequence in itertools.chain(*sentences):
      ids = sequence.ids
      grams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
      twice = len(grams) - len(set(grams))
      if expected is None:
        repeated += twice
      else:
        assert twice == expected
  assert repeated > 0


def test_the_repetition_penalty_is_of_logits(transformer):
  penalty = 1.7
  found = led(transformer, repetition_penalty=penalty).search(SOURCES)
  for source, sentence in zip(SOURCES, found, strict=True):
    best = sentence[0]
    target = best.ids + [EOS_ID] * best.finished
    logits = logits_of(transformer, source, target)
    total = 0.0
    for t, token in enumerate(target):
      row = logits[t]
      for seen in set(target[:t]):
        row[seen] = (
          row[seen] * penalty if row[seen] < 0 else row[seen] / penalty
        )
      total += row[token] - np.log(np.exp(row).sum())
    norm = ((5 + len(target)) / 6) ** 0.6 if best.finished else 1.0
    assert best.score == pytest.approx(total / norm, abs=1e-4)


def test_nothing_is_shorter_than_it_may_be(transformer):
  found = led(transformer, min_length=9).search(SOURCES)
  assert all(len(s.ids) >= 9 for s in itertools.chain(*found))


def test_prefixes_begin_translations(transformer):
  prefixes = ["w3 w4", "", "w23", "w2 w2 w2 w2 w2 w2 w2 w2 w2 w2", "w9", ""]
  found = led(transformer).search(
    SOURCES, [DecodingConstraints(prefix=prefix) for prefix in prefixes]
  )
  free = led(transformer).search(SOURCES)
  for prefix, sentence, own in zip(prefixes, found, free, strict=True):
    wanted = Words().encode(prefix)
    for sequence in sentence:
      assert sequence.ids[: len(wanted)] == wanted
    if not prefix:  # Nothing depends on its company.
      assert [s.ids for s in sentence] == [s.ids for s in own]


def test_phrases_are_there_or_not(transformer):
  generator = np.random.default_rng(1)
  for _ in range(12):
    constraints = []
    for _ in SOURCES:
      words = [f"w{i}" for i in generator.permutation(np.arange(2, 24))[:5]]
      constraints.append(
        DecodingConstraints(
          required=(" ".join(words[:2]), words[2])[: generator.integers(0, 3)],
          forbidden=tuple(words[3 : 3 + generator.integers(0, 3)]),
        )
      )
    found = led(transformer).search(SOURCES, constraints)
    for wish, sentence in zip(constraints, found, strict=True):
      for sequence in sentence:
        text = Words().decode(sequence.ids)
        assert not any(holds(text, phrase) for phrase in wish.forbidden)
        if sequence.finished:
          assert all(holds(text, phrase) for phrase in wish.required)


def test_company_changes_nothing(transformer):
  constraints = [
    DecodingConstraints(required=("w4",)),
    DecodingConstraints(forbidden=("w5", "w6 w7")),
    DecodingConstraints(prefix="w8"),
    DecodingConstraints(),
    DecodingConstraints(required=("w9 w10", "w11")),
    DecodingConstraints(required=("w9 w10 w11 w12",), forbidden=("w2",)),
  ]
  searcher = led(transformer, no_repeat_ngram_size=3)
  together = searcher.search(SOURCES, constraints)
  for source, wish, found in zip(SOURCES, constraints, together, strict=True):
    (alone,) = searcher.search([source], [wish])
    assert [s.ids for s in found] == [s.ids for s in alone]


def test_the_coverage_penalty_is_its_formula(transformer):
  from official_transformer.model.attention_weights import attention_weights

  strength = 0.4
  plain = led(transformer).search(SOURCES)
  found = led(transformer, coverage_penalty=strength).search(SOURCES)
  compared = 0
  for source, sentence, free in zip(SOURCES, found, plain, strict=True):
    scores = {tuple(s.ids): s.score for s in free if s.finished}
    for sequence in sentence:
      if not sequence.finished or tuple(sequence.ids) not in scores:
        continue
      target = [*sequence.ids, EOS_ID]
      weights = (
        attention_weights(transformer, np.array([source]), np.array([target]))
        .cross[0, -1]
        .numpy()
      )  # [N, T, S]
      covered = weights.mean(0).sum(0)
      lost = strength * np.log(np.minimum(covered, 1)).sum()
      expected = scores[tuple(sequence.ids)] + lost
      assert sequence.score == pytest.approx(expected, abs=1e-4)
      compared += 1
  assert compared > 3


def distribution(transformer, source):
  """Returns the model's probabilities of the first token."""
  exps = np.exp(logits_of(transformer, source, [5])[0])
  return exps / exps.sum()


@pytest.mark.parametrize(
  "rule",
  [
    SamplingRule(),
    SamplingRule(temperature=0.5),
    SamplingRule(top_k=5),
    SamplingRule(top_p=0.6),
    SamplingRule(temperature=2.0, top_k=12, top_p=0.8),
  ],
)
def test_draws_fit_the_distribution(transformer, rule):
  """20,000 first tokens; chi-squared at a share of errors of one in 1,000."""
  sampler = guided_searcher((model(0, beam_size=200),))
  counts = np.zeros(24)
  for seed in range(100):
    drawing = SearchOptions(sampling=Sampling(rule, seed))
    (found,) = sampler.search([SOURCES[1]], options=drawing)
    for sequence in found:
      counts[(sequence.ids or [EOS_ID])[0]] += 1
  assert counts.sum() == 20_000
  expected = distribution(transformer, SOURCES[1]) ** (1 / rule.temperature)
  expected /= expected.sum()
  order = np.argsort(-expected)
  allowed = order[: rule.top_k or 24]
  shares = expected[allowed] / expected[allowed].sum()
  before = np.cumsum(shares) - shares
  allowed = allowed[before < rule.top_p]
  # What is cut off is never drawn, and what is not fits.
  assert counts[np.setdiff1d(np.arange(24), allowed)].sum() == 0
  shares = expected[allowed] / expected[allowed].sum()
  keep = shares * 20_000 >= 5
  statistic = ((counts[allowed] - 20_000 * shares) ** 2 / (20_000 * shares))[
    keep
  ].sum()
  degrees = max(int(keep.sum()) - 1, 1)
  # Wilson and Hilferty's approximation of the quantile.
  limit = degrees * (1 - 2 / (9 * degrees) + 3.09 * math.sqrt(2 / 9 / degrees))
  limit = degrees * (limit / degrees) ** 3
  assert statistic < limit


def test_draws_do_not_depend_on_company(transformer):
  sampler = led(transformer, sampling=Sampling(seed=5))
  together = ids_of(sampler.search(SOURCES))
  assert together == [ids_of(sampler.search([source]))[0] for source in SOURCES]
  assert together == ids_of(
    led(transformer, sampling=Sampling(seed=5)).search(SOURCES)
  )
  assert together != ids_of(
    led(transformer, sampling=Sampling(seed=6)).search(SOURCES)
  )


def test_what_is_drawn_obeys(transformer):
  constraints = [DecodingConstraints(prefix="w3", forbidden=("w5",))] * len(
    SOURCES
  )
  found = led(
    transformer, sampling=Sampling(seed=1), no_repeat_ngram_size=2, min_length=3
  ).search(SOURCES, constraints)
  for sequence in itertools.chain(*found):
    ids = sequence.ids
    assert ids[0] == 3 and 5 not in ids and len(ids) >= 3
    assert len(set(itertools.pairwise(ids))) == len(ids) - 1


def test_a_number_at_the_edge_chooses_what_can_be():
  logs = tf.constant(np.log([[0.5, 0.5, 1e-30, 1e-30]]), tf.float32)
  for number, expected in ((0.0, 0), (0.49, 0), (0.51, 1), (1 - 2**-24, 1)):
    (chosen,) = sample_tokens(logs, tf.constant([number]), SamplingRule())
    assert chosen == expected


def test_chrf_is_sacrebleus():
  texts = ["a dog runs", "a dog ran .", "", "zwei Hunde", "a", "ab", "狗在跑。"]
  found = chrf_matrix(texts)
  for row, column in itertools.product(range(len(texts)), repeat=2):
    expected = sacrebleu.sentence_chrf(texts[row], [texts[column]]).score
    assert found[row, column] == pytest.approx(expected, abs=1e-9)
  assert utilities(texts)[0] == pytest.approx(found[0].mean())


def test_the_least_risk_comes_first(transformer):
  options = DecodingOptions(n_best=3, search=SearchOptions(mbr=True))
  translator = Translator(transformer, Words(), options)
  line = "w4 w8 w9 w10"
  found = translator.translate_line(line).hypotheses
  assert [h.utility for h in found] == sorted(
    (h.utility for h in found), reverse=True
  )
  usual = Translator(transformer, Words(), DecodingOptions(n_best=3))
  beam = usual.translate_line(line).hypotheses
  assert {h.text for h in found} == {h.text for h in beam}
  assert dict(
    zip([h.text for h in beam], utilities([h.text for h in beam]), strict=True)
  ) == {h.text: h.utility for h in found}


@pytest.mark.parametrize("led_by", ["mbr", "forbidden"])
def test_attention_is_of_the_translation_that_is_given(transformer, led_by):
  usual = Translator(transformer, Words())
  lines = [Words().decode(ids[:-1]) for ids in SOURCES]
  without = usual.translate(lines)
  options = {
    "mbr": SearchOptions(mbr=True),
    "forbidden": SearchOptions(forbidden=tuple(without[0].split())),
  }
  translator = Translator(
    transformer, Words(), DecodingOptions(n_best=3, search=options[led_by])
  )
  given = [translator.translate_line(line).text for line in lines]
  assert given != without
  for line, text in zip(lines, given, strict=True):
    assert " ".join(translator.attention(line).target[:-1]) == text


def test_lines_bring_demands_of_their_own(transformer):
  options = DecodingOptions(search=SearchOptions(forbidden=("w11",)))
  translator = Translator(transformer, Words(), options)
  requests = [
    LineRequest("w4 w5", DecodingConstraints(prefix="w6 w7")),
    "w4 w5",
    LineRequest("w8", DecodingConstraints(required=("w9",))),
    LineRequest(" ", DecodingConstraints(required=("w9",))),
  ]
  found = list(translator.translate_stream(requests))
  assert found[0].text.startswith("w6 w7")
  assert [t.unmet for t in found[:3]] == [(), (), ()]
  assert all("w11" not in t.text for t in found)
  assert found[3].text == " "
  assert found[3].unmet == ("w9",)


def test_demands_that_cannot_be_met_are_refused(transformer):
  options = DecodingOptions(padded_length=8)
  translator = Translator(transformer, Words(), options)
  request = LineRequest("w4 w5", DecodingConstraints(prefix="w6 w7"))
  with pytest.raises(InputError, match="no guided search"):
    translator.translate([request])


def test_each_line_may_be_searched_for_in_its_own_way(transformer):
  """Those of one batch find what each finds alone."""
  lines = [Words().decode(ids[:-1]) for ids in SOURCES]
  ways = [
    None,
    SearchOptions(min_length=9),
    SearchOptions(mbr=True),
    SearchOptions(sampling=Sampling(seed=5)),
    SearchOptions(min_length=9),
    SearchOptions(forbidden=("w11", "w4")),
  ]
  translator = Translator(transformer, Words(), DecodingOptions(n_best=3))
  found = translator.translate_stream(
    LineRequest(line, search=way) for line, way in zip(lines, ways, strict=True)
  )
  for line, way, translation in zip(lines, ways, found, strict=True):
    options = DecodingOptions(n_best=3, search=way or SearchOptions())
    alone = Translator(transformer, Words(), options).translate_line(line)
    assert translation.text == alone.text
    assert [h.tokens for h in translation.hypotheses] == [
      h.tokens for h in alone.hypotheses
    ]


def test_searches_that_differ_in_numbers_share_a_graph(transformer):
  searcher = GuidedSearcher([transformer], Tokenizers.of(Words()))
  for number in (1.5, 3.0):
    searcher.search(SOURCES, None, SearchOptions(repetition_penalty=number))
  for size in (1, 3):
    searcher.search(SOURCES, None, SearchOptions(no_repeat_ngram_size=size))
  for rule in (SamplingRule(0.5, 3), SamplingRule(1.0, 0, 0.9)):
    searcher.search(SOURCES, None, SearchOptions(sampling=Sampling(rule)))
  assert len(searcher._functions) == 3
  for function in searcher._functions.values():
    assert function.experimental_get_tracing_count() == 1


def test_phrases_are_whole_words():
  assert [tuple(p) for p in places_of("ein Hund, Hunde", "Hund")] == [(4, 8)]
  assert holds("一只狗在跑", "狗")
  assert not holds("Schäferhund", "hund")
  assert holds("der (Hund)", "Hund")
  # The marks of a letter are a part of its word; other scripts are not.
  assert not holds("\u0915\u093f\u0924\u093e\u092c", "\u0915\u093f\u0924")
  assert not holds("\u0915\u093f\u0924\u093e\u092c", "\u0924\u093e\u092c")
  assert not holds("cafe\u0301", "cafe")
  assert holds("\u7528ABC\u5beb", "ABC")
  assert [tuple(p) for p in places_of("aa a a", "a a")] == [(3, 6)]
  assert not holds("", "Hund")
  assert not holds("Hund", " ")
  assert tokens_of(Words(), "w4 w5") == [4, 5]
  assert tokens_of(Words(), " ") == []


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
  directory = tmp_path_factory.mktemp("pieces")
  (directory / "text").write_text("a dog runs\nthe cat sits\n" * 30)
  path = str(directory / "vocab")
  tokenizer_lib.train_sentencepiece([str(directory / "text")], path, 20)
  return tokenizer_lib.load_tokenizer(path)


def test_phrases_are_compared_as_a_vocabulary_writes_them(pieces):
  # Full-width letters and double blanks are another spelling of the same.
  wide = " \uff41  dog "
  assert tokens_of(pieces, wide) == tokens_of(pieces, "a dog")
  assert pieces.decode(prefix_of(pieces, "a dog \u2603")) == "a dog"
  assert prefix_of(pieces, "\u2603") == []
  assert DecodingConstraints(prefix="a\u00a0 dog").unmet_by("a dog runs") == ()
  assert as_written(pieces, wide) == "a dog"
  written = functools.partial(as_written, pieces)
  for wish in (
    DecodingConstraints(prefix=wide),
    DecodingConstraints(required=(wide,)),
    DecodingConstraints(forbidden=("cat",)),
  ):
    assert wish.unmet_by("a dog runs", written) == ()
  assert DecodingConstraints(forbidden=(wide,)).unmet_by("a dog runs", written)


def test_what_no_translation_can_hold_is_told_and_not_searched(
  transformer, pieces
):
  unknown, nothing = "\u2603\u2603", "\u200b"
  assert tokens_of(pieces, unknown) == tokens_of(pieces, nothing) == []
  search = SearchOptions(forbidden=(unknown, nothing))
  translator = Translator(transformer, pieces, DecodingOptions(search=search))
  plain, found, begun = translator.translate_stream(
    [
      "the cat",
      LineRequest("the cat", DecodingConstraints(required=(unknown, nothing))),
      LineRequest("the cat", DecodingConstraints(prefix=f"a dog {unknown}")),
    ]
  )
  assert found.text == plain.text
  assert found.unmet == (unknown, nothing)
  assert begun.text.startswith("a dog")
  assert begun.unmet == (f"a dog {unknown}",)


class GrowingWords(Words):
  """The same, but an odd token goes on with the word before it."""

  def decode(self, ids):
    parts = [f"{'' if i % 2 else ' '}w{i}" for i in ids]
    return "".join(parts).strip()


def test_what_makes_a_phrase_a_part_of_a_longer_word_is_found():
  found = overgrown(GrowingWords(), [4, 5, 6, 4, 8, 4], [4])
  assert list(found) == [(4, 5)]
  # Where words grow in front.
  assert list(overgrown(GrowingWords(), [6, 9, 6, 9, 4], [9])) == [
    (6, 9),
    (6, 9),
  ]


def test_a_required_word_is_no_part_of_a_longer_one(transformer):
  searcher = GuidedSearcher([transformer], Tokenizers.of(GrowingWords()))
  phrases = [f"w{i}" for i in range(4, 24, 2)]
  for phrase in phrases:
    constraints = [DecodingConstraints(required=(phrase,))] * len(SOURCES)
    for sentence in searcher.search(SOURCES, constraints):
      for sequence in sentence:
        text = GrowingWords().decode(sequence.ids)
        assert holds(text, phrase) or not sequence.finished


def test_turns_are_those_of_plain_sorting():
  generator = np.random.default_rng(3)
  totals = generator.integers(-5, 0, [20, 30]).astype("float32")  # With ties.
  bank = generator.integers(0, 4, [20, 30]).astype("int32")
  found = turns(tf.constant(totals), tf.constant(bank)).numpy()
  for row in range(20):
    queues = {}
    for place in sorted(range(30), key=lambda n: (-totals[row, n], n)):
      queues.setdefault(bank[row, place], []).append(place)
    expected = []
    for turn in range(30):
      for number in sorted(queues, reverse=True):
        expected += queues[number][turn : turn + 1]
    assert sorted(range(30), key=lambda n: -found[row, n]) == expected


def test_a_prefix_may_hold_what_is_forbidden(transformer):
  options = DecodingOptions(
    search=SearchOptions(forbidden=("w6",), min_length=9)
  )
  translator = Translator(transformer, Words(), options)
  request = LineRequest("w4 w5", DecodingConstraints(prefix="w6 w7"))
  (found,) = translator.translate_stream([request])
  assert found.text.startswith("w6 w7")
  assert "w6" not in found.text.removeprefix("w6 w7")
  assert found.unmet == ("w6",)
  assert found.score > -1e9


def test_no_more_is_asked_than_there_are_positions():
  learned = dataclasses.replace(PARAMS, positions="learned", max_positions=9)
  with pytest.raises(InputError, match="at most 8"):
    DecodingOptions(search=SearchOptions(min_length=8)).check(learned)


@pytest.mark.parametrize("padded_length", [0, 7])
def test_learned_positions_bound_columns_and_alignments(padded_length):
  learned = model(positions="learned", max_positions=9, extra_decode_length=50)
  # Never EOS: it stops where positions do.
  learned.decoder_stack.output_normalization.beta.assign(
    learned.embedding.shared_weights[1] * -9.0
  )
  options = DecodingOptions(padded_length=padded_length)
  translator = Translator(learned, AlignedWords(), options)
  found = translator.translate_line(
    "w4 w8 w9 w10 w3 w2 w6 w7", aligned=not padded_length
  )
  assert len(found.hypotheses[0].tokens) == 8
  assert not found.finished


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"repetition_penalty": 0.0}, "repetition_penalty"),
    ({"min_length": -1}, "min_length"),
    ({"min_length": 3 * 10**9}, "min_length"),
    ({"no_repeat_ngram_size": 3 * 10**9}, "no_repeat_ngram_size"),
    ({"coverage_penalty": 0.1, "sampling": Sampling()}, "no rank"),
    ({"sampling": Sampling(SamplingRule(temperature=0.0))}, "temperature"),
    ({"sampling": Sampling(SamplingRule(top_p=0.0))}, "top_p"),
    ({"sampling": Sampling(SamplingRule(top_k=-1))}, "top_k"),
  ],
)
def test_impossible_options_are_refused(options, message):
  with pytest.raises(InputError, match=message):
    SearchOptions(**options)
