"""A Tensor2Tensor checkpoint, against a forward pass in NumPy.

Tensor2Tensor no longer runs; names, shapes and arithmetic are those of its
source (`models/transformer.py`, `layers/modalities.py`,
`layers/common_attention.py`, version 1.15, and 1.4 for the fused kernels).
"""

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.checkpoint_files import (
  WEIGHTS,
  restore_variables,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.text.tokenizer import load_tokenizer
from official_transformer.text.vocabulary_files import VocabFiles

V, D, F, N, LAYERS, SHARDS = 37, 16, 24, 4, 2, 16
ENTRIES = 33  # The table has more rows than the vocabulary.
SOURCE = np.array([[5, 9, 13, 1, 0, 0], [7, 3, 22, 30, 11, 1]])
TARGET = np.array([[4, 6, 1, 0, 0], [8, 2, 29, 17, 1]])
BODY = "transformer/body/"
SPACE = 8


def make_variables(seed=0, source_rows=None):
  """Returns a checkpoint's variables, with a table of the source's if asked."""
  rng = np.random.default_rng(seed)

  def draw(*shape):
    return rng.normal(scale=0.3, size=shape).astype(np.float32)

  variables = {"global_step": np.int64(250000)}
  for rows in filter(None, (V, source_rows)):
    base, extra = divmod(rows, SHARDS)
    for shard in range(SHARDS):
      name = f"transformer/symbol_modality_{rows}_{D}/shared/weights_{shard}"
      variables[name] = draw(base + (shard < extra), D)
  variables[BODY + "target_space_embedding/kernel"] = draw(32, D)

  def norm(where):
    name = f"{BODY}{where}/layer_prepostprocess/layer_norm/layer_norm_"
    variables[name + "scale"] = 1 + draw(D)
    variables[name + "bias"] = draw(D)

  def attention(where):
    for kernel in ("q", "k", "v", "output_transform"):
      name = f"{BODY}{where}/multihead_attention/{kernel}/kernel"
      variables[name] = draw(D, D)
    norm(where)

  for stack in ("encoder", "decoder"):
    for layer in range(LAYERS):
      where = f"{stack}/layer_{layer}"
      attention(f"{where}/self_attention")
      if stack == "decoder":
        attention(f"{where}/encdec_attention")
      ffn = f"{BODY}{where}/ffn/"
      variables[ffn + "conv1/kernel"] = draw(D, F)
      variables[ffn + "conv1/bias"] = draw(F)
      variables[ffn + "conv2/kernel"] = draw(F, D)
      variables[ffn + "conv2/bias"] = draw(D)
      norm(f"{where}/ffn")
    norm(stack)
  return variables


class Reference:
  """Tensor2Tensor's forward pass."""

  def __init__(self, variables, source_rows=V):
    self.variables = variables
    self.source_table, self.table = (
      np.concatenate(
        [
          variables[
            f"transformer/symbol_modality_{rows}_{D}/shared/weights_{n}"
          ]
          for n in range(SHARDS)
        ]
      ).astype(np.float64)
      for rows in (source_rows, V)
    )

  def get(self, name):
    return self.variables[BODY + name].astype(np.float64)

  def embed(self, ids, table):
    return table[ids] * D**0.5 * (ids != 0)[..., None]

  def norm(self, x, where):
    name = f"{where}/layer_prepostprocess/layer_norm/layer_norm_"
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + 1e-6)
    return x * self.get(name + "scale") + self.get(name + "bias")

  def attend(self, x, memory, bias, where):
    def project(y, kernel):
      y = y @ self.get(f"{where}/multihead_attention/{kernel}/kernel")
      return y.reshape(*y.shape[:2], N, D // N).transpose(0, 2, 1, 3)

    q, k, v = project(x, "q"), project(memory, "k"), project(memory, "v")
    logits = (q * (D // N) ** -0.5) @ k.transpose(0, 1, 3, 2) + bias
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    return mixed @ self.get(
      f"{where}/multihead_attention/output_transform/kernel"
    )

  def feed_forward(self, x, where):
    inner = x @ self.get(f"{where}/conv1/kernel") + self.get(
      f"{where}/conv1/bias"
    )
    return np.maximum(inner, 0) @ self.get(f"{where}/conv2/kernel") + self.get(
      f"{where}/conv2/bias"
    )

  def logits(self, source, target):
    bias = -1e9 * (source == 0)[:, None, None, :]
    x = (
      self.embed(source, self.source_table)
      + self.get("target_space_embedding/kernel")[SPACE]
    )
    x = x + timing(source.shape[1])
    for layer in range(LAYERS):
      where = f"encoder/layer_{layer}/self_attention"
      normed = self.norm(x, where)
      x = x + self.attend(normed, normed, bias, where)
      where = f"encoder/layer_{layer}/ffn"
      x = x + self.feed_forward(self.norm(x, where), where)
    memory = self.norm(x, "encoder")
    length = target.shape[1]
    x = self.embed(target, self.table)
    x = np.pad(x, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    x = x + timing(length)
    causal = -1e9 * np.triu(np.ones([length, length]), 1)
    for layer in range(LAYERS):
      where = f"decoder/layer_{layer}/self_attention"
      normed = self.norm(x, where)
      x = x + self.attend(normed, normed, causal, where)
      where = f"decoder/layer_{layer}/encdec_attention"
      x = x + self.attend(self.norm(x, where), memory, bias, where)
      where = f"decoder/layer_{layer}/ffn"
      x = x + self.feed_forward(self.norm(x, where), where)
    return self.norm(x, "decoder") @ self.table.T


def timing(length):
  timescales = D // 2
  increment = np.log(1e4) / (timescales - 1)
  scaled = np.arange(length)[:, None] * np.exp(
    -increment * np.arange(timescales)
  )
  return np.concatenate([np.sin(scaled), np.cos(scaled)], axis=1)


@pytest.fixture
def vocabulary(tmp_path):
  """As Tensor2Tensor writes it: the reserved two end in `_` too."""
  entries = ["<pad>_", "<EOS>_", "the_", "h", "e", "_"]
  entries += ["\\", "u", ";", *"0123456789"]
  entries += list("abcdfgijklmnopqrst")
  path = tmp_path / "vocab.translate_ende_wmt32k"
  path.write_text("".join(f"'{e}'\n" for e in entries[:ENTRIES]))
  return path


def save(variables, directory):
  directory.mkdir(exist_ok=True)
  prefix = str(directory / "model.ckpt-250000")
  tf.raw_ops.SaveV2(
    prefix=prefix,
    tensor_names=list(variables),
    shape_and_slices=[""] * len(variables),
    tensors=[tf.constant(v) for v in variables.values()],
  )
  return prefix


def run_import(prefix, vocabulary, model_dir, space=SPACE, **overrides):
  files = (
    vocabulary
    if isinstance(vocabulary, VocabFiles)
    else VocabFiles.joint(str(vocabulary))
  )
  overrides = {"num_heads": N, **overrides}
  request = ImportRequest("t2t", prefix, files, None, overrides, space)
  return import_checkpoint(request, str(model_dir))


def imported_logits(model_dir):
  model = ModelDirectory(str(model_dir))
  transformer = build_transformer(model.read().params)
  restore_variables(model.latest_checkpoint(), WEIGHTS, transformer.weights)
  return transformer([SOURCE, TARGET]).numpy()


def assert_equal_to_reference(variables, model_dir, source_rows=V):
  expected = Reference(variables, source_rows).logits(SOURCE, TARGET)
  difference = np.abs(imported_logits(model_dir) - expected).max()
  assert difference <= 1e-5 * np.abs(expected).max()


def test_logits_equal_a_forward_pass_in_numpy(tmp_path, vocabulary):
  variables = make_variables()
  said = run_import(save(variables, tmp_path), vocabulary, tmp_path / "model")
  assert "step 250000" in said
  assert f"{V - ENTRIES} more rows" in said
  assert_equal_to_reference(variables, tmp_path / "model")


@pytest.mark.parametrize("source_rows", [34, 80])
def test_each_side_may_have_a_table(tmp_path, vocabulary, source_rows):
  """As where the problem's vocabularies differ, and names their sizes."""
  lines = vocabulary.read_text().splitlines(keepends=True)
  more = [f"'x{n}'\n" for n in range(60)]
  own = tmp_path / "vocab.source"
  own.write_text("".join([*lines, *more][: source_rows - 3]))
  variables = make_variables(source_rows=source_rows)
  prefix = save(variables, tmp_path)
  with pytest.raises(InputError, match="2 embedding tables.*other vocabular"):
    run_import(prefix, vocabulary, tmp_path / "model")
  files = VocabFiles(str(own), str(vocabulary))
  run_import(prefix, files, tmp_path / "model")
  assert_equal_to_reference(variables, tmp_path / "model", source_rows)
  described = ModelDirectory(str(tmp_path / "model")).read()
  assert described.vocabularies.sizes == (source_rows - 3, ENTRIES)
  one_table = save(make_variables(), tmp_path / "other")
  with pytest.raises(InputError, match="1 embedding table, of 37 rows"):
    run_import(one_table, files, tmp_path / "none")


def test_the_vocabulary_keeps_its_ids(vocabulary):
  tokenizer = load_tokenizer(str(vocabulary))
  assert tokenizer.vocab_size == ENTRIES
  assert tokenizer.encode("the", add_eos=True) == [2, 1]
  assert tokenizer.decode([2, V - 1]) == "the"


def test_kernels_of_three_dimensions(tmp_path, vocabulary):
  """`attention_variables_3d`: heads need not be named."""
  variables = make_variables()
  reshaped = {}
  for name, value in variables.items():
    if "multihead_attention" in name:
      name = name.removesuffix("/kernel")
      if name.endswith("output_transform"):
        name = name.removesuffix("utput_transform")
        value = value.reshape(N, D // N, D)
      else:
        value = value.reshape(D, N, D // N)
    reshaped[name] = value
  prefix = save(reshaped, tmp_path)
  request = ImportRequest(
    "t2t", prefix, VocabFiles.joint(str(vocabulary)), None, {}, SPACE
  )
  said = import_checkpoint(request, str(tmp_path / "model"))
  assert f"{N} heads" in said
  assert_equal_to_reference(variables, tmp_path / "model")


def test_fused_kernels(tmp_path, vocabulary):
  """The first versions project query, key and value with one kernel."""
  variables = make_variables()
  fused = {n: v for n, v in variables.items() if "multihead" not in n}
  for name in variables:
    if not name.endswith("multihead_attention/q/kernel"):
      continue
    where = name.removesuffix("q/kernel")
    q, k, v = (variables[f"{where}{n}/kernel"] for n in "qkv")
    if "encdec" in where:
      fused[where + "q_transform/kernel"] = q
      fused[where + "kv_transform/kernel"] = np.concatenate([k, v], axis=1)
    else:
      fused[where + "qkv_transform/kernel"] = np.concatenate([q, k, v], axis=1)[
        None
      ]  # A convolution of width 1.
    name = where + "output_transform/kernel"
    fused[name] = variables[name]
  run_import(save(fused, tmp_path), vocabulary, tmp_path / "model")
  assert_equal_to_reference(variables, tmp_path / "model")


def test_the_target_space_is_asked_for(tmp_path, vocabulary):
  prefix = save(make_variables(), tmp_path)
  with pytest.raises(InputError, match="--target_space_id"):
    run_import(prefix, vocabulary, tmp_path / "model", space=None)
  assert not (tmp_path / "model").exists()


def test_all_that_does_not_fit_is_listed(tmp_path, vocabulary):
  variables = make_variables()
  del variables[BODY + "decoder/layer_1/ffn/conv2/bias"]
  short = BODY + "encoder/layer_0/self_attention/multihead_attention/k/kernel"
  variables[short] = variables[short][:, :-1]
  with pytest.raises(InputError) as caught:
    run_import(save(variables, tmp_path), vocabulary, tmp_path / "model")
  message = str(caught.value)
  assert "missing: decoder_stack/layer_1/ffn/network/output_bias" in message
  assert f"stored {short} (16, 15)" in message


def test_unknown_variables_are_listed(tmp_path, vocabulary):
  variables = make_variables()
  variables[BODY + "encoder/layer_0/moe/gate"] = np.zeros(3, np.float32)
  variables["transformer/other"] = np.zeros(3, np.float32)
  # What an optimizer keeps is no weight.
  variables["training/" + BODY + "x/Adam_1"] = np.zeros(3, np.float32)
  with pytest.raises(InputError) as caught:
    run_import(save(variables, tmp_path), vocabulary, tmp_path / "model")
  message = str(caught.value)
  assert "layer_0/moe/gate" in message
  assert "transformer/other" in message
  assert "Adam" not in message


def test_a_missing_shard_is_noticed(tmp_path, vocabulary):
  variables = make_variables()
  del variables[f"transformer/symbol_modality_{V}_{D}/shared/weights_9"]
  with pytest.raises(InputError, match="weights_10"):
    run_import(save(variables, tmp_path), vocabulary, tmp_path / "model")


def test_a_larger_vocabulary_is_refused(tmp_path, vocabulary):
  with open(vocabulary, "a", encoding="utf-8") as stream:
    stream.writelines(f"'{c}'\n" for c in "ABCDEFGHIJ")
  prefix = save(make_variables(), tmp_path)
  with pytest.raises(InputError, match="43 entries but .* 37 rows"):
    run_import(prefix, vocabulary, tmp_path / "model")
