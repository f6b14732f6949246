import dataclasses
import itertools
import math

import numpy as np
import pytest

from official_transformer.commands.trace import tree_of
from official_transformer.decoding.search_trace import (
  FINISHED,
  KEPT,
  PRUNED,
  SearchTracer,
)
from official_transformer.decoding.translator import Translator
from official_transformer.model.building import build_transformer

pytestmark = pytest.mark.slow

SENTENCES = ["The woman must help the small child today.", "A dog runs."]


@pytest.fixture(scope="module")
def translator(trained_model):
  return Translator.load(trained_model)


@pytest.fixture(scope="module", params=SENTENCES)
def traced(request, translator):
  tracer = SearchTracer(
    translator.searchers.plain.transformer, *translator.tokenizers
  )
  ids = translator.prepare(request.param).ids[0]
  return tracer.trace(ids), translator.searchers.plain.search([ids])[0]


def test_it_finds_what_the_search_finds(traced, translator):
  trace, found = traced
  texts = [translator.tokenizers.target.decode(f.ids) for f in found]
  assert [f.text for f in trace.found] == texts
  np.testing.assert_allclose(
    [f.score for f in trace.found], [f.score for f in found], atol=1e-4
  )
  assert all(f.pieces[-1] == "</s>" for f in trace.found if f.finished)


def test_the_limit_is_that_of_learned_positions_too(translator):
  ids = translator.prepare(SENTENCES[1]).ids[0]
  for changes, limit in (
    ({}, len(ids) + 50),
    ({"positions": "learned", "max_positions": 9}, 8),
  ):
    params = dataclasses.replace(
      translator.params, num_hidden_layers=1, **changes
    )
    tracer = SearchTracer(build_transformer(params), *translator.tokenizers)
    trace = tracer.trace(ids)
    assert trace.limit == limit
    assert max(len(f.pieces) for f in trace.found) <= limit


def test_every_step_chooses_the_best_of_its_candidates(traced):
  trace, _ = traced
  alive = [0.0]
  finished = []
  for number, candidates in enumerate(trace.steps, start=1):
    totals = [c.log_probability for c in candidates]
    assert totals == sorted(totals, reverse=True)
    assert len(candidates) <= 2 * trace.beam_size
    for c in candidates:
      total = alive[c.parent] + c.step_log_probability
      assert math.isclose(c.log_probability, total, abs_tol=1e-4)
      assert (c.score is not None) == (c.piece == "</s>")
    kept = [c for c in candidates if c.fate == KEPT]
    assert [c.beam for c in kept] == list(range(len(kept)))
    assert len(kept) <= trace.beam_size
    going_on = [c for c in candidates if c.piece != "</s>"]
    assert kept == going_on[: trace.beam_size]
    assert all(c.fate == PRUNED for c in going_on[trace.beam_size :])
    ended = [c for c in candidates if c.piece == "</s>"]
    for c in ended:
      norm = ((5 + number) / 6) ** trace.alpha
      assert math.isclose(c.score, c.log_probability / norm, abs_tol=1e-4)
    scores = sorted([*finished, *(c.score for c in ended)], reverse=True)
    finished = scores[: trace.beam_size]
    for c in ended:
      assert (c.fate == FINISHED) == (c.score >= finished[-1])
    alive = [c.log_probability for c in kept]
  np.testing.assert_allclose(
    finished, [f.score for f in trace.found], atol=1e-5
  )


def test_the_best_path_spells_the_best_hypothesis(traced):
  trace, _ = traced
  path = trace.best_path()
  pieces = [
    candidates[place].piece
    for candidates, place in zip(trace.steps, path, strict=False)
  ]
  assert pieces == trace.found[0].pieces


def test_its_tree_joins_each_candidate_to_what_it_continues(traced):
  trace, _ = traced
  tree = tree_of(trace)
  assert [len(nodes) for nodes in tree] == [len(c) for c in trace.steps]
  assert all(node.parent is None for node in tree[0])
  for before, nodes in itertools.pairwise(tree):
    assert all(before[node.parent].kind == KEPT for node in nodes)
  best = [node for nodes in tree for node in nodes if node.is_best]
  assert [node.label for node in best] == trace.found[0].pieces
