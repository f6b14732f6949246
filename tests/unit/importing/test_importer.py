import numpy as np
import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.text.vocabulary_files import VocabFiles

D, N, F, V = 32, 4, 64, 30
ROOT = "layer_with_weights-0/"
END = "/.ATTRIBUTES/VARIABLE_VALUE"


def variables(heads=True, layers=1):
  """A model of the official version 2, all ones."""
  found = {"optimizer/_iterations": (), "save_counter": ()}
  shapes = {"embedding_softmax_layer/weights": (V, D)}
  for stack, sublayers in (("encoder", 2), ("decoder", 3)):
    for norm in ("gamma", "beta"):
      shapes[f"{stack}_stack/output_normalization/{norm}"] = (D,)
    for layer in range(layers):
      for sublayer in range(sublayers):
        where = f"{stack}_stack/layers/{layer}/{sublayer}"
        for norm in ("gamma", "beta"):
          shapes[f"{where}/layer_norm/{norm}"] = (D,)
        if sublayer == sublayers - 1:
          shapes[f"{where}/layer/filter_dense_layer/kernel"] = (D, F)
          shapes[f"{where}/layer/filter_dense_layer/bias"] = (F,)
          shapes[f"{where}/layer/output_dense_layer/kernel"] = (F, D)
          shapes[f"{where}/layer/output_dense_layer/bias"] = (D,)
          continue
        for kernel in ("query", "key", "value"):
          shape = (D, N, D // N) if heads else (D, D)
          shapes[f"{where}/layer/{kernel}_dense_layer/kernel"] = shape
        shape = (N, D // N, D) if heads else (D, D)
        shapes[f"{where}/layer/output_dense_layer/kernel"] = shape
  found |= {ROOT + name: shape for name, shape in shapes.items()}
  return {
    name + END: np.ones(shape, np.float32) for name, shape in found.items()
  }


@pytest.fixture
def vocabulary(tmp_path):
  path = tmp_path / "vocab"
  entries = ["<pad>", "<EOS>", "_", "\\", "u", ";", *"0123456789", *"abcdefgh"]
  path.write_text("".join(f"'{e}'\n" for e in entries))
  return str(path)


@pytest.fixture
def run(tmp_path, vocabulary):
  def run(tensors, format_name="v2", checkpoint=None, **changes):
    prefix = str(tmp_path / "cp.ckpt")
    tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=list(tensors),
      shape_and_slices=[""] * len(tensors),
      tensors=[tf.constant(t) for t in tensors.values()],
    )
    options = {"param_set": None, "overrides": {}, "target_space_id": None}
    request = ImportRequest(
      format_name,
      checkpoint or prefix,
      VocabFiles.joint(vocabulary),
      **{**options, **changes},
    )
    directory = ModelDirectory(str(tmp_path / "model"))
    said = import_checkpoint(request, directory.path)
    return said, directory

  return run


def test_sizes_are_read_off_the_variables(run):
  said, directory = run(variables(layers=2))
  params = directory.read().params
  assert (params.hidden_size, params.filter_size) == (D, F)
  assert (params.num_hidden_layers, params.num_heads) == (2, N)
  assert (params.vocab_size, params.start_symbol) == (V, "pad_row")
  assert "6 more rows" in said
  assert "of step 1," in said
  assert directory.checkpoint_steps() == [0]


def test_first_versions_take_heads_from_their_parameter_set(run):
  _, directory = run(variables(heads=False))
  params = directory.read().params
  assert (params.num_heads, params.start_symbol) == (4, "zero")


def test_what_cannot_be_read_off_can_be_said(run):
  overrides = {"num_heads": 8, "start_symbol": "pad_row", "beam_size": 7}
  _, directory = run(variables(heads=False), overrides=overrides)
  params = directory.read().params
  assert (params.num_heads, params.start_symbol) == (8, "pad_row")
  assert params.beam_size == 7


def test_a_space_without_a_table_is_refused(run):
  with pytest.raises(InputError, match="--target_space_id=8"):
    run(variables(), target_space_id=8)


def test_versions_of_2019_start_from_a_zero_vector(run):
  """Their kernels have heads, their norms are not yet Keras'."""
  norms = {"gamma": "layer_norm_scale", "beta": "layer_norm_bias"}
  renamed = {}
  for name, value in variables().items():
    for new, old in norms.items():
      name = name.replace(f"/{new}/", f"/{old}/")
    renamed[name] = value
  _, directory = run(renamed)
  params = directory.read().params
  assert (params.num_heads, params.start_symbol) == (N, "zero")


def test_kernels_of_other_heads_are_listed(run):
  tensors = variables()
  name = ROOT + "encoder_stack/layers/0/0/layer/key_dense_layer/kernel" + END
  tensors[name] = tensors[name].reshape(D, 2 * N, D // N // 2)
  with pytest.raises(InputError, match=r"key_dense_layer.*\(32, 8, 4\)"):
    run(tensors)


def test_a_missing_bias_is_all_that_is_listed(run):
  tensors = variables()
  name = ROOT + "encoder_stack/layers/0/1/layer/filter_dense_layer/bias" + END
  del tensors[name]
  with pytest.raises(InputError) as caught:
    run(tensors)
  assert str(caught.value).split("\n")[1:] == [
    "  missing: encoder_stack/layer_0/ffn/network/filter_bias"
  ]


def test_a_vocabulary_of_another_size_is_refused(run):
  tensors = variables()
  name = ROOT + "embedding_softmax_layer/weights" + END
  tensors[name] = np.ones([2000, D], np.float32)
  with pytest.raises(InputError, match="24 entries but .* 2000 rows"):
    run(tensors)


def test_sizes_that_contradict_are_named(run):
  with pytest.raises(InputError) as caught:
    run(variables(), param_set="base", overrides={"num_heads": 2})
  message = str(caught.value)
  assert "hidden_size: 512 given, 32 in the checkpoint" in message
  assert "num_heads: 2 given, 4 in the checkpoint" in message


def test_the_right_format_is_suggested(run):
  with pytest.raises(InputError, match="by its names it is --format=v2"):
    run(variables(), format_name="v1")


def test_a_missing_checkpoint_is_named(run, tmp_path):
  with pytest.raises(InputError, match="no checkpoint .*nowhere"):
    run(variables(), checkpoint=str(tmp_path / "nowhere"))


def test_a_list_of_checkpoints_that_is_empty_is_named(run, tmp_path):
  (tmp_path / "checkpoint").write_text("")
  with pytest.raises(InputError, match="checkpoint names no checkpoint"):
    run(variables(), checkpoint=str(tmp_path))


def test_an_index_file_names_its_checkpoint(run, tmp_path):
  _, directory = run(variables(), checkpoint=str(tmp_path / "cp.ckpt.index"))
  assert directory.exists()


def test_a_trained_model_is_not_overwritten(run):
  run(variables())
  with pytest.raises(InputError, match="trained model already"):
    run(variables())


def with_rows(rows):
  """A model whose table has so many rows; the vocabulary has 24 entries."""
  table = ROOT + "embedding_softmax_layer/weights" + END
  return {**variables(), table: np.ones([rows, D], np.float32)}


@pytest.mark.parametrize(("spare", "said"), [(16, None), (16, 15), (6, 5)])
def test_a_table_of_another_size_is_refused(run, spare, said):
  """A few rows may come of rounding; more must be said."""
  with pytest.raises(InputError, match=f"--spare_rows={spare}"):
    run(with_rows(24 + spare), spare_rows=said)


def test_a_table_smaller_than_the_vocabulary_is_refused(run):
  with pytest.raises(InputError, match="has 24 entries .* 20 rows: the model"):
    run(with_rows(20))


def test_rows_that_a_constant_added_can_be_said(run):
  said, directory = run(with_rows(24 + 2000), spare_rows=2000)
  assert "2000 more rows" in said
  assert directory.read().vocabularies.source.size == 24
