"""A model whose source and target have a vocabulary each, end to end."""

import json
import shutil

import command_line
import numpy as np
import pytest
from command_line import BLEU, MAIN, PREPARE, fail, succeed
from conftest import MODEL
from shared_files import make_once

from official_transformer.model_directory.directory import ModelDirectory

pytestmark = pytest.mark.slow

SOURCE, TARGET = "vocab.source.300.model", "vocab.target.400.model"


def text_flags(text):
  return (
    *(f"--train_source={text}/train.en", f"--train_target={text}/train.de"),
    *(f"--dev_source={text}/dev.en", f"--dev_target={text}/dev.de"),
  )


@pytest.fixture(scope="module")
def data(tmp_path_factory, demo_text):
  def make(directory):
    succeed(
      *(PREPARE, *text_flags(demo_text), f"--data_dir={directory}"),
      *("--source_vocab_size=300", "--target_vocab_size=400", "--shards=2"),
    )

  return make_once(tmp_path_factory, "separate_data", make)


@pytest.fixture(scope="module")
def model(tmp_path_factory, data):
  """Trained for 100 steps, and for 100 more."""

  def make(directory):
    for steps in (100, 200):
      succeed(
        *(MAIN, "--mode=train", f"--data_dir={data}"),
        *(f"--model_dir={directory}", f"--train_steps={steps}", "--seed=1"),
        *(MODEL if steps == 100 else ()),
      )

  return make_once(tmp_path_factory, "separate_model", make)


def test_the_directories_have_both(data, model):
  stored = ModelDirectory(str(model)).read()
  assert stored.params.source_vocab_size == stored.vocabularies.source.size
  assert stored.params.vocab_size == stored.vocabularies.target.size
  assert stored.params.source_vocab_size < stored.params.vocab_size
  for directory in (data, model):
    for name in (SOURCE, TARGET):
      assert (directory / name).exists()
  content = json.loads((data / "data.json").read_text())
  assert content["vocabulary"]["source"]["file"] == SOURCE


def test_it_translates_is_measured_and_scores(model, demo_text, tmp_path):
  translated = tmp_path / "out"
  common = (f"--model_dir={model}", "--extra_decode_length=5")
  predict = (MAIN, "--mode=predict", *common, f"--file={demo_text}/test.en")
  succeed(*predict, f"--file_out={translated}")
  lines = translated.read_text("utf-8").splitlines()
  assert len(lines) == 20
  pytest.importorskip("ctranslate2")
  expected = scores_of(predict)
  found = scores_of((*predict, "--engine=ctranslate2"))
  assert sum(np.isclose(found, expected, atol=1e-3)) >= 15  # Of 20.
  succeed(
    *(MAIN, "--mode=eval", *common, f"--bleu_source={demo_text}/test.en"),
    f"--bleu_ref={demo_text}/test.de",
  )
  found = succeed(*predict, "--output_format=jsonl").stdout.splitlines()
  scored = succeed(
    *(MAIN, "--mode=score", f"--model_dir={model}"),
    *(f"--file={demo_text}/test.en", f"--reference_file={translated}"),
  ).stdout.splitlines()
  compared = 0
  for line, score in zip(found, scored, strict=True):
    one, normalized = json.loads(line), float(score.split("\t")[2])
    # Detokenized and cut again, a line may have other tokens.
    if "unfinished" not in one["flags"] and score.split("\t")[1] == str(
      len(one["tokens"]) + 1
    ):
      assert normalized == pytest.approx(one["score"], abs=2e-4)
      compared += 1
  assert compared
  succeed(
    *(BLEU, f"--translation={translated}"),
    f"--reference={demo_text}/test.de",
  )


@pytest.mark.usefixtures("read_back_here")
@pytest.mark.parametrize("kind", ["saved_model", "ctranslate2"])
def test_it_is_exported(model, data, tmp_path, kind):
  """Each export is verified with the development data."""
  if kind == "ctranslate2":
    pytest.importorskip("ctranslate2")
  path = tmp_path / "out"
  said = succeed(
    *(MAIN, "--mode=export", f"--model_dir={model}", f"--export_dir={path}"),
    *(f"--export_format={kind}", f"--data_dir={data}"),
    "--extra_decode_length=5",
  ).stdout
  assert "40 sentences" in said
  names = {p.name for p in path.rglob("*")}
  assert {SOURCE, TARGET} <= names
  readme = (path / "README.md").read_text("utf-8")
  assert SOURCE in readme and TARGET in readme


def test_what_does_not_fit_is_refused(model, data, demo_data, demo_text):
  train = (MAIN, "--mode=train", f"--model_dir={model}", "--train_steps=209")
  said = fail(*train, f"--data_dir={demo_data}")
  assert "tokenized with another vocabulary" in said
  assert f"--target_vocab_file={model}/{TARGET}" in said
  said = fail(*train, f"--data_dir={data}", f"--vocab_file={data}/{SOURCE}")
  assert "for the target" in said
  prepare = (PREPARE, *text_flags(demo_text), "--data_dir=none")
  assert "needs --target_vocab_size, --target_vocab_type or" in fail(
    *prepare, "--source_vocab_size=300"
  )
  assert "leave out the one or the other" in fail(
    *prepare, "--source_vocab_size=300", "--vocab_size=300"
  )
  assert "is a vocabulary that exists" in fail(
    *prepare,
    *("--source_vocab_size=300", f"--source_vocab_file={data}/{SOURCE}"),
    "--target_vocab_size=300",
  )


def scores_of(predict):
  """Translates; returns the score of each line's translation."""
  lines = succeed(*predict, "--output_format=jsonl").stdout.splitlines()
  return [json.loads(line)["score"] for line in lines]


def test_words_of_one_side_beside_characters_of_the_other(demo_text, tmp_path):
  """From the text to a translation, by both engines."""
  prepare = (
    *(PREPARE, *text_flags(demo_text), f"--data_dir={tmp_path}/data"),
    *("--source_vocab_type=char", "--target_vocab_type=word"),
  )
  assert "needs --target_language" in fail(*prepare)
  said = succeed(*prepare, "--target_language=de", "--min_frequency=3").stderr
  assert "seen fewer than 3 times" in said
  words = (tmp_path / "data" / "vocab.target.words").read_text().splitlines()
  assert words[:4] == ["#words moses de", "<pad>", "</s>", "<unk>"]
  assert "." in words and not any(w.endswith(".") for w in words if len(w) > 3)
  # CTranslate2 ends those hypotheses alone that are among the best, ours ends
  # twice as many: a model has to learn a little until they find the same.
  succeed(
    *(MAIN, "--mode=train", f"--data_dir={tmp_path}/data", "--seed=1"),
    *(f"--model_dir={tmp_path}/model", "--train_steps=60", *MODEL),
  )
  pytest.importorskip("tensorflow_text")
  refused = fail(  # Before it trains.
    *(MAIN, "--mode=train", f"--data_dir={tmp_path}/data", *MODEL),
    *(f"--model_dir={tmp_path}/new", f"--export_dir={tmp_path}/out"),
  )
  assert "Moses" in refused and not (tmp_path / "new").exists()
  predict = (
    *(MAIN, "--mode=predict", f"--model_dir={tmp_path}/model"),
    *(f"--file={demo_text}/test.en", "--extra_decode_length=2"),
  )
  expected = scores_of(predict)
  assert len(expected) == 20
  pytest.importorskip("ctranslate2")
  found = scores_of((*predict, "--engine=ctranslate2"))
  assert sum(np.isclose(found, expected, atol=1e-3)) >= 15  # Of 20.
  for kind, said in (("saved_model", "--noexport_text"), ("huggingface", "")):
    refused = fail(
      *(MAIN, "--mode=export", f"--model_dir={tmp_path}/model"),
      *(f"--export_dir={tmp_path}/out", f"--export_format={kind}"),
      f"--data_dir={tmp_path}/data",
    )
    assert said in refused and not (tmp_path / "out").exists()


def test_other_data_are_prepared_with_its_vocabularies(
  model, demo_text, tmp_path
):
  shutil.copy(model / TARGET, tmp_path / SOURCE)
  prepare = (PREPARE, *text_flags(demo_text), f"--data_dir={tmp_path}/data")
  said = fail(
    *prepare,
    f"--source_vocab_file={model}/{SOURCE}",
    f"--target_vocab_file={tmp_path}/{SOURCE}",
  )
  assert f"both named {SOURCE}" in said
  succeed(
    *prepare,
    f"--source_vocab_file={model}/{SOURCE}",
    f"--target_vocab_file={model}/{TARGET}",
  )
  tuned = tmp_path / "tuned"
  succeed(
    *(MAIN, "--mode=train", f"--model_dir={tuned}", "--train_steps=2"),
    *(f"--init_checkpoint={model}", f"--data_dir={tmp_path}/data"),
  )
  assert ModelDirectory(str(tuned)).read().params.source_vocab_size


def test_equal_files_are_one_vocabulary(demo_data, demo_text, tmp_path):
  vocabulary = demo_data / "vocab.400.model"
  shutil.copy(vocabulary, tmp_path / "same.model")
  succeed(
    *(PREPARE, *text_flags(demo_text), f"--data_dir={tmp_path}/data"),
    f"--source_vocab_file={vocabulary}",
    f"--target_vocab_file={tmp_path}/same.model",
  )
  content = json.loads((tmp_path / "data" / "data.json").read_text())
  assert content["vocabulary"]["file"] == "vocab.400.model"
  assert (
    command_line.run(
      *(MAIN, "--mode=train", f"--data_dir={tmp_path}/data"),
      *(f"--model_dir={tmp_path}/model", "--train_steps=1", *MODEL),
    ).status
    == 0
  )
