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


def python(*arguments):
  """Runs Python where GPUs are seen; returns the last line it prints."""
  environment = {
    k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"
  }
  done = subprocess.run(
    [sys.executable, *arguments],
    capture_output=True,
    text=True,
    check=False,
    env={**environment, "PYTHONPATH": str(SCRIPT.parents[1])},
    timeout=1200,
  )
  assert done.returncode == 0, done.stderr[-4000:]
  return done.stdout.splitlines()[-1]


def run(*arguments):
  return json.loads(python(SCRIPT, *arguments))


@functools.cache
def number_of_gpus():
  code = "print(len(tf.config.list_physical_devices('GPU')))"
  return int(python("-c", f"import tensorflow as tf; {code}"))


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
  # After updates 1, 10 and 50; hundreds later, each has gone its own way.
  for one, other in zip(found["losses"][:3], exact["losses"][:3], strict=True):
    assert one == pytest.approx(other, rel=TOLERANCE[dtype])
  assert found["losses"][-1] < found["losses"][0] / 10
  assert found["devices"] == ["GPU"]  # Where the weights are.
  right = sum(
    a == b
    for a, b in zip(found["translations"], found["expected"], strict=True)
  )
  # The processor gets 48 to 50 of 50 right, in any precision.
  assert right >= 45
  equal = sum(
    a == b
    for a, b in zip(found["translations"], exact["translations"], strict=True)
  )
  assert equal >= 0.8 * len(exact["translations"])
