"""What only a GPU shows; run by itself where there is one.

In processes of their own: the other tests hide GPUs from theirs.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("train_and_translate.py")


def run(*arguments):
  environment = {
    k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"
  }
  tests = str(SCRIPT.parents[1])
  done = subprocess.run(
    [sys.executable, SCRIPT, *arguments],
    capture_output=True,
    text=True,
    check=False,
    env={**environment, "PYTHONPATH": tests},
    timeout=1200,
  )
  assert done.returncode == 0, done.stderr[-4000:]
  return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def number_of_gpus():
  environment = {
    k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"
  }
  code = (
    "import tensorflow as tf; "
    "print(len(tf.config.list_physical_devices('GPU')))"
  )
  done = subprocess.run(
    [sys.executable, "-c", code],
    capture_output=True,
    text=True,
    check=False,
    env=environment,
  )
  return int(done.stdout.split()[-1]) if done.returncode == 0 else 0


@pytest.fixture
def gpu():
  if not os.path.exists("/dev/nvidiactl") or not number_of_gpus():
    pytest.skip("there is no GPU here")


# How far the loss may be from the processor's in float32, as a share of it.
TOLERANCE = {"fp32": 1e-3, "bf16": 3e-2, "fp16": 1e-2}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_gpu_trains_and_translates_as_the_processor_does(gpu, dtype):
  exact = run("CPU", "fp32")
  found = run("GPU", dtype)
  for one, other in zip(found["losses"], exact["losses"], strict=True):
    assert one == pytest.approx(other, rel=TOLERANCE[dtype])
  assert found["losses"][-1] < found["losses"][0] / 2
  if dtype == "fp32":
    assert found["translations"] == exact["translations"]
  equal = sum(
    a == b
    for a, b in zip(found["translations"], exact["translations"], strict=True)
  )
  assert equal >= 0.8 * len(exact["translations"])
  assert found["devices"] == ["GPU"]  # Where the weights are.
