"""Training by two processes of one machine, over loopback."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from shared_files import reversed_pairs
from written_shards import write_shards

HERE = pathlib.Path(__file__).parent
MAIN = HERE.parents[1] / "official_transformer" / "transformer_main.py"

pytestmark = pytest.mark.slow


def free_ports(number):
  """Returns ports that nobody is given by chance before they are used.

  Systems give ports from 32768 on to whoever asks for any.
  """
  ports = []
  while len(ports) < number:
    port = random.SystemRandom().randrange(20_000, 32_000)
    with (
      contextlib.suppress(OSError),
      socket.create_server(("127.0.0.1", port)),
    ):
      if port not in ports:
        ports.append(port)
  return ports


def start(command, log, environment=None):
  with open(log, "w", encoding="utf-8") as stream:
    return subprocess.Popen(
      [sys.executable, *map(str, command)],
      stdout=stream,
      stderr=subprocess.STDOUT,
      env={**os.environ, "PYTHONPATH": str(HERE.parent), **(environment or {})},
    )


def finish(process, log, status=0, seconds=600):
  try:
    process.wait(timeout=seconds)
  finally:
    process.kill()
    process.wait()
  text = pathlib.Path(log).read_text(encoding="utf-8")
  assert process.returncode == status, text
  return text


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
  """One shard, for two workers."""
  directory = str(tmp_path_factory.mktemp("data"))
  pairs = reversed_pairs(200, longest=14)
  write_shards(pairs[20:], directory, "x", "train", 1, seed=1)
  write_shards(pairs[:20], directory, "x", "dev", 1, seed=None)
  return directory


@pytest.mark.long
def test_two_workers_train_as_one(tmp_path, data_dir):
  ports = ",".join(map(str, free_ports(2)))
  runs = []
  for who in ("0", "1", "alone"):
    out, log = tmp_path / f"{who}.npz", tmp_path / f"{who}.log"
    command = [HERE / "two_workers.py", who, ports, data_dir, out]
    runs.append((start(command, log), log, out))
  weights = []
  for process, log, out in runs:
    finish(process, log)
    arrays = list(np.load(out).values())
    weights.append(arrays[len(arrays) // 2 :])
  moved = max(
    np.abs(a - b).max() for a, b in zip(arrays, weights[-1], strict=False)
  )
  assert moved > 1e-3
  for worker in weights[:2]:
    for a, b in zip(worker, weights[2], strict=True):
      np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
  """Text and data for the command line."""
  directory = tmp_path_factory.mktemp("prepared")
  text = [f"--output_dir={directory}", "--train_size=600", "--dev_size=40"]
  for command in (
    ["-m", "data_prep.demo_corpus", *text, "--test_size=20"],
    [
      *("-m", "data_prep.prepare_data"),
      f"--train_source={directory}/train.en",
      f"--train_target={directory}/train.de",
      *(f"--data_dir={directory}/data", "--vocab_size=400", "--shards=1"),
    ],
  ):
    log = directory / "log"
    finish(start(command, log), log)
  return directory / "data"


def worker(index, ports, prepared, model, log, *flags):
  config = {
    "cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]},
    "task": {"type": "worker", "index": index},
  }
  command = [
    *(MAIN, "--mode=train", f"--data_dir={prepared}", f"--model_dir={model}"),
    *("--param_set=tiny", "--params_override=num_hidden_layers=1"),
    *("--batch_size=512", "--max_length=64", "--steps_between_evals=10"),
    *("--distribution_strategy=multi_worker_mirrored", "--log_steps=10"),
    *flags,
  ]
  return start(command, log, {"TF_CONFIG": json.dumps(config)})


def test_a_missing_worker_is_named(tmp_path, prepared):
  ports = free_ports(2)
  log = tmp_path / "log"
  process = worker(
    0, ports, prepared, tmp_path / "model", log, "--connect_timeout=3"
  )
  text = finish(process, log, status=2, seconds=600)
  assert f"has waited 3 s for worker 1 (127.0.0.1:{ports[1]})" in text
  assert not (tmp_path / "model").exists()


@pytest.mark.long
def test_a_killed_worker_is_named_and_training_goes_on(tmp_path, prepared):
  ports = free_ports(2)
  logs = [tmp_path / "0.log", tmp_path / "1.log"]
  model = tmp_path / "model"

  def both(*flags):
    return [
      worker(n, ports, prepared, model, logs[n], *flags) for n in range(2)
    ]

  first, second = both("--train_steps=100000", "--keep_checkpoint_max=2")
  deadline = time.monotonic() + 600
  while not list(model.glob("checkpoints/step-?0")):
    assert time.monotonic() < deadline and first.poll() is None, logs[
      0
    ].read_text()
    time.sleep(0.1)
  second.send_signal(signal.SIGKILL)
  second.wait()
  text = finish(first, logs[0], status=1, seconds=600)
  assert "has lost worker 1 (127.0.0.1:" in text
  assert "Traceback" not in text
  last = max(
    int(path.name.split("-")[1]) for path in model.glob("checkpoints/step-*")
  )
  for process, log in zip(
    both(f"--train_steps={last + 10}"), logs, strict=True
  ):
    text = finish(process, log)
    found = re.search(r"resuming after step (\d+)", text)
    assert found and int(found[1]) == last
  assert (model / "checkpoints" / f"step-{last + 10}").exists()


def test_workers_that_differ_are_told_and_nothing_is_written(
  tmp_path, prepared
):
  ports = free_ports(2)
  logs = [tmp_path / "0.log", tmp_path / "1.log"]
  model = tmp_path / "model"
  first, second = (
    worker(n, ports, prepared, model, logs[n], f"--train_steps={10 + n}")
    for n in range(2)
  )
  text = finish(second, logs[1], status=2, seconds=600)
  assert "and the chief differ in their flags or model.json" in text
  text = finish(first, logs[0], status=1, seconds=600)
  assert "has lost worker 1" in text
  assert not model.exists()


def test_workers_agree_on_a_signal_and_go_on_exactly(tmp_path, prepared):
  """One of them is told to stop: both finish the same step, and it is saved."""
  logs = [tmp_path / "0.log", tmp_path / "1.log"]
  flags = ("--train_steps=150", "--deterministic", "--seed=3", "--log_steps=1")

  def both(model):
    ports = free_ports(2)
    return [
      worker(n, ports, prepared, model, logs[n], *flags) for n in range(2)
    ]

  first, second = both(tmp_path / "stopped")
  deadline = time.monotonic() + 600
  while "step 12 of 150" not in logs[1].read_text(encoding="utf-8"):
    assert time.monotonic() < deadline and first.poll() is None, logs[
      0
    ].read_text()
    time.sleep(0.05)
  second.send_signal(signal.SIGTERM)
  steps = []
  for process, log in zip((first, second), logs, strict=True):
    text = finish(process, log, status=128 + signal.SIGTERM)
    found = re.search(r"stopped by SIGTERM: step (\d+) of 150 was the", text)
    assert found, text
    steps.append(int(found[1]))
  assert steps[0] == steps[1] < 150
  for model in (tmp_path / "stopped", tmp_path / "whole"):
    for process, log in zip(both(model), logs, strict=True):
      text = finish(process, log)
    assert f"resuming after step {steps[0]}" in text or model.name == "whole"
  stopped, whole = (
    tf.train.load_checkpoint(
      str(tmp_path / name / "checkpoints/step-150/model")
    )
    for name in ("stopped", "whole")
  )
  for name in whole.get_variable_to_shape_map():
    np.testing.assert_array_equal(
      stopped.get_tensor(name), whole.get_tensor(name), err_msg=name
    )
