"""What describes a model and its data is read once by each command."""

import collections
import os
import sys

import pytest
from command_line import MAIN, SERVER, succeed
from conftest import MODEL

from official_transformer.serving import http_server

pytestmark = pytest.mark.slow

_listeners = []


def _hear(event, arguments):
  if event == "open" and isinstance(arguments[0], str):
    for listener in _listeners:
      listener(os.path.basename(arguments[0]), arguments[1])


@pytest.fixture
def opened(monkeypatch):
  """How often files were opened to be read, by name."""
  counts = collections.Counter()

  def count(name, mode):
    # Without a mode, it is opened to be forced to the disk.
    if mode and "r" in mode:
      counts[name] += 1

  if not _listeners:
    sys.addaudithook(_hear)  # It cannot be taken away again.
  _listeners[:] = [count]
  yield counts
  _listeners[:] = [lambda *_: None]


def times(opened, vocabulary):
  return [opened[name] for name in ("model.json", "data.json", vocabulary)]


def test_training(opened, demo_data, demo_text, tmp_path):
  (vocabulary,) = (path.name for path in demo_data.glob("vocab*"))
  flags = [
    f"--data_dir={demo_data}",
    f"--model_dir={tmp_path}/model",
    f"--bleu_source={demo_text}/dev.en",
    f"--bleu_ref={demo_text}/dev.de",
    "--steps_between_evals=1",
    "--batch_size=512",
    "--max_length=64",
    "--extra_decode_length=1",
    "--seed=1",
    *MODEL,
  ]
  succeed(MAIN, "--mode=train", "--train_steps=1", *flags)
  assert times(opened, vocabulary) == [0, 1, 1]
  opened.clear()
  succeed(MAIN, "--mode=train", "--train_steps=2", *flags)
  assert times(opened, vocabulary) == [1, 1, 1]


@pytest.mark.parametrize("mode", ["predict", "eval", "score"])
def test_using_a_model(mode, opened, demo_model, demo_text, tmp_path):
  (vocabulary,) = (path.name for path in demo_model.glob("vocab*"))
  source, target = demo_text / "dev.en", demo_text / "dev.de"
  flags = {
    "predict": [f"--file={source}", f"--file_out={tmp_path}/out"],
    "eval": [f"--bleu_source={source}", f"--bleu_ref={target}"],
    "score": [
      f"--file={source}",
      f"--reference_file={target}",
      f"--file_out={tmp_path}/out",
    ],
  }[mode]
  succeed(MAIN, f"--mode={mode}", f"--model_dir={demo_model}", *flags)
  assert times(opened, vocabulary) == [1, 0, 1]


def test_serving(opened, demo_model, monkeypatch):
  (vocabulary,) = (path.name for path in demo_model.glob("vocab*"))
  monkeypatch.setattr(
    http_server, "serve", lambda _, listener, __: listener.close()
  )
  succeed(SERVER, f"--model_dir={demo_model}", "--port=0")
  assert times(opened, vocabulary) == [1, 0, 1]
