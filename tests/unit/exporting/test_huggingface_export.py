"""Models for Hugging Face's `transformers`: their weights, and their text."""

import dataclasses
import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_variants import SOURCE, TARGET, VARIANTS, make
from random_model import LINES, random_model, train_vocabulary

from official_transformer.decoding.loading import load_model, open_model
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import InputError, RunError
from official_transformer.exporting import (
  huggingface_export,
  huggingface_model,
)
from official_transformer.exporting.huggingface_model import write_model
from official_transformer.exporting.huggingface_tokenizer import (
  check_vocabulary,
  encode_with,
  write_unigram,
)
from official_transformer.exporting.numpy_model import NumpyModel
from official_transformer.exporting.verification import Samples
from official_transformer.importing.huggingface_names import (
  OWN_PARAMS,
  RESIDUAL_SCALE,
  VOCABULARY,
  architecture,
  with_residual_scale,
)
from official_transformer.importing.pegasus import import_pegasus
from official_transformer.model_params import TransformerParams
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  SentencePieceTokenizer,
  train_sentencepiece,
)
from official_transformer.text.vocabulary_files import (
  VocabFiles,
)

pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
pytestmark = pytest.mark.slow

# Each ends in EOS, and none is what only some vocabularies have.
SOURCES = [[int(i) for i in row if i] for row in SOURCE]
TARGETS = [[int(i) for i in row if i] for row in TARGET]
REFUSED = {
  "post": "positions are 'sinusoid', not Marian's",
  "decoder_tables": "more than one table",
  "no_shared_tables": "more than one table",
  "two_vocabularies": "more than one table",
  "notebook": "positions are 'learned'",
  "paper_base": "positions are",
}


@pytest.mark.parametrize("name", [n for n in VARIANTS if n not in REFUSED])
def test_numpy_computes_the_same_of_what_is_written(name, tmp_path):
  transformer = make(name)
  write_model(transformer, str(tmp_path))
  export = NumpyModel.of_huggingface(str(tmp_path))
  scorer = Scorer(transformer, None)
  pairs = list(zip(SOURCES, TARGETS, strict=True))
  for pair, score in zip(pairs, scorer.score_batch(pairs), strict=True):
    found = export.token_log_probabilities(*pair)
    np.testing.assert_allclose(found, score.token_log_probabilities, atol=2e-5)


def test_a_small_residual_stream_is_exported_as_well(tmp_path, monkeypatch):
  """PyTorch's epsilon would change it, were it not exported larger."""
  transformer = make("learned")
  added = ("embedding/weights", "table", "output_kernel", "output_bias")
  for weight in transformer.weights:
    if weight.path.endswith(added):
      weight.assign(weight * 0.03)
  pairs = list(zip(SOURCES, TARGETS, strict=True))
  wanted = np.concatenate(
    [
      s.token_log_probabilities
      for s in Scorer(transformer, None).score_batch(pairs)
    ]
  )

  def difference():
    write_model(transformer, str(tmp_path))
    export = NumpyModel.of_huggingface(str(tmp_path))
    found = [export.token_log_probabilities(*pair) for pair in pairs]
    return np.abs(np.concatenate(found) - wanted).max()

  larger = difference()
  monkeypatch.setattr(huggingface_model, "residual_scale", lambda _: 1.0)
  assert larger < 0.1 * difference()


@pytest.mark.parametrize("name", REFUSED)
def test_what_transformers_does_not_compute_is_refused(name):
  with pytest.raises(InputError, match=REFUSED[name]):
    architecture(TransformerParams(**VARIANTS[name]))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
  return train_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def model(vocabulary, tmp_path_factory):
  """A model of random weights in a directory of its own."""
  directory = str(tmp_path_factory.mktemp("model") / "model")
  return random_model(directory, vocabulary)


@pytest.fixture
def exported(model, vocabulary, tmp_path):
  """An export, and what was found of it."""
  directory = tmp_path / "export"
  directory.mkdir()
  findings = huggingface_export.export_huggingface(
    model,
    VocabFiles.joint(vocabulary),
    str(directory),
    Samples.of(model, LINES),
  )
  return directory, findings


def test_an_export_is_imported_bit_by_bit(exported, model, tmp_path):
  directory, findings = exported
  assert findings[0].startswith("its tokenizer cuts 4 lines and their")
  assert "at most" in findings[1]
  said = import_pegasus(str(directory), str(tmp_path / "back"), {})
  assert said.startswith("imported")
  back = load_model(*open_model(str(tmp_path / "back")))
  assert back.transformer.params == model.transformer.params
  for ours, again in zip(
    model.transformer.weights, back.transformer.weights, strict=True
  ):
    np.testing.assert_array_equal(ours.numpy(), again.numpy())


def test_an_export_of_the_stream_as_it_is_is_read_too(
  exported, model, tmp_path
):
  from safetensors.numpy import load_file, save_file

  directory, _ = exported
  path = directory / "model.safetensors"
  config = json.loads((directory / "config.json").read_text())
  scale = config.pop(RESIDUAL_SCALE)
  assert scale == 4
  (directory / "config.json").write_text(json.dumps(config))
  save_file(with_residual_scale(load_file(path), 1 / scale), path)
  import_pegasus(str(directory), str(tmp_path / "back"), {})
  back = load_model(*open_model(str(tmp_path / "back")))
  assert back.transformer.params == model.transformer.params
  for ours, again in zip(
    model.transformer.weights, back.transformer.weights, strict=True
  ):
    np.testing.assert_array_equal(ours.numpy(), again.numpy())
  for wrong in ("4", 0, True, float("inf"), float("nan")):
    config[RESIDUAL_SCALE] = wrong
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="no size"):
      import_pegasus(str(directory), str(tmp_path / "damaged"), {})


def test_the_search_is_told_to_transformers(exported):
  directory, _ = exported
  said = json.loads((directory / "generation_config.json").read_text())
  config = json.loads((directory / "config.json").read_text())
  assert said["num_beams"] == 2 and 0 < said["length_penalty"] < 0.6
  # A row of its own stands for the zero vector that the decoder starts with.
  assert said["decoder_start_token_id"] == config["vocab_size"] - 1
  assert config["architectures"] == ["PegasusForConditionalGeneration"]


def test_what_training_moved_is_kept_or_refused(exported, tmp_path):
  from safetensors.numpy import load_file, save_file

  directory, _ = exported
  path = directory / "model.safetensors"
  tensors = load_file(path)
  bias = "model.decoder.layers.0.encoder_attn.k_proj.bias"
  save_file({**tensors, bias: tensors[bias] + 1}, path)
  import_pegasus(str(directory), str(tmp_path / "with_bias"), {})
  (_, found) = open_model(str(tmp_path / "with_bias"))
  assert found.params.attention_bias
  positions = "model.encoder.embed_positions.weight"
  save_file({**tensors, positions: tensors[positions] + 1}, path)
  import_pegasus(str(directory), str(tmp_path / "positions"), {})
  (there, found) = open_model(str(tmp_path / "positions"))
  assert found.params.positions == "learned"
  (table,) = (
    w.numpy()
    for w in load_model(there, found).transformer.weights
    if "source_positions" in w.path
  )
  np.testing.assert_array_equal(table, (tensors[positions] + 1) / 4)
  half = {name: value.astype(np.float16) for name, value in tensors.items()}
  save_file(half, path)
  import_pegasus(str(directory), str(tmp_path / "half"), {})
  (_, found) = open_model(str(tmp_path / "half"))
  assert found.params.positions == "sinusoid"
  shared = "model.shared.weight"
  save_file({**tensors, shared: tensors[shared] + 1}, path)
  with pytest.raises(InputError, match="the row that the decoder starts with"):
    import_pegasus(str(directory), str(tmp_path / "moved"), {})
  del tensors["model.encoder.layers.0.fc1.weight"]
  save_file({**tensors, "model.encoder.layers.1.fc1.bias": np.ones(2)}, path)
  with pytest.raises(InputError) as error:
    import_pegasus(str(directory), str(tmp_path / "other"), {})
  assert "missing: transformer/encoder_stack/layer_0/ffn" in str(error.value)
  assert "unknown: model.encoder.layers.1.fc1.bias" in str(error.value)


def test_anybody_elses_model_is_refused(exported, tmp_path):
  directory, _ = exported
  config = json.loads((directory / "config.json").read_text())
  del config[OWN_PARAMS]
  (directory / "config.json").write_text(json.dumps(config))
  with pytest.raises(InputError, match="no other Pegasus model is one of ours"):
    import_pegasus(str(directory), str(tmp_path / "back"), {})
  config[OWN_PARAMS] = {"hidden_size": "x"}
  (directory / "config.json").write_text(json.dumps(config))
  with pytest.raises(InputError, match="is damaged"):
    import_pegasus(str(directory), str(tmp_path / "back"), {})
  with pytest.raises(
    InputError, match="vocab_size: the model's files or its kind decide"
  ):
    import_pegasus(str(directory), str(tmp_path / "back"), {"vocab_size": 9})


def test_a_bias_that_forbids_tokens_is_no_weight(vocabulary, tmp_path):
  from safetensors.numpy import load_file, save_file

  hides = {"output_bias": True, "suppress_pad": True}
  model = random_model(str(tmp_path / "model"), vocabulary, **hides)
  (bias,) = (w for w in model.transformer.weights if "output/bias" in w.path)
  bias.assign(np.arange(bias.shape[0], dtype=np.float32))
  directory = tmp_path / "export"
  directory.mkdir()
  huggingface_export.export_huggingface(
    model,
    VocabFiles.joint(vocabulary),
    str(directory),
    Samples.of(model, LINES),
  )
  for name, kind in (("same", np.float32), ("rounded", ml_dtypes.bfloat16)):
    path = directory / "model.safetensors"
    tensors = load_file(path)
    save_file({n: t.astype(kind) for n, t in tensors.items()}, path)
    import_pegasus(str(directory), str(tmp_path / name), {})
    back = load_model(*open_model(str(tmp_path / name))).transformer
    (again,) = (w for w in back.weights if "output/bias" in w.path)
    # Whole numbers, which bfloat16 has exactly.
    np.testing.assert_array_equal(again.numpy(), bias.numpy())


def test_a_line_with_more_tokens_than_positions_is_named(
  model, vocabulary, tmp_path, monkeypatch
):
  monkeypatch.setattr(huggingface_export.huggingface_model, "POSITIONS", 3)
  with pytest.raises(InputError, match="translation, and pegasus 3 positions"):
    huggingface_export.export_huggingface(
      model,
      VocabFiles.joint(vocabulary),
      str(tmp_path),
      Samples.of(model, LINES),
    )


def test_another_vocabulary_is_refused(exported, tmp_path):
  directory, _ = exported
  lines = [f"word{n} another{n}" for n in range(300)]
  (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
  train_sentencepiece([str(tmp_path / "text")], str(directory / VOCABULARY), 80)
  with pytest.raises(InputError, match="another model's: it has 80 entries"):
    import_pegasus(str(directory), str(tmp_path / "back"), {})


def test_a_vocabulary_that_was_not_saved_anew_is_missed(exported, tmp_path):
  directory, _ = exported
  (directory / VOCABULARY).unlink()
  with pytest.raises(InputError, match="copy it from the export"):
    import_pegasus(str(directory), str(tmp_path / "back"), {})


def test_an_export_that_differs_is_none(model, vocabulary, tmp_path):
  samples = Samples.of(model, LINES)
  other = dataclasses.replace(samples, texts=["x", *samples.texts[1:]])
  files = VocabFiles.joint(vocabulary)
  with pytest.raises(RunError, match="does not write as the model does"):
    huggingface_export.export_huggingface(model, files, str(tmp_path), other)


@pytest.fixture(scope="module")
def cut(vocabulary, tmp_path_factory):
  """Cuts a line by the model's tokenizer, and by the export's."""
  directory = str(tmp_path_factory.mktemp("tokenizer"))
  tokenizer = SentencePieceTokenizer(vocabulary)
  write_unigram(vocabulary, directory, tokenizer.vocab_size, 256)

  def cut(line):
    (found,) = encode_with(directory, [line])
    return tokenizer.encode(line, add_eos=True), found

  return cut


@given(
  st.lists(
    st.one_of(
      st.sampled_from(
        [
          *("</s>", "<unk>", "<pad>", "</", "\t", "  ", "\u00a0", "\u00ad"),
          *("e\u0301", "½", "ﬁ", "\u2028", "\ufeff", "中文", "😀", "\x00"),
          *("\u2581", "\u2581A"),
          *("dog", " runs", "läuft", "."),
        ]
      ),
      st.text(max_size=3),
    )
  ).map("".join)
)
def test_lines_are_cut_alike(cut, line):
  ours, theirs = cut(line)
  assert ours == theirs


def test_vocabularies_without_an_equal_are_refused(vocabulary, tmp_path):
  tokenizer = SentencePieceTokenizer(vocabulary)
  check_vocabulary(tokenizer, vocabulary, "pegasus")
  formed = FormedTokenizer(tokenizer, TextForm(lowercase=True))
  with pytest.raises(InputError, match="brought into a form"):
    check_vocabulary(formed, vocabulary, "pegasus")
  (tmp_path / "text").write_text("\n".join(LINES), "utf-8")
  path = str(tmp_path / "bpe.model")
  train_sentencepiece([str(tmp_path / "text")], path, 60, "bpe")
  with pytest.raises(InputError, match="not trained as a unigram model"):
    check_vocabulary(SentencePieceTokenizer(path), path, "pegasus")
  check_vocabulary(SentencePieceTokenizer(path), path, "marian")
