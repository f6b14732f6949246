"""Training on two logical devices, in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
  script = pathlib.Path(__file__).with_name("two_devices.py")
  done = subprocess.run(
    [sys.executable, script],
    capture_output=True,
    text=True,
    check=False,
    env={**os.environ, "PYTHONPATH": str(script.parents[1])},
    timeout=1800,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def test_the_weights_have_moved(found):
  assert found["moved"] > 1e-3


@pytest.mark.parametrize(
  "run", ["fit", "loop", "hierarchical_copy", "recomputed", "one_device_loop"]
)
def test_two_devices_train_as_one(found, run):
  assert found[run] <= 1e-5


@pytest.mark.parametrize("run", ["fit", "loop", "hierarchical_copy", "clipped"])
def test_the_gradient_of_two_devices_is_as_long_as_of_one(found, run):
  assert found[f"gradients_{run}"] <= 1e-4


def test_shares_of_a_batch_may_be_unequal(found):
  assert found["uneven_shares"] <= 1e-5


def test_batches_may_be_accumulated_and_several_updates_made_a_call(found):
  assert found["accumulated_in_unequal_shares"] <= 1e-5


def test_the_norm_that_is_clipped_is_of_all_devices(found):
  assert found["clipping"] > 1e-5
  assert found["clipped"] <= 1e-6


def test_fp16_trains_on_both(found):
  # A rounding is 2^-11 of a number; there are some ten after each other, and
  # 20 steps at a high rate.
  assert found["fp16_loss"] < 0.01
  assert found["fp16_gradients"] < 0.05


def test_replicas_draw_different_dropout_masks(found):
  assert found["masks_differ"]


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_a_resumed_run_on_both_is_bit_equal(found, way):
  """With dropout, and with the gradients of two batches summed."""
  assert found[f"resumed_{way}"] == 0.0
