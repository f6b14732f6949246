"""What all tests share."""

import os

# TensorFlow would say things about oneDNN and CUDA at each start.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# As many processes run tests as there are processors: one thread each.
if "PYTEST_XDIST_WORKER" in os.environ:
  for name in ("INTRAOP", "INTEROP"):
    os.environ.setdefault(f"TF_NUM_{name}_THREADS", "1")
# Commands that share a process cannot choose their GPUs anew.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import dataclasses
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import command_line
import hypothesis
import pytest
from absl import flags
from shared_files import make_once, reversed_pairs

from official_transformer.hardware.processor import prefer_onednn
from official_transformer.model_params import TransformerParams

pytest_plugins = ["durations", "graph_memory"]
# The same examples in every run, and no deadline that a busy machine misses.
hypothesis.settings.register_profile(
  "tests", deadline=None, derandomize=True, database=None
)
hypothesis.settings.load_profile("tests")
prefer_onednn()  # As the commands do.
MODEL = (
  "--param_set=tiny",
  "--params_override=num_hidden_layers=1,learning_rate_warmup_steps=10",
)


@pytest.fixture
def heard_hangups() -> Iterator[None]:
  """Has child processes hear SIGHUP, which nohup has them ignore."""
  before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
  yield
  signal.signal(signal.SIGHUP, before)


@pytest.fixture
def params() -> TransformerParams:
  """A model of two small layers over a vocabulary of 20."""
  return TransformerParams(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=2,
    num_heads=2,
    filter_size=32,
    default_batch_size=256,
    learning_rate_warmup_steps=10,
    extra_decode_length=5,
  )


@pytest.fixture
def undropped(params: TransformerParams) -> TransformerParams:
  """The same without dropout."""
  return dataclasses.replace(
    params,
    layer_postprocess_dropout=0.0,
    attention_dropout=0.0,
    relu_dropout=0.0,
  )


@pytest.fixture
def transformer_flags() -> Iterator[flags.FlagValues]:
  """The flags of transformer_main, for one test to parse a command line."""
  with command_line.fresh_flags(command_line.MAIN) as values:
    yield values


@pytest.fixture
def read_back_here(monkeypatch: pytest.MonkeyPatch) -> None:
  """Verifies exports in the test's process: no other one imports TensorFlow."""
  from official_transformer.exporting import ctranslate2_export, verification
  from official_transformer.exporting.read_back import READERS

  def read_back(kind: str, directory: str, questions: Any) -> Any:
    questions = json.loads(json.dumps(questions))
    return json.loads(json.dumps(READERS[kind](directory, questions)))

  for module in (verification, ctranslate2_export):
    monkeypatch.setattr(module, "read_back", read_back)


@pytest.fixture(scope="session")
def reversals(tmp_path_factory: pytest.TempPathFactory) -> str:
  """A data directory of 160 training and 40 development pairs, reversed."""
  from written_shards import write_shards

  def make(directory: pathlib.Path) -> None:
    pairs = reversed_pairs(200, longest=8)
    write_shards(pairs[40:], str(directory), "x", "train", 2, seed=1)
    write_shards(pairs[:40], str(directory), "x", "dev", 1, seed=None)

  return str(make_once(tmp_path_factory, "reversals", make))


@pytest.fixture(scope="session")
def trained_model(tmp_path_factory: pytest.TempPathFactory) -> str:
  """A model directory of a small model that upstream has trained."""
  from trained_model import make_model_dir

  made = make_once(tmp_path_factory, "trained_model", make_model_dir)
  return str(made / "model")


@pytest.fixture(scope="session")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
  """Beam's job server in Python; the flags that have it run a pipeline."""
  directory = tmp_path_factory.mktemp("job_server")
  port_file = directory / "port"
  with (directory / "log").open("wb") as log:
    process = subprocess.Popen(
      [
        *(sys.executable, "-m"),
        "apache_beam.runners.portability.local_job_service_main",
        *(f"--port_file={port_file}", "--port=0"),
        f"--staging_dir={directory}/staging",
      ],
      stdout=log,
      stderr=log,
    )
  try:
    deadline = time.monotonic() + 300
    while not (port_file.exists() and port_file.read_text()):
      assert process.poll() is None and time.monotonic() < deadline
      time.sleep(0.1)
    options = (
      f"--job_endpoint=localhost:{port_file.read_text()}"
      " --environment_type=LOOPBACK"
    )
    yield ["--runner=PortableRunner", f"--beam_options={options}"]
  finally:
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def demo_text(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """A small demo corpus: train, dev and test, in English and German."""

  def make(directory: pathlib.Path) -> None:
    command_line.succeed(
      command_line.DEMO,
      f"--output_dir={directory}",
      *("--train_size=600", "--dev_size=40", "--test_size=20"),
    )

  return make_once(tmp_path_factory, "demo_text", make)


@pytest.fixture(scope="session")
def demo_data(
  tmp_path_factory: pytest.TempPathFactory, demo_text: pathlib.Path
) -> pathlib.Path:
  """The same as training data, with a vocabulary of 400."""

  def make(directory: pathlib.Path) -> None:
    command_line.succeed(
      command_line.PREPARE,
      f"--train_source={demo_text}/train.en",
      f"--train_target={demo_text}/train.de",
      f"--dev_source={demo_text}/dev.en",
      f"--dev_target={demo_text}/dev.de",
      *(f"--data_dir={directory}", "--vocab_size=400", "--shards=2"),
    )

  return make_once(tmp_path_factory, "demo_data", make)


@pytest.fixture(scope="module")
def demo_model(
  tmp_path_factory: pytest.TempPathFactory,
  demo_text: pathlib.Path,
  demo_data: pathlib.Path,
) -> pathlib.Path:
  """A model trained for 20 steps, then resumed for 10 more.

  It has learnt next to nothing: what it says must not matter. Each file's tests
  have a copy of their own, as commands lock and write to it.
  """

  def make(directory: pathlib.Path) -> None:
    common = (
      *("--mode=train", f"--data_dir={demo_data}", f"--model_dir={directory}"),
      f"--bleu_source={demo_text}/test.en",
      f"--bleu_ref={demo_text}/test.de",
      *("--steps_between_evals=10", "--seed=1"),
    )
    train = command_line.succeed
    train(command_line.MAIN, *common, "--train_steps=20", *MODEL)
    train(
      command_line.MAIN, *common, "--train_steps=30", "--enable_tensorboard"
    )

  made = make_once(tmp_path_factory, "demo_model", make)
  return shutil.copytree(made, tmp_path_factory.mktemp("demo") / "model")
