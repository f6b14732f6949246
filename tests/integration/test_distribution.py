"""Training on two logical devices, in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def run_script(*arguments):
  script = pathlib.Path(__file__).with_name("two_devices.py")
  done = subprocess.run(
    [sys.executable, script, *arguments],
    capture_output=True,
    text=True,
    check=False,
    env={**os.environ, "PYTHONPATH": str(script.parents[1])},
    timeout=1800,
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
  return run_script()


@pytest.fixture(scope="module")
def found_at_length():
  return run_script("--long")


def test_the_weights_have_moved(found):
  assert found["moved"] > 1e-3


def test_two_devices_train_as_one(found):
  assert found["fit"] <= 1e-5


@pytest.mark.long
@pytest.mark.parametrize(
  "run", ["loop", "hierarchical_copy", "recomputed", "one_device_loop"]
)
def test_two_devices_train_as_one_in_other_ways(found_at_length, run):
  assert found_at_length[run] <= 1e-5


@pytest.mark.parametrize("run", ["fit", "clipped"])
def test_the_gradient_of_two_devices_is_as_long_as_of_one(found, run):
  assert found[f"gradients_{run}"] <= 1e-4


@pytest.mark.long
@pytest.mark.parametrize("run", ["loop", "hierarchical_copy"])
def test_so_it_is_in_other_ways(found_at_length, run):
  assert found_at_length[f"gradients_{run}"] <= 1e-4


@pytest.mark.long
def test_shares_of_a_batch_may_be_unequal(found_at_length):
  assert found_at_length["uneven_shares"] <= 1e-5


def test_batches_may_be_accumulated_and_several_updates_made_a_call(found):
  assert found["accumulated_in_unequal_shares"] <= 1e-5


def test_the_norm_that_is_clipped_is_of_all_devices(found):
  assert found["longest_gradient"] > 0.6  # The norm allowed is 0.5.
  assert found["clipped"] <= 1e-6


@pytest.mark.long
def test_fp16_trains_on_both(found_at_length):
  # A rounding is 2^-11 of a number; there are some ten after each other, and
  # 20 steps at a high rate.
  assert found_at_length["fp16_loss"] < 0.01
  assert found_at_length["fp16_gradients"] < 0.05


def test_replicas_draw_different_dropout_masks(found):
  assert found["masks_differ"]


def test_a_resumed_run_on_both_is_bit_equal(found):
  """With dropout, and with the gradients of two batches summed."""
  assert found["resumed_loop"] == 0.0


@pytest.mark.long
@pytest.mark.parametrize("way", ["fit", "loop"])
def test_a_resumed_run_on_both_is_bit_equal_in_both_ways(found_at_length, way):
  assert found_at_length[f"resumed_{way}"] == 0.0
