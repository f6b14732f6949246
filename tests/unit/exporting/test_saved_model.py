"""What a SavedModel answers, beside what the search finds."""

import numpy as np
import pytest
import tensorflow as tf
from trained_model import lines_of, read_frozen

from official_transformer.decoding.loading import load_model, open_model
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.exporting.saved_model import write_saved_model
from official_transformer.hardware.processor import Target, _target
from official_transformer.ops import dense
from official_transformer.text.vocabulary_files import VocabFiles

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(trained_model):
  return load_model(*open_model(trained_model))


@pytest.fixture(scope="module")
def saved(model, trained_model, tmp_path_factory):
  directory = str(tmp_path_factory.mktemp("saved"))
  files = VocabFiles.joint(f"{trained_model}/vocab")
  write_saved_model(model, files, directory, with_text=True)
  return tf.saved_model.load(directory)


def test_kernels_are_laid_out_for_any_processor(
  model, trained_model, tmp_path, monkeypatch
):
  targets = []
  monkeypatch.setattr(
    dense, "padding_columns_for", lambda _: targets.append(_target.get()) or 0
  )
  monkeypatch.setattr(
    tf.saved_model,
    "save",
    lambda *_, signatures: signatures["translate"].get_concrete_function(),
  )
  files = VocabFiles.joint(f"{trained_model}/vocab")
  write_saved_model(model, files, str(tmp_path), with_text=False)
  assert set(targets) == {Target.ANY_PROCESSOR}


@pytest.mark.parametrize("size", [1, 50])
def test_text_is_translated_as_the_translator_does(saved, model, size):
  lines = lines_of(read_frozen(), "sources")[:50]
  translator = Translator.of(model, DecodingOptions(n_best=4))
  expected = list(translator.translate_stream(lines))
  for start in range(0, len(lines), size):
    some = lines[start : start + size]
    found = saved.signatures["translate_text"](text=tf.constant(some))
    found = {name: tensor.numpy() for name, tensor in found.items()}
    for row, wanted in enumerate(expected[start : start + size]):
      assert found["translations"][row].decode() == wanted.text
      assert found["scores"][row] == pytest.approx(wanted.score, abs=1e-4)
      assert found["finished"][row] == wanted.finished
      number = len(wanted.hypotheses)
      texts = [t.decode() for t in found["n_best_translations"][row]]
      assert texts[:number] == [h.text for h in wanted.hypotheses]
      assert texts[number:] == [""] * (4 - number)
      scores = found["n_best_scores"][row]
      np.testing.assert_allclose(
        scores[:number], [h.score for h in wanted.hypotheses], atol=1e-4
      )
      assert np.isneginf(scores[number:]).all()


def test_ids_are_the_first_versions(saved, model):
  line = lines_of(read_frozen(), "sources")[0]
  ids = model.tokenizers.source.encode(line.strip(), add_eos=True)
  translate = saved.signatures["translate"]
  (spec,) = translate.structured_input_signature[1].values()
  assert (spec.name, spec.dtype, spec.shape.as_list()) == (
    "input",
    tf.int64,
    [None, None],
  )
  found = translate(input=tf.constant([ids, [*ids[1:], 0]], tf.int64))
  assert found["outputs"].dtype == tf.int32
  assert found["outputs"].shape.rank == 2
  assert found["scores"].shape.as_list() == [2]
  assert 1 in found["outputs"][0].numpy()
  assert set(saved.signatures) == {
    "serving_default",
    "translate",
    "translate_n_best",
    "translate_text",
  }


def test_nothing_and_blank_lines_become_nothing(saved):
  found = saved.signatures["translate_text"](text=tf.constant([], tf.string))
  assert found["translations"].shape.as_list() == [0]
  empty = tf.zeros([0, 0], tf.int64)
  found = saved.signatures["translate"](input=empty)
  assert found["scores"].shape.as_list() == [0]
  lines = ["", "A dog runs.", " \u3000", "dog " * 300]
  found = saved.signatures["translate_text"](text=tf.constant(lines))
  found = {name: tensor.numpy().tolist() for name, tensor in found.items()}
  assert found["blank"] == [True, False, True, False]
  assert found["long"] == [False, False, False, True]
  assert [bool(t) for t in found["translations"]] == [False, True, False, True]
  assert found["scores"][0] == found["scores"][2] == 0
  assert found["n_best_finished"][0] == [True, False, False, False]


def test_the_vocabulary_is_an_asset(saved, trained_model):
  with open(f"{trained_model}/vocab", "rb") as stream:
    expected = stream.read()
  with open(saved.vocabularies[0].asset_path.numpy(), "rb") as stream:
    assert stream.read() == expected
