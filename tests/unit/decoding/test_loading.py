import dataclasses
import gc
import os
import shutil
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_transformer.data.buckets import Batching
from official_transformer.decoding import loading
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.scorer import Scorer
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  bundle_key,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.ops import dense
from official_transformer.search.options import SearchOptions
from official_transformer.text import tokenizer
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)

SUBTOKENS = "abcdefghijklmnopqr"


@pytest.fixture
def model_dir(params, tmp_path):
  """A directory of a random model over 20 subtokens."""
  vocab_file = tmp_path / "vocab"
  vocab_file.write_text(
    "".join(f"'{s}'\n" for s in ["<pad>", "<EOS>", *SUBTOKENS])
  )
  directory = ModelDirectory(str(tmp_path / "model"))
  params = dataclasses.replace(params, extra_decode_length=3)
  vocabularies = load_vocabularies(VocabFiles.joint(str(vocab_file)))
  directory.write(
    ModelDescription(params, vocabularies.identity, Batching(1024, 40)),
    vocabularies,
  )
  keras.utils.set_random_seed(3)
  weights = build_transformer(params).weights
  write_checkpoint(directory, 1, {bundle_key(WEIGHTS, w): w for w in weights})
  return directory.path


def load(model_dir, dtype="fp32", checkpoint="latest", **decoding):
  directory, description = loading.open_model(model_dir, **decoding)
  return loading.load_model(directory, description, dtype, checkpoint)


@pytest.mark.parametrize("spells_all", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_all_of_several_models_suppress_the_unknown_if_the_first_does(
  model_dir, monkeypatch, spells_all, asked
):
  monkeypatch.setattr(
    tokenizer, "has_unknown", lambda *arguments: not spells_all
  )
  opened = [
    loading.open_model(model_dir, suppress_unk=choice)
    for choice in (asked, not asked)
  ]
  for model in loading.load_models(opened):
    suppresses = model.transformer.params.suppress_unk
    assert suppresses == (asked and not spells_all)


def test_the_model_is_the_checkpoints(model_dir):
  model = load(model_dir, beam_size=2)
  assert model.longest_piece == 40
  assert model.transformer.params.beam_size == 2
  assert model.tokenizers.source.vocab_size == 20
  stored = tf.train.load_checkpoint(
    ModelDirectory(model_dir).latest_checkpoint()
  )
  for weight in model.transformer.weights:
    np.testing.assert_array_equal(
      weight, stored.get_tensor(bundle_key(WEIGHTS, weight))
    )


def test_a_vocabulary_without_unknowns_has_nothing_to_suppress(model_dir):
  model = load(model_dir, suppress_unk=True)
  assert not model.transformer.params.suppress_unk


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_without_units_float32_is_taken_and_said(
  model_dir, dtype, monkeypatch, caplog
):
  monkeypatch.setattr(loading, "is_fast_dtype", lambda _: False)
  transformer = load(model_dir, dtype).transformer
  assert transformer.compute_dtype == "float32"
  assert f"--dtype={dtype}: this processor has no fast units" in caplog.text


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("static", [True, False])
def test_with_units_all_but_the_norms_is_small(
  model_dir, dtype, static, monkeypatch
):
  for module in (loading, dense):
    monkeypatch.setattr(module, "is_fast_dtype", lambda _: True)
  short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
  small = load(model_dir, short).transformer
  for weight in small.weights:
    norm = weight.path.endswith(("gamma", "beta"))
    assert weight.dtype == ("float32" if norm else dtype)
  source = tf.constant([[5, 6, 7, 1], [8, 1, 0, 0]])
  found = tf.function(
    lambda ids: small.beam_search(ids, static=static),
    input_signature=None if static else [tf.TensorSpec([None, None], tf.int32)],
    autograph=False,
  )(source)
  exact = load(model_dir).transformer.beam_search(source)
  longest = exact.ids.shape[2]
  np.testing.assert_allclose(found.scores[:, 0], exact.scores[:, 0], rtol=0.05)
  assert found.ids.shape[2] == longest


def test_weights_that_are_not_finite_are_no_model(model_dir, caplog):
  directory = ModelDirectory(model_dir)
  weights = {
    bundle_key(WEIGHTS, w): w.numpy()
    for w in load(model_dir).transformer.weights
  }
  name = next(iter(weights))
  weights[name].flat[3] = np.nan
  write_checkpoint(directory, 2, weights)
  # A service keeps the model it has: it asks for the newest alone.
  with pytest.raises(InputError, match="1 numbers that are not finite"):
    load(model_dir, checkpoint="2")
  load(model_dir)
  assert "not finite" in caplog.text
  assert "using the one of step 1" in caplog.text


def test_where_the_newest_is_damaged_the_one_before_is_used(model_dir, caplog):
  directory = ModelDirectory(model_dir)
  newest = directory.checkpoint_directory(2)
  shutil.copytree(directory.checkpoint_directory(1), newest)
  assert load(model_dir).checkpoint.step == 2
  path = os.path.join(newest, "model.data-00000-of-00001")
  os.truncate(path, os.path.getsize(path) // 2)
  with caplog.at_level("ERROR", "absl"):
    assert load(model_dir).checkpoint.step == 1
  assert "step-2/model is missing or damaged" in caplog.text
  assert caplog.messages[-1].endswith("using the one of step 1")
  # One that is asked for is that one.
  with pytest.raises(InputError, match="step-2/model is missing or damaged"):
    load(model_dir, checkpoint="2")


def test_there_is_no_best_before_an_evaluation(model_dir):
  with pytest.raises(InputError, match="no evaluation of its training"):
    load(model_dir, checkpoint="best")


def graphs():
  """Returns the TensorFlow graphs that are alive."""
  gc.collect()
  return [o for o in gc.get_objects() if isinstance(o, tf.Graph)]


@pytest.mark.parametrize("led", [False, True], ids=["plain", "led"])
def test_a_translator_that_is_dropped_leaves_nothing(trained_model, led):
  """No graph of a search or of teacher forcing keeps the weights alive."""
  options = DecodingOptions(search=SearchOptions(repetition_penalty=2.0))
  before = graphs()
  translator = Translator.load(
    trained_model, options=options if led else DecodingOptions()
  )
  transformer = translator.attention_reader.transformer
  translator.translate(["A man works."])
  if not led:
    translator.attention("A man works.")
    Scorer(transformer, translator.tokenizers).score_batch([([2, 1], [4, 1])])
  kept = weakref.ref(transformer)
  del translator, transformer
  known = {id(graph) for graph in before}  # Alive, so no other has their id.
  assert [graph for graph in graphs() if id(graph) not in known] == []
  assert kept() is None
