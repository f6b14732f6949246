"""Marian's own files, and Bergamot's: what is written, and read back."""

import json
import struct

import numpy as np
import pytest
from model_variants import SOURCE, TARGET, VARIANTS, make
from random_model import LINES, random_model, train_vocabulary

from official_transformer.decoding.loading import load_model, open_model
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import InputError, RunError
from official_transformer.exporting import marian_export
from official_transformer.exporting.export import ExportRequest, export_model
from official_transformer.exporting.marian_files import read_binary, read_npz
from official_transformer.exporting.marian_model import (
  arrays_of,
  write_binary,
  write_npz,
)
from official_transformer.exporting.numpy_model import NumpyModel
from official_transformer.importing.marian_names import (
  BIAS,
  CONFIG,
  NEVER,
  OWN_PARAMS,
  TABLE,
  check_params,
  check_widths,
)
from official_transformer.importing.marian_native import import_marian_files
from official_transformer.model_params import PARAM_SETS, TransformerParams
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  SentencePieceTokenizer,
)
from official_transformer.text.vocabulary_files import VocabFiles

pytest.importorskip("yaml")
pytestmark = pytest.mark.slow

POST = {"norm": "post"}
# Of models that Marian computes.
CHANGES = {
  "plain": {},
  "biases": {"attention_bias": True, "output_bias": True},
  "gelu": {"activation": "gelu", "suppress_pad": True, "suppress_unk": True},
  "deep": {"num_encoder_layers": 3, "num_decoder_layers": 1},
}
PAIRS = [
  ([int(i) for i in source if i], [int(i) for i in target if i])
  for source, target in zip(SOURCE, TARGET, strict=True)
]


@pytest.mark.parametrize("name", CHANGES)
def test_numpy_computes_the_same_of_what_is_written(name, tmp_path):
  changes = {**VARIANTS["official"], **POST, **CHANGES[name]}
  transformer = make("official", **changes)
  arrays = arrays_of(transformer)
  write_npz(str(tmp_path / "m.npz"), arrays, transformer.params)
  export = NumpyModel.of_marian(*read_npz(str(tmp_path / "m.npz")))
  scorer = Scorer(transformer, None)
  for pair, score in zip(PAIRS, scorer.score_batch(PAIRS), strict=True):
    found = export.token_log_probabilities(*pair)
    np.testing.assert_allclose(found, score.token_log_probabilities, atol=2e-5)


def test_a_binary_holds_the_same_in_eight_bits(tmp_path):
  transformer = make("official", **POST)
  arrays = arrays_of(transformer)
  path = tmp_path / "m.bin"
  write_binary(str(path), arrays, transformer.params)
  config, found = read_binary(str(path))
  assert config["dim-vocabs"] == [24, 24]  # Of 23, rounded up.
  assert found.keys() == arrays.keys()
  np.testing.assert_array_equal(found[TABLE][23:], 0)
  np.testing.assert_array_equal(found[BIAS][:, 23:], NEVER)
  found[TABLE], found[BIAS] = found[TABLE][:23], found[BIAS][:, :23]
  for name, array in arrays.items():
    step = np.abs(array).max() / 127
    is_rounded = name == TABLE or name[-2] == "W"
    bound = step / 2 * 1.001 if is_rounded else 0
    assert np.abs(found[name] - array).max() <= bound, name


def test_a_binary_is_as_marian_maps_it_into_memory(tmp_path):
  """By its version, heads and alignment (marian-dev, common/binary.cpp)."""
  transformer = make("official", **POST)
  path = tmp_path / "m.bin"
  write_binary(str(path), arrays_of(transformer), transformer.params)
  content = path.read_bytes()
  version, number = struct.unpack_from("<QQ", content)
  heads = [
    struct.unpack_from("<QQQQ", content, 16 + 32 * n) for n in range(number)
  ]
  assert version == 1
  assert {kind for _, kind, _, _ in heads} == {0x0404, 0x4101, 0x0101}
  assert all(size % 256 == 0 for *_, size in heads)
  data = sum(size for *_, size in heads)
  assert (len(content) - data) % 256 == 0
  names = content[16 + 32 * number :].split(b"\0")[:number]
  assert [len(name) + 1 for name in names] == [length for length, *_ in heads]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
  return train_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def model(vocabulary, tmp_path_factory):
  directory = str(tmp_path_factory.mktemp("model") / "model")
  return random_model(directory, vocabulary, **POST, output_bias=True)


@pytest.fixture
def exported(model, vocabulary, tmp_path):
  """The directory of an export for Marian."""
  files = VocabFiles.joint(vocabulary)
  request = ExportRequest(str(tmp_path / "export"), "marian")
  (finding,) = export_model(model, files, LINES, request)
  assert finding.startswith("as NumPy computes them from the export")
  return tmp_path / "export"


def same(one, other):
  assert one.params == other.params
  for ours, again in zip(one.weights, other.weights, strict=True):
    np.testing.assert_array_equal(ours.numpy(), again.numpy())


def test_an_export_is_imported_bit_by_bit(exported, model, tmp_path):
  back = str(tmp_path / "back")
  said = import_marian_files(str(exported), None, back, {})
  assert said.startswith("imported")
  same(load_model(*open_model(back)).transformer, model.transformer)
  settings = (exported / "decoder.yml").read_text()
  assert 'vocabs: ["vocab.spm", "vocab.spm"]\n' in settings
  assert "beam-size: 2\n" in settings


def stored(exported):
  with np.load(exported / "model.npz") as arrays:
    return dict(arrays)


def config_of(arrays):
  lines = arrays[CONFIG].tobytes().rstrip(b"\0").decode().splitlines()
  return {
    name: json.loads(value)
    for name, value in (line.split(": ", 1) for line in lines)
  }


def keep(exported, arrays, config):
  text = "".join(f"{n}: {json.dumps(v)}\n" for n, v in config.items())
  content = np.frombuffer(text.encode() + b"\0", np.int8)
  np.savez(exported / "model.npz", **{**arrays, CONFIG: content})


def test_a_model_of_marians_own_is_imported(exported, model, tmp_path):
  """One without what an export notes, and with rows that round it up."""
  arrays = stored(exported)
  config = config_of(arrays)
  del config[OWN_PARAMS]
  arrays[TABLE] = np.pad(arrays[TABLE], [(0, 4), (0, 0)])
  arrays[BIAS] = np.pad(arrays[BIAS], [(0, 0), (0, 4)])
  keep(exported, arrays, config)
  back = str(tmp_path / "back")
  path = str(exported / "model.npz")
  vocabulary = str(exported / "vocab.spm")
  import_marian_files(path, vocabulary, back, {"beam_size": 2})
  found = load_model(*open_model(back)).transformer
  assert found.params.alpha == 1 and found.params.norm == "post"
  for ours, again in zip(model.transformer.weights, found.weights, strict=True):
    np.testing.assert_array_equal(ours.numpy(), again.numpy())


def test_what_is_no_such_model_is_refused(exported, tmp_path):
  arrays = stored(exported)
  config = config_of(arrays)

  def refused(message, arrays=arrays, config=config):
    keep(exported, arrays, config)
    with pytest.raises(InputError, match=message):
      import_marian_files(str(exported), None, str(tmp_path / "back"), {})

  refused(
    "transformer-decoder-autoreg is 'rnn', must be 'self-attention'",
    config={**config, "transformer-decoder-autoreg": "rnn"},
  )
  refused("has no Wemb", {n: a for n, a in arrays.items() if n != TABLE})
  name = "encoder_l1_self_Wq"
  refused(f"it has {name}2", {**arrays, f"{name}2": arrays[name]})
  refused("missing", {n: a for n, a in arrays.items() if n != name})
  refused("shape of", {**arrays, name: arrays[name][1:]})
  refused("trained with 40", {**arrays, TABLE: arrays[TABLE][:40]})
  refused("is damaged", config={**config, OWN_PARAMS: '{"alpha": "x"}'})
  refused("1 numbers that are not finite", {**arrays, name: np.r_[np.nan, 1]})
  refused("holds no real numbers", {**arrays, TABLE: np.array(1)})
  bare = {n: v for n, v in config.items() if n not in (OWN_PARAMS, "dim-emb")}
  refused("is damaged: 'dim-emb'", config=bare)
  whole = (exported / "model.npz").read_bytes()
  for content in (b"PK", b"", whole[:-30], whole[:300] + whole[600:]):
    (exported / "model.npz").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
      import_marian_files(str(exported), None, str(tmp_path / "back"), {})
  (exported / "vocab.spm").unlink()
  refused("pass --vocab_file")


def test_a_vocabulary_of_marians_own_is_refused(exported, tmp_path):
  import sentencepiece

  (tmp_path / "text").write_text("\n".join(LINES), "utf-8")
  sentencepiece.SentencePieceTrainer.train(
    input=str(tmp_path / "text"),
    model_prefix=str(tmp_path / "theirs"),
    vocab_size=60,
    hard_vocab_limit=False,
    **{"bos_id": -1, "eos_id": 0, "unk_id": 1, "pad_id": -1},
  )
  theirs = str(tmp_path / "theirs.model")
  with pytest.raises(InputError, match="--format=marian_hf"):
    import_marian_files(str(exported), theirs, str(tmp_path / "back"), {})


def test_an_export_in_eight_bits_tells_what_rounding_costs(
  model, vocabulary, tmp_path
):
  files = VocabFiles.joint(vocabulary)
  request = ExportRequest(str(tmp_path / "export"), "bergamot")
  finding, *_ = export_model(model, files, LINES, request)
  assert finding.startswith("with weights in 8 bits")
  names = {path.name for path in (tmp_path / "export").iterdir()}
  assert names == {
    "README.md",
    "config.yml",
    "model.intgemm8.bin",
    "vocab.spm",
  }


@pytest.mark.parametrize("export_format", ["marian", "bergamot"])
def test_an_export_that_differs_is_none(
  model, vocabulary, tmp_path, monkeypatch, export_format
):
  """As if weights had changed their places."""

  def exchanged(transformer):
    arrays = arrays_of(transformer)
    query, key = "decoder_l1_context_Wq", "decoder_l1_context_Wv"
    arrays[query], arrays[key] = arrays[key] * 9, arrays[query] * 9
    return arrays

  monkeypatch.setattr(marian_export, "arrays_of", exchanged)
  files = VocabFiles.joint(vocabulary)
  request = ExportRequest(str(tmp_path / "export"), export_format)
  with pytest.raises(RunError, match="does not score as the model does"):
    export_model(model, files, LINES, request)
  assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
  ("changes", "reason"),
  [
    ({"norm": "pre"}, "norm=pre: Marian leaves a norm before"),
    ({"positions": "huggingface"}, "positions=huggingface"),
    ({"share_embeddings": "none"}, "more than one table"),
    ({"start_symbol": "pad_row"}, "start_symbol=pad_row"),
    ({"scale_embeddings": False}, "not scaled"),
    ({"target_space_embedding": True}, "target space"),
    ({"layer_norm_epsilon": 1e-4}, "layer_norm_epsilon=0.0001"),
  ],
)
def test_what_marian_does_not_compute_is_refused(changes, reason):
  params = TransformerParams(**{"vocab_size": 20, **POST, **changes})
  with pytest.raises(InputError, match=f"{reason}.*--param_set=student"):
    check_params(params)


def test_widths_that_bergamot_cannot_multiply_are_refused():
  check_params(PARAM_SETS["student"])
  check_widths(PARAM_SETS["student"])
  sizes = {"hidden_size": 96, "filter_size": 100, "num_heads": 2}
  params = TransformerParams(**{"vocab_size": 20, **POST, **sizes})
  with pytest.raises(InputError, match="hidden_size=96, filter_size=100"):
    check_widths(params)


def test_a_student_and_its_vocabulary_are_marians(vocabulary):
  check_params(PARAM_SETS["student"])
  tokenizer = SentencePieceTokenizer(vocabulary)
  marian_export.check_vocabulary(tokenizer)
  formed = FormedTokenizer(tokenizer, TextForm(lowercase=True))
  with pytest.raises(InputError, match="--lowercase"):
    marian_export.check_vocabulary(formed)
