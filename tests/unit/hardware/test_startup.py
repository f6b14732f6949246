import os
import subprocess
import sys

import pytest

# In the place of TensorFlow, a module that writes to file descriptor 2.
FAKE = """
import os
os.write(2, b"oneDNN custom operations are on\\n")
class config:
  @staticmethod
  def list_physical_devices():
    os.write(2, b"could not find cuda drivers\\n")
    %s
"""
CODE = """
from official_transformer.hardware.startup import (
  said_at_start, start_tensorflow
)
start_tensorflow()
print(repr(said_at_start()))
"""


@pytest.fixture
def start(tmp_path):
  """Starts with a fake TensorFlow, in a process of its own."""

  def start(at_the_end="pass", redirect="", code=CODE, **environment):
    (tmp_path / "tensorflow.py").write_text(FAKE % at_the_end)
    variables = {k: v for k, v in os.environ.items() if "MIN_LOG" not in k}
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return subprocess.run(
      ["bash", "-c", f'exec "$0" -c "$1" {redirect}', sys.executable, code],
      env={**variables, "PYTHONPATH": f"{tmp_path}:{root}", **environment},
      capture_output=True,
      text=True,
      check=False,
    )

  return start


def test_what_is_said_at_the_start_is_kept_back(start):
  done = start()
  assert (done.returncode, done.stderr) == (0, "")
  assert "oneDNN" in done.stdout and "cuda" in done.stdout


def test_keras_finds_no_matplotlib_to_wait_for(start, tmp_path):
  (tmp_path / "matplotlib.py").write_text("")
  done = start(
    "pass\ntry:\n  import matplotlib\nexcept ImportError:\n"
    "  os.write(2, b'none')\nelse:\n  os.write(2, b'there')"
  )
  assert (done.returncode, done.stderr) == (0, "")
  assert "none" in done.stdout


def test_only_the_first_start_keeps_what_there_is(start):
  done = start(
    code=f"{CODE}\nimport gc\nfrozen = gc.get_freeze_count()\n"
    "made = [[] for _ in range(100)]\nstart_tensorflow()\n"
    "print(gc.get_freeze_count() == frozen > 0)"
  )
  assert done.returncode == 0
  assert done.stdout.splitlines()[-1] == "True"


def test_it_is_shown_if_the_start_fails(start):
  done = start("raise ImportError('no such library')")
  assert done.returncode == 1
  assert done.stderr.index("oneDNN") < done.stderr.index("no such library")


def test_whoever_asks_for_it_sees_it_at_once(start):
  done = start(TF_CPP_MIN_LOG_LEVEL="0")
  assert "oneDNN" in done.stderr and "cuda" in done.stderr


def test_a_closed_standard_error_does_no_harm(start):
  assert start(redirect="2>&-").returncode == 0


def test_graphs_are_optimised_again_afterwards():
  import tensorflow as tf

  from official_transformer.hardware.startup import grappler_disabled

  def unoptimised():
    options = tf.config.optimizer.get_experimental_options()
    return options.get("disable_meta_optimizer", False)

  before = unoptimised()
  with pytest.raises(KeyError), grappler_disabled():
    assert unoptimised()
    raise KeyError
  assert (before, unoptimised()) == (False, False)
