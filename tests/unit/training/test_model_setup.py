import dataclasses
import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from data_prep.encoding.preparation import prepare
from data_prep.reading.corpora import Corpus, DataSettings
from official_transformer.data.buckets import Batching
from official_transformer.data.data_directory import DataDirectory
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.description import (
  Origin,
)
from official_transformer.model_directory.directory import (
  AVERAGE,
  BEST,
  DATA_INDEX,
  ModelDirectory,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import PARAM_SETS, SMALL, TINY
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import load_vocabularies
from official_transformer.training.model_setup import (
  ModelRequest,
  plan_directory,
)
from official_transformer.training.requested_batching import RequestedBatching


def prepare_directory(directory, request):
  """Plans a directory and writes it at once; returns its description."""
  plan = plan_directory(directory, request)
  plan.carry_out()
  return plan.description


@pytest.fixture(scope="module")
def data_dirs(tmp_path_factory):
  """Two data directories with different vocabularies."""
  root = tmp_path_factory.mktemp("data")
  text = root / "text"
  text.write_text("eins zwei drei vier fünf\n" * 50, encoding="utf-8")
  for name, size in (("one", 40), ("two", 35)):
    prepare(
      {"train": Corpus([str(text)], [str(text)])},
      DataSettings(str(root / name), "subtoken", size),
    )
  with (root / "two" / "vocab.35.subtokens").open("a") as stream:
    stream.write("'more'\n")
  prepare(
    {"train": Corpus([str(text)], [str(text)])},
    DataSettings(
      str(root / "two"), vocab_file=str(root / "two" / "vocab.35.subtokens")
    ),
  )
  return str(root / "one"), str(root / "two")


TINY_REQUEST = RequestedParams("tiny", {})
NOTHING = RequestedParams(None, {})
ORIGIN = Origin("v2", "/old/cp.ckpt", 7)


def asked(data_dir, params=NOTHING, batching=None, **others):
  return ModelRequest(
    params,
    RequestedBatching(**(batching or {})),
    data_dir and DataDirectory(data_dir),
    **others,
  )


def trained(path, data_dir, batching=None):
  """Makes a model directory that looks trained."""
  directory = ModelDirectory(str(path))
  made = prepare_directory(directory, asked(data_dir, TINY_REQUEST, batching))
  os.makedirs(directory.checkpoint_directory(5))
  return directory, made


def resume(directory, data_dir, request=NOTHING, batching=None, vocab=None):
  return prepare_directory(
    directory, asked(data_dir, request, batching, vocab_file=vocab)
  )


def test_the_directory_is_complete_in_itself(tmp_path, data_dirs):
  directory, made = trained(tmp_path, data_dirs[0])
  assert made == directory.read()
  assert made.params.vocab_size == made.vocabularies.source.size > 0
  assert made.params.hidden_size == TINY.hidden_size
  assert made.batching == Batching(1024, 256)
  assert os.path.exists(directory.vocab_files().source)
  assert {"tensorflow", "keras"} <= set(made.versions)


def test_resuming_takes_what_is_stored(tmp_path, data_dirs):
  directory, made = trained(tmp_path, data_dirs[0], {"max_length": 50})
  assert made.batching == Batching(1024, 50)
  assert resume(directory, data_dirs[0]) == made


def test_a_new_model_without_a_set_is_big(tmp_path, data_dirs):
  made = resume(ModelDirectory(str(tmp_path)), data_dirs[0])
  assert made.params.hidden_size == 1024


def test_contradicting_parameters_name_both_values(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  with pytest.raises(InputError) as caught:
    request = RequestedParams(None, {"hidden_size": 64, "relu_dropout": 0.3})
    resume(directory, data_dirs[0], request)
  assert "hidden_size: 64 given, 32 stored" in str(caught.value)
  assert "relu_dropout: 0.3 given, 0.1 stored" in str(caught.value)
  # What was not asked for is not complained of.
  assert "filter_size" not in str(caught.value)
  with pytest.raises(InputError, match="filter_size: 2048 given, 256 stored"):
    resume(directory, data_dirs[0], RequestedParams("base", {}))


def test_how_to_decode_may_change_for_one_run(tmp_path, data_dirs, caplog):
  directory, made = trained(tmp_path, data_dirs[0])
  request = RequestedParams("tiny", {"beam_size": 8, "alpha": 1.0})
  with caplog.at_level("INFO", "absl"):
    again = resume(directory, data_dirs[0], request)
  told = [line.partition(";")[0] for line in caplog.messages]
  assert told == [
    "beam_size=8 is for this run's translations",
    "alpha=1.0 is for this run's translations",
  ]
  assert again.params == dataclasses.replace(
    made.params, beam_size=8, alpha=1.0
  )
  assert directory.read() == made


def test_a_run_goes_on_with_other_flags_and_says_so(
  tmp_path, data_dirs, caplog
):
  directory = ModelDirectory(str(tmp_path))
  began = {"dtype": "bf16", "sampling_alpha": 0.1, "sampling_nbest": 64}
  request = asked(data_dirs[0], TINY_REQUEST, flags=began)
  made = prepare_directory(directory, request)
  assert directory.read().flags == began
  os.makedirs(directory.checkpoint_directory(5))
  prepare_directory(directory, asked(data_dirs[0], flags=began))
  assert not caplog.messages
  left_out = {"dtype": "bf16", "sampling_alpha": None}
  again = prepare_directory(directory, asked(data_dirs[0], flags=left_out))
  (said,) = caplog.messages
  assert said.startswith(
    "this run has no --sampling_alpha; the training began with "
    "--sampling_alpha=0.1 ("
  )
  assert again == made == directory.read()


def test_other_batches_are_refused_with_both_values(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  with pytest.raises(InputError, match="--batch_size=2048 given, 1024 stored"):
    resume(directory, data_dirs[0], batching={"batch_size": 2048})


def test_a_model_that_was_never_trained_binds_nobody(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  shutil.rmtree(directory.join("checkpoints"))
  made = resume(directory, data_dirs[0], RequestedParams("small", {}))
  assert made.params.hidden_size == 256


def test_another_vocabulary_is_refused_with_both(tmp_path, data_dirs):
  directory, made = trained(tmp_path, data_dirs[0])
  (name,) = (n for n in os.listdir(data_dirs[1]) if n.startswith("vocab"))
  other = os.path.join(data_dirs[1], name)
  with pytest.raises(
    InputError, match=f"trained with {made.params.vocab_size} "
  ):
    resume(directory, data_dirs[1], vocab=other)


def test_data_of_another_vocabulary_is_refused(tmp_path, data_dirs):
  directory, _ = trained(tmp_path, data_dirs[0])
  with pytest.raises(InputError, match="tokenized with another vocabulary"):
    resume(directory, data_dirs[1])


def test_a_damaged_description_is_reported(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  with pytest.raises(InputError, match="is no model directory"):
    directory.read()
  (tmp_path / "model.json").write_text("{}")
  with pytest.raises(InputError, match="damaged"):
    directory.read()


def test_half_made_checkpoints_do_not_count(tmp_path):
  directory = ModelDirectory(str(tmp_path))
  for name in ("step-9.incomplete", "step-30", "step-4", "notes"):
    os.makedirs(directory.join("checkpoints", name))
  assert directory.checkpoint_steps() == [4, 30]
  assert directory.latest_checkpoint().endswith("step-30/model")


@pytest.fixture
def imported(tmp_path, data_dirs):
  """A directory that looks imported: a checkpoint of step 0, no batching."""
  directory = ModelDirectory(str(tmp_path / "imported"))
  made = prepare_directory(directory, asked(data_dirs[0], TINY_REQUEST))
  directory.write(
    dataclasses.replace(made, batching=None, origin=ORIGIN),
    load_vocabularies(directory.vocab_files()),
  )
  os.makedirs(directory.checkpoint_directory(0))
  return directory


def test_an_imported_model_is_bound_by_its_first_run(imported, data_dirs):
  resume(imported, data_dirs[0], batching={"batch_size": 4096})
  # No step has been made: another run may choose otherwise, and how to train.
  request = RequestedParams(None, {"learning_rate_warmup_steps": 7})
  first = resume(imported, data_dirs[0], request, {"batch_size": 2048})
  assert first.batching.batch_size == 2048
  assert first.params.learning_rate_warmup_steps == 7
  assert first.origin == ORIGIN
  assert imported.read() == first
  os.makedirs(imported.checkpoint_directory(10))
  with pytest.raises(InputError, match="1024 given, 2048 stored"):
    resume(imported, data_dirs[0], batching={"batch_size": 1024})
  with pytest.raises(InputError, match="warmup_steps: 9 given, 7 stored"):
    resume(
      imported,
      data_dirs[0],
      RequestedParams(None, {"learning_rate_warmup_steps": 9}),
    )


def test_an_imported_model_keeps_its_sizes(imported, data_dirs):
  with pytest.raises(InputError, match="num_heads: 2 given, 4 stored"):
    resume(imported, data_dirs[0], RequestedParams(None, {"num_heads": 2}))


def test_a_plan_writes_nothing(tmp_path, data_dirs):
  directory = ModelDirectory(str(tmp_path / "new"))
  plan = plan_directory(directory, asked(data_dirs[0], TINY_REQUEST))
  assert not os.path.exists(directory.path)
  plan.carry_out()
  assert directory.read() == plan.description


def test_what_is_to_be_removed_binds_nobody(imported, data_dirs):
  os.makedirs(imported.checkpoint_directory(10))
  request = RequestedParams("small", {})
  plan = plan_directory(imported, asked(data_dirs[0], request, clean=True))
  assert plan.description.params.hidden_size == 256
  assert plan.description.origin is None


def test_another_transformers_directory_is_not_trained_in(tmp_path, data_dirs):
  (tmp_path / "model.ckpt-5000.index").write_text("")
  directory = ModelDirectory(str(tmp_path))
  with pytest.raises(InputError, match="import_checkpoint"):
    prepare_directory(directory, asked(data_dirs[0], TINY_REQUEST))
  with pytest.raises(InputError, match="import_checkpoint"):
    directory.read()


def test_several_devices_take_the_sets_tuned_for_them(tmp_path, data_dirs):
  directory = ModelDirectory(str(tmp_path))
  request = RequestedParams("base", {})
  plan = plan_directory(
    directory, asked(data_dirs[0], request, num_gpus=4, num_replicas=4)
  )
  made = plan.description
  assert made.params.learning_rate_warmup_steps == 8000
  assert made.batching.batch_divisor == 4
  # Whoever translates with it on one device names the same set.
  assert request.for_existing_model(made.params, "x") == made.params


@pytest.mark.parametrize("name", PARAM_SETS)
def test_every_set_trains_on_several_devices(tmp_path, data_dirs, name):
  plan = plan_directory(
    ModelDirectory(str(tmp_path)),
    asked(data_dirs[0], RequestedParams(name, {}), num_gpus=2, num_replicas=2),
  )
  assert plan.description.params.hidden_size == PARAM_SETS[name].hidden_size
  assert all(n % 2 == 0 for n in plan.description.batching.sizes)


@pytest.mark.parametrize(
  ("given", "steps"),
  [
    ({"target_batch_tokens": 4096}, 4),
    ({"target_batch_tokens": 4097}, 5),
    ({"target_batch_tokens": 10}, 1),
    ({"target_batch_tokens": 4096, "batch_size": 512}, 8),
    ({"accumulate_steps": 3}, 3),
  ],
)
def test_an_update_takes_as_many_batches_as_the_target_asks_for(
  tmp_path, data_dirs, given, steps
):
  directory, made = trained(tmp_path, data_dirs[0], given)
  assert made.batching.accumulate_steps == steps
  assert resume(directory, data_dirs[0], batching=given) == made
  with pytest.raises(InputError, match="--accumulate_steps=7 given"):
    resume(directory, data_dirs[0], batching={"accumulate_steps": 7})
  wanted = {"target_batch_tokens": 4096 * 9}
  with pytest.raises(InputError, match="--target_batch_tokens=36864 given"):
    resume(directory, data_dirs[0], batching=wanted)


def test_the_data_are_remembered_and_others_refused(tmp_path, data_dirs):
  directory = ModelDirectory(str(tmp_path))
  data = read_prepared_data(data_dirs[0], 1000, with_dev=False)
  plan = plan_directory(directory, asked(data_dirs[0], TINY_REQUEST))
  plan.with_data(data).carry_out()
  os.makedirs(directory.checkpoint_directory(5))
  assert directory.read().data == data.identity()
  length = int(data.train.index.lengths[0])  # All are the same line.
  assert directory.read().lines == TrainedLines(length, 0.0)
  plan = plan_directory(directory, asked(data_dirs[0]))
  assert plan.with_data(data) == plan
  fewer = dataclasses.replace(
    data, train=dataclasses.replace(data.train, source_tokens=7)
  )
  other = dataclasses.replace(
    data, train=dataclasses.replace(data.train, fingerprint=7)
  )
  more = dataclasses.replace(
    data,
    train=dataclasses.replace(data.train, source_tokens=10**6),
    is_whole=False,
  )
  for others in (other, more):
    with pytest.raises(InputError, match="holds 50 pairs"):
      plan.with_data(others)
  with pytest.raises(InputError) as caught:
    plan.with_data(fewer)
  message = str(caught.value)
  tokens = data.train.target_tokens
  assert f"holds 50 pairs of 7 and {tokens} tokens in" in message
  assert f"trained on 50 pairs of {data.train.source_tokens} and" in message
  assert f"--init_checkpoint={directory.path}" in message
  # What is known not to be whole cannot be compared.
  assert plan.with_data(dataclasses.replace(fewer, is_whole=False)) == plan


def test_a_model_from_before_data_were_remembered_is_trained(
  tmp_path, data_dirs
):
  directory, made = trained(tmp_path, data_dirs[0])
  assert made.data is None
  data = read_prepared_data(data_dirs[0], 1000, with_dev=False)
  plan = plan_directory(directory, asked(data_dirs[0]))
  assert plan.with_data(data) == plan


def weights(params):
  """Returns as many of a model's weights as tell its sizes."""
  layers = range(params.num_hidden_layers)
  root = "weights/transformer"
  return {
    f"{root}/embedding/weights": np.zeros(
      [params.vocab_size, params.hidden_size], np.float32
    ),
    **{
      f"{root}/decoder_stack/layer_{n}/ffn/network/filter_bias": np.zeros(
        [params.filter_size], np.float32
      )
      for n in layers
    },
  }


@pytest.fixture
def source(tmp_path, data_dirs):
  """A model with a checkpoint of weights and more, and one that was best."""
  directory, made = trained(tmp_path / "source", data_dirs[0])
  tensors = {**weights(made.params), "optimizer/a": [2.0]}
  write_checkpoint(directory, 5, tensors)
  write_checkpoint(directory, 3, tensors, BEST)
  return directory


@pytest.mark.parametrize(("before", "after"), [(99, 99), (3, None)])
@pytest.mark.parametrize("counted", [True, False])
def test_a_new_model_keeps_what_its_weights_know_of_long_lines(
  tmp_path, source, data_dirs, before, after, counted
):
  """And whether they were trained on paragraphs, if its data do not tell."""
  described = dataclasses.replace(source.read(), lines=TrainedLines(before, 1))
  source.write(described, load_vocabularies(source.vocab_files()))
  target = ModelDirectory(str(tmp_path / "target"))
  data = read_prepared_data(data_dirs[0], 1000, with_dev=False)
  if not counted:
    data = dataclasses.replace(data, several_sentences=None)
  plan = plan_from(target, source.path, data_dirs[0]).with_data(data)
  length = int(data.train.index.lengths[0])
  share = 0.0 if counted else 1.0
  assert plan.description.lines == TrainedLines(after or length, share)
  assert plan.description.splits_sentences == counted


def test_nothing_is_suppressed_where_nothing_is_unknown(
  tmp_path, data_dirs, caplog
):
  caplog.set_level("INFO", logger="absl")
  directory = ModelDirectory(str(tmp_path / "model"))
  overrides = {**TINY_REQUEST.overrides, "suppress_unk": True}
  asks = dataclasses.replace(TINY_REQUEST, overrides=overrides)
  plan = plan_directory(directory, asked(data_dirs[0], asks))
  assert not plan.description.params.suppress_unk
  assert "can spell all text" in caplog.text


def test_of_an_earlier_model_the_index_of_its_data_tells(tmp_path, data_dirs):
  directory, made = trained(tmp_path, data_dirs[0])
  assert directory.describe().lines is None
  path = directory.join(DATA_INDEX)
  data = read_prepared_data(data_dirs[0], 1000, False, cache_file=path)
  data.remember()
  length = int(data.train.index.lengths[0])
  assert directory.read().lines is None
  assert directory.describe().lines == TrainedLines(length)
  # Another model's weights had other data before.
  fine_tuned = dataclasses.replace(
    made, origin=Origin("official_transformer", "/elsewhere", 7)
  )
  directory.write(fine_tuned, load_vocabularies(directory.vocab_files()))
  assert directory.describe().lines is None
  directory.write(made, load_vocabularies(directory.vocab_files()))
  pathlib.Path(path).write_bytes(b"half of it")
  assert directory.describe().lines is None


def plan_from(target, path, data_dir, request=NOTHING):
  return plan_directory(
    target, asked(data_dir, request, init_checkpoint=str(path))
  )


@pytest.mark.parametrize(
  ("path", "step"), [("", 5), ("checkpoints/step-5", 5), ("best/step-3/", 3)]
)
def test_a_new_model_takes_anothers_parameters_and_weights(
  tmp_path, source, data_dirs, path, step
):
  target = ModelDirectory(str(tmp_path / "target"))
  plan = plan_from(
    target,
    os.path.join(source.path, path),
    data_dirs[0],
    RequestedParams(None, {"learning_rate": 0.5}),
  )
  assert not os.path.exists(target.path)
  plan.carry_out()
  made = target.read()
  assert made.params == dataclasses.replace(
    source.read().params, learning_rate=0.5
  )
  assert made.origin.step == step
  assert made.batching.batch_size == 1024
  reader = tf.train.load_checkpoint(target.latest_checkpoint())
  assert set(reader.get_variable_to_shape_map()) == {
    *weights(made.params), "step",
  }  # fmt: skip
  assert reader.get_tensor("step") == 0


def test_a_set_says_how_a_new_model_is_trained(tmp_path, source, data_dirs):
  """And the same command goes on with it."""
  stored = source.read()
  other = dataclasses.replace(
    stored.params, learning_rate=0.25, relu_dropout=0.4, beam_size=7
  )
  source.write(
    dataclasses.replace(stored, params=other),
    load_vocabularies(source.vocab_files()),
  )
  target = ModelDirectory(str(tmp_path / "target"))
  request = RequestedParams("tiny", {"label_smoothing": 0.2})
  plan_from(target, source.path, data_dirs[0], request).carry_out()
  made = target.read().params
  assert (made.learning_rate, made.relu_dropout) == (2.0, 0.1)
  assert (made.label_smoothing, made.beam_size) == (0.2, 7)
  os.makedirs(target.checkpoint_directory(2))
  plan = plan_from(target, source.path, data_dirs[0], request)
  assert not plan.changes
  assert plan.description.params == made
  # Without a set, it is trained as the other was.
  second = ModelDirectory(str(tmp_path / "second"))
  plan_from(second, source.path, data_dirs[0]).carry_out()
  assert second.read().params == other
  with pytest.raises(InputError, match="hidden_size: 256 given, 32 stored"):
    plan_from(
      ModelDirectory(str(tmp_path / "third")),
      *(source.path, data_dirs[0], RequestedParams("small", {})),
    )
  assert SMALL.hidden_size == 256


@pytest.mark.parametrize(
  "place", ["checkpoints/mine", "best/mine", "average/mine", "average"]
)
def test_a_model_may_lie_in_a_folder_of_any_name(
  tmp_path, source, data_dirs, place
):
  moved = tmp_path / "models" / place
  shutil.copytree(source.path, moved)
  target = ModelDirectory(str(tmp_path / "target"))
  plan_from(target, moved, data_dirs[0]).carry_out()
  assert target.read().origin.checkpoint == str(moved)
  assert target.read().origin.step == 5


def test_a_strangers_model_writes_nothing_outside(tmp_path, source, data_dirs):
  path = os.path.join(source.path, "model.json")
  with open(path, encoding="utf-8") as stream:
    content = json.load(stream)
  shutil.copyfile(source.vocab_files().source, tmp_path / "outside")
  content["vocabulary"]["file"] = "../outside"
  with open(path, "w", encoding="utf-8") as stream:
    json.dump(content, stream)
  before = sorted(os.listdir(tmp_path))
  with pytest.raises(InputError, match="is no plain file name"):
    plan_from(
      ModelDirectory(str(tmp_path / "a" / "target")), source.path, data_dirs[0]
    )
  assert sorted(os.listdir(tmp_path)) == before


def test_a_model_of_other_sizes_than_its_weights_is_refused(
  tmp_path, source, data_dirs
):
  stored = source.read()
  vast = dataclasses.replace(stored.params, hidden_size=2**20)
  source.write(
    dataclasses.replace(stored, params=vast),
    load_vocabularies(source.vocab_files()),
  )
  with pytest.raises(InputError, match="does not fit this model: rows and col"):
    plan_from(
      ModelDirectory(str(tmp_path / "target")), source.path, data_dirs[0]
    )


def test_first_weights_are_the_first(tmp_path, source, data_dirs, caplog):
  target = ModelDirectory(str(tmp_path / "target"))
  plan_from(target, source.path, data_dirs[0]).carry_out()
  os.makedirs(target.checkpoint_directory(2))
  with caplog.at_level("INFO", "absl"):
    assert not plan_from(target, source.path, data_dirs[0]).changes
  assert "goes on from its own newest checkpoint" in caplog.text
  with pytest.raises(InputError, match="but the model in .* started from"):
    plan_from(target, source.path + "/best/step-3", data_dirs[0])
  with pytest.raises(InputError, match="started from none"):
    plan_from(source, target.path, data_dirs[0])
  # What it started from may be gone: the same command still goes on.
  shutil.rmtree(source.path)
  assert not plan_from(target, source.path, data_dirs[0]).changes


def test_a_damaged_source_is_noticed_before_anything_is_written(
  tmp_path, source, data_dirs, caplog
):
  target = ModelDirectory(str(tmp_path / "target"))
  write_checkpoint(source, 7, weights(source.read().params))
  os.truncate(source.checkpoint_prefix(7) + ".data-00000-of-00001", 1)
  assert plan_from(target, source.path, data_dirs[0]).initial == (
    source.checkpoint_prefix(5)
  )
  assert "step-7/model is missing or damaged" in caplog.text
  with pytest.raises(InputError, match="step-7/model is missing or damaged"):
    plan_from(target, source.path + "/checkpoints/step-7", data_dirs[0])


def test_a_model_may_be_called_best(tmp_path, source, data_dirs):
  target = ModelDirectory(str(tmp_path / "target"))
  named = str(tmp_path / "best")
  shutil.copytree(source.path, named)
  write_checkpoint(
    ModelDirectory(named), 5, weights(source.read().params), AVERAGE
  )
  assert plan_from(target, f"{named}/average", data_dirs[0]).initial == (
    ModelDirectory(named).checkpoint_prefix(5, AVERAGE)
  )


def test_a_model_is_no_source_of_itself(source, data_dirs):
  with pytest.raises(InputError, match="is in --model_dir"):
    plan_directory(
      source, asked(data_dirs[0], clean=True, init_checkpoint=source.path)
    )


@pytest.mark.parametrize(
  ("path", "complaint"),
  [
    ("nowhere", "is no model directory"),
    ("source/checkpoints/step-4", "no such checkpoint; .* has step-5"),
    ("source/best/step-5", "no such checkpoint; .* has step-3"),
    ("source/checkpoints/step-5.damaged", "no such checkpoint"),
  ],
)
def test_what_holds_no_weights_is_refused(
  tmp_path, source, data_dirs, path, complaint
):
  target = ModelDirectory(str(tmp_path / "target"))
  with pytest.raises(InputError, match=complaint):
    plan_from(target, tmp_path / path, data_dirs[0])


def test_other_weights_of_the_same_vocabulary_only(tmp_path, source, data_dirs):
  target = ModelDirectory(str(tmp_path / "target"))
  with pytest.raises(InputError, match="tokenized with another vocabulary"):
    plan_from(target, source.path, data_dirs[1])


def test_the_form_of_the_text_is_the_models_for_ever(tmp_path, data_dirs):
  text = tmp_path / "text"
  text.write_text("Eins zwei\n" * 50, encoding="utf-8")
  corpus = Corpus([str(text)], [str(text)])
  vocab_file = os.path.join(data_dirs[0], "vocab.40.subtokens")
  form = TextForm(lowercase=True)
  data_dir = str(tmp_path / "data")
  prepare(
    {"train": corpus},
    DataSettings(data_dir, vocab_file=vocab_file, form=form),
  )
  directory, made = trained(tmp_path / "model", data_dir)
  assert made.form == form == directory.read().form
  assert resume(directory, data_dir).form == form
  with pytest.raises(InputError, match="in another form.*lowercase"):
    resume(directory, data_dirs[0])
