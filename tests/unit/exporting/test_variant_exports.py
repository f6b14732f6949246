"""Variants of the model, exported, find what they find here.

The official model, one of Marian's, one of the notebook's, and the combined
models, which have every variant.
"""

import numpy as np
import pytest
import tensorflow as tf
from model_variants import COMBINED, SOURCE, TARGET, make

from official_transformer.decoding.engines import Engine
from official_transformer.decoding.model_weights import ModelWeights
from official_transformer.decoding.scorer import Scorer
from official_transformer.exporting.saved_model import TranslationModule
from official_transformer.ops import dense
from official_transformer.text.vocabulary_files import Tokenizers

EXPORTED = ["official", "marian_model", "notebook", *COMBINED]
# Each ends in EOS, and none is what only some vocabularies have.
SOURCES = [[int(i) for i in row if i] for row in SOURCE]
TARGETS = [[int(i) for i in row if i] for row in TARGET]


class Entries:
  """A vocabulary whose entries are numbers."""

  def __init__(self, vocab_size, sign="t"):
    self.vocab_size = vocab_size
    self.sign = sign

  def pieces(self, ids):
    return [f"{self.sign}{i}" for i in ids]


def tokenizers_of(params):
  target = Entries(params.vocab_size)
  if not params.source_vocab_size:
    return Tokenizers.of(target)
  return Tokenizers(Entries(params.source_vocab_size, "s"), target)


@pytest.mark.parametrize("name", EXPORTED)
def test_ctranslate2_computes_the_same(name):
  pytest.importorskip("ctranslate2")
  from official_transformer.decoding.ctranslate2_searcher import (
    CTranslate2Searcher,
  )

  transformer = make(name)
  tokenizers = tokenizers_of(transformer.params)
  exported = CTranslate2Searcher.of(
    ModelWeights.of(transformer),
    tokenizers,
    Engine("ctranslate2"),
    workers=1,
  )
  found = exported.translator.score_batch(
    [[exported.sources[i] for i in ids[:-1]] for ids in SOURCES],
    [[exported.entries[i] for i in ids[:-1]] for ids in TARGETS],
  )
  wanted = Scorer(transformer, tokenizers).score_batch(
    list(zip(SOURCES, TARGETS, strict=True))
  )
  for theirs, own in zip(found, wanted, strict=True):
    np.testing.assert_allclose(
      theirs.log_probs, own.token_log_probabilities, atol=2e-5
    )
  if transformer.params.suppress_pad:
    (pad,) = exported.translator.score_batch(
      [[exported.sources[5]]], [[exported.entries[0]]]
    )
    assert pad.log_probs[0] < -1e4


def saved(transformer, directory):
  size = transformer.params.vocab_size
  module = TranslationModule(transformer, size, 100, [], None)
  tf.saved_model.save(module, directory, signatures=module.signatures())
  return tf.saved_model.load(directory).signatures["translate_n_best"]


# With spare columns and without, in turns.
@pytest.mark.parametrize(
  ("name", "spare"),
  [("official", 3), *((name, 3 * (n % 2)) for n, name in enumerate(EXPORTED))],
)
def test_a_saved_model_finds_the_same(name, spare, tmp_path, monkeypatch):
  transformer = make(name)
  wanted = transformer.beam_search(SOURCE)
  monkeypatch.setattr(dense, "padding_columns_for", lambda _: spare)
  found = saved(transformer, str(tmp_path))(input=tf.constant(SOURCE, tf.int64))
  tf.debugging.assert_equal(found["outputs"], wanted.ids)
  np.testing.assert_allclose(found["scores"], wanted.scores, atol=1e-5)


def test_a_saved_model_says_what_is_longer_than_its_positions(tmp_path):
  translate = saved(make("learned"), str(tmp_path))
  plain = translate(input=tf.constant(SOURCE, tf.int64))
  padded = tf.pad(tf.constant(SOURCE, tf.int64), [[0, 0], [0, 60]])
  tf.debugging.assert_equal(
    translate(input=padded)["outputs"], plain["outputs"]
  )
  with pytest.raises(tf.errors.InvalidArgumentError, match="40 positions"):
    translate(input=tf.fill([1, 41], tf.constant(5, tf.int64)))
