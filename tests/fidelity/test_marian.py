"""Imported Marian models against Hugging Face's own code.

`make_marian_models.py` made the models and the answers.
"""

import dataclasses
import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from runs import settings as run_settings

from official_transformer.decoding.batching import pad
from official_transformer.decoding.loading import load_model, open_model
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.exporting.verification import Samples
from official_transformer.importing.marian import import_marian
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.ops.top_k import best_continuations
from official_transformer.search.state import NEG_INF, SearchHooks
from official_transformer.text.tokenizer import load_tokenizer

pytestmark = pytest.mark.slow

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "marian"
NAMES = ("tied", "larger", "untied")
SEARCH = {"beam_size": 4, "alpha": 0.0, "extra_decode_length": 50}


def copy(name, directory):
  """Puts a model together as it lies on the Hugging Face hub."""
  shutil.copytree(FIXTURES / name, directory)
  for file in (FIXTURES / "vocabulary").iterdir():
    shutil.copy(file, directory)
  return str(directory)


@pytest.fixture(scope="module", params=NAMES)
def imported(request, tmp_path_factory):
  directory = tmp_path_factory.mktemp(request.param)
  said = import_marian(
    copy(request.param, directory / "hub"), str(directory / "model"), SEARCH
  )
  assert "54 entries" in said
  answers = json.loads((FIXTURES / request.param / "answers.json").read_text())
  return Translator.load(str(directory / "model")), answers


def numbers(answers, translator):
  """Returns our id of each of Marian's."""
  pieces = json.loads((FIXTURES / "vocabulary" / "vocab.json").read_text())
  size = len(pieces)
  first = [pieces["<pad>"], pieces["</s>"], pieces["<unk>"]]
  order = [*first, *(i for i in range(size) if i not in first)]
  return {marians: ours for ours, marians in enumerate(order)}, order


def test_lines_become_the_same_ids(imported):
  translator, answers = imported
  ours, _ = numbers(answers, translator)
  for source, target, row in zip(
    answers["sources"], answers["targets"], answers["found"], strict=True
  ):
    for side, line, wanted in (
      ("source", source, row["source_ids"]),
      ("target", target, row["target_ids"]),
    ):
      tokenizer = getattr(translator.tokenizers, side)
      found = tokenizer.encode(line, add_eos=True)
      assert found == [ours[i] for i in wanted], line


def test_logits_are_hugging_faces(imported):
  translator, answers = imported
  ours, order = numbers(answers, translator)
  transformer = translator.searchers.plain.transformer
  for row in answers["found"][:10]:
    source, target = (
      np.array([[ours[i] for i in row[f"{side}_ids"]]])
      for side in ("source", "target")
    )
    found = transformer([source, target])[0].numpy()
    expected = np.array(row["logits"])[:, order]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def generate_rule(logits, sentences, index):
  """Has only the first K of 2K candidates end, as `generate` does."""
  del index
  log_probs, tokens, parents = best_continuations(
    logits, sentences.alive_log_probs, logits.shape[1]
  )
  late = tf.range(8) >= 4
  dropped = late & tf.equal(tokens, EOS_ID)
  return tf.where(dropped, NEG_INF, log_probs), tokens, parents


@pytest.mark.parametrize("name", NAMES)
def test_what_was_imported_goes_back(name, tmp_path):
  pytest.importorskip("safetensors")
  from official_transformer.exporting.huggingface_export import (
    export_huggingface,
  )
  from official_transformer.exporting.huggingface_tokenizer import (
    encode_marian,
  )

  hub, exported = copy(name, tmp_path / "hub"), tmp_path / "exported"
  import_marian(hub, str(tmp_path / "model"), SEARCH)
  directory, description = open_model(str(tmp_path / "model"))
  model = load_model(directory, description)
  answers = json.loads((FIXTURES / name / "answers.json").read_text())
  samples = Samples.of(model, answers["sources"][:8])
  exported.mkdir()
  text, finding = export_huggingface(
    model, directory.vocab_files(), str(exported), samples
  )
  assert "differ from the model's by" in finding
  assert text.startswith("its tokenizer cuts 8 lines")
  lines = [">>deu<< a b", "a </s> b", "x \u4e2d"]
  found = encode_marian(str(exported), "source", lines)
  encode = model.tokenizers.source.encode
  assert found == [encode(line, add_eos=True) for line in lines]
  vocabulary = json.loads((exported / "vocab.json").read_text())
  assert ">>deu<<" in vocabulary
  import_marian(str(exported), str(tmp_path / "again"), SEARCH)
  again = load_model(*open_model(str(tmp_path / "again")))
  assert again.transformer.params == model.transformer.params
  for one, other in zip(
    model.transformer.weights, again.transformer.weights, strict=True
  ):
    rows = np.arange(one.shape[0])
    if one.path.endswith("output/bias"):
      rows = np.setdiff1d(rows, model.transformer.params.hidden_tokens)
    np.testing.assert_array_equal(one.numpy()[rows], other.numpy()[rows])
  config, before = (
    json.loads((pathlib.Path(path) / "config.json").read_text())
    for path in (exported, hub)
  )
  for key in ("architectures", "d_model", "scale_embedding", "encoder_layers"):
    assert config[key] == before[key]


@pytest.mark.parametrize(
  "lines", [50, pytest.param(200, marks=pytest.mark.long)]
)
def test_translations_are_those_of_generate(imported, lines):
  """All are, by its rule of what may end, and the text with them.

  At its limit `generate` weighs what has ended against what has not; here,
  what has ended is returned: such sentences are told apart, and no others.
  """
  translator, answers = imported
  ours, _ = numbers(answers, translator)
  transformer = translator.searchers.plain.transformer
  hooks = SearchHooks(propose=generate_rule)
  equal = at_limit = 0
  for start in range(0, lines, 50):
    rows = answers["found"][start : start + 50]
    sources = pad([[ours[i] for i in row["source_ids"]] for row in rows])
    found = transformer.beam_search(sources, hooks=hooks)
    for row, ids, scores, finished in zip(
      rows, *(tensor.numpy() for tensor in found), strict=True
    ):
      theirs = [ours[i] for i in row["ids"]]
      if theirs[-1] != EOS_ID and finished[0]:
        assert scores[0] <= row["score"] + 1e-3
        at_limit += 1
        continue
      assert ids[0, : len(theirs)].tolist() == theirs
      assert scores[0] == pytest.approx(row["score"], abs=2e-3)
      text = translator.tokenizers.target.decode(
        [i for i in theirs if i != EOS_ID]
      )
      assert text == row["text"]
      equal += 1
  assert equal >= 0.6 * lines
  assert equal + at_limit == lines


def test_our_own_search_finds_what_is_no_less_probable(imported):
  translator, answers = imported
  ours, _ = numbers(answers, translator)
  found = translator.searchers.plain.search(
    [[ours[i] for i in row["source_ids"]] for row in answers["found"]]
  )
  pairs = [
    (row["score"], sequences[0].score)
    for row, sequences in zip(answers["found"], found, strict=True)
    if row["ids"][-1] == 0 and sequences[0].finished
  ]
  assert len(pairs) > 100
  better = sum(own > theirs + 1e-3 for theirs, own in pairs)
  worse = sum(own < theirs - 1e-3 for theirs, own in pairs)
  assert better >= worse


def test_no_translation_holds_pad(imported):
  translator, _ = imported
  found = translator.searchers.plain.search([[5, 9, 12, 1], [7, 1]])
  assert all(0 not in sequence.ids for row in found for sequence in row)


def test_one_is_trained_on(tmp_path, reversals):
  """Fine-tuning lowers the loss, and goes on from the imported weights."""
  from official_transformer.data.prepared_data import read_prepared_data
  from official_transformer.training.trainer import Trainer

  import_marian(
    copy("tied", tmp_path / "hub"),
    str(tmp_path / "model"),
    {"learning_rate_warmup_steps": 10, "learning_rate": 0.5},
  )
  directory = ModelDirectory(str(tmp_path / "model"))
  run = run_settings(reversals, 40)
  directory_params = directory.read().params
  data = read_prepared_data(run.data_dir, directory_params.vocab_size, True)
  before = Trainer(directory, directory_params, run, data)
  before._resume()
  first = before.validate()["loss"]
  trainer = Trainer(directory, directory_params, run, data)
  trainer.train()
  assert trainer.validate()["loss"] < first
  model = load_model(*open_model(directory.path))
  assert model.checkpoint.step == 40


@pytest.mark.parametrize(
  ("file", "content", "message"),
  [
    ("config.json", None, "config.json cannot be read"),
    ("model.safetensors", None, "pytorch_model.bin"),
    ("model.safetensors", b"nothing", "model.safetensors cannot be read"),
    ("source.spm", b"nothing", "no SentencePiece model"),
    ("vocab.json", b'{"a": 0, "b": 5}', "does not number"),
    ("vocab.json", b'{"a": 0, "b": 1}', "lacks <pad>"),
  ],
)
def test_what_is_no_such_model_is_refused(tmp_path, file, content, message):
  hub = copy("tied", tmp_path / "hub")
  path = tmp_path / "hub" / file
  path.unlink()
  if content is not None:
    path.write_bytes(content)
  with pytest.raises(InputError, match=message):
    import_marian(hub, str(tmp_path / "model"), {})
  assert not (tmp_path / "model").exists()


CASES = pathlib.Path(__file__).parents[3] / "shared/cases/marian-pieces"


@pytest.mark.skipif(not CASES.exists(), reason="needs ../shared")
@pytest.mark.parametrize(
  ("case", "text", "piece"),
  [("uds", "a <mask> a", "<mask>"), ("bytes", "a \u2603", "<0xE2>")],
)
def test_pieces_of_all_kinds_are_kept(tmp_path, case, text, piece):
  import_marian(str(CASES / case), str(tmp_path / "model"), {})
  tokenizer = load_tokenizer(str(tmp_path / "model" / "source.model"))
  ids = tokenizer.encode(text)
  assert piece in tokenizer.pieces(ids)
  assert UNK_ID not in ids


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"d_model": 16.5}, "d_model is 16.5, must be of type int"),
    ({"num_beams": 4.0}, "num_beams is 4.0, must be of type int"),
    ({"encoder_layers": 2**70}, "layers of the encoder"),
    ({"dropout": []}, "dropout is"),
    ({"normalize_before": True}, "normalize_before is True"),
    ({"activation_function": "tanh"}, "activation_function"),
    ({"decoder_ffn_dim": 8}, "differ in ffn_dim"),
    (
      {"encoder_layers": 1},
      "layers of the encoder: 2 stored, 1 in config.json",
    ),
    ({"model_type": "bart"}, "model_type is 'bart'"),
  ],
)
def test_a_model_of_another_kind_is_refused(tmp_path, changes, message):
  hub = copy("tied", tmp_path / "hub")
  path = tmp_path / "hub" / "config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | changes))
  with pytest.raises(InputError, match=message):
    import_marian(hub, str(tmp_path / "model"), {})


def test_a_token_that_is_forbidden_by_its_bias_stays_forbidden(tmp_path):
  pytest.importorskip("safetensors")
  from safetensors.numpy import load_file, save_file

  hub = copy("tied", tmp_path / "hub")
  unknown = json.loads((tmp_path / "hub" / "vocab.json").read_text())["<unk>"]
  path = tmp_path / "hub" / "model.safetensors"
  tensors = load_file(path)
  tensors["final_logits_bias"][0, unknown] = -1e4
  save_file(tensors, path)
  import_marian(hub, str(tmp_path / "model"), {})
  _, description = open_model(str(tmp_path / "model"))
  assert description.params.suppress_unk


def test_what_decides_the_search_can_be_given(tmp_path):
  import_marian(
    copy("tied", tmp_path / "hub"), str(tmp_path / "model"), {"beam_size": 2}
  )
  _, description = open_model(str(tmp_path / "model"))
  params = description.params
  assert params.beam_size == 2
  with pytest.raises(
    InputError, match="num_heads: the model's files or its kind decide"
  ):
    import_marian(
      copy("tied", tmp_path / "again"), str(tmp_path / "m"), {"num_heads": 4}
    )
  assert dataclasses.asdict(params)["norm"] == "post"
