"""Defects that the tests must notice: each is put in, and a test must fail.

`tests/fidelity/test_model.py` has those that can be patched in; these are
changes of the source, in a copy of it.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
MODEL = "official_transformer/model/"
FIDELITY = "tests/fidelity/test_model.py"
TRAINER = "tests/unit/training/test_trainer.py"

# What is changed where, and which tests must not all pass then.
MUTATIONS = {
  "residual_order": (
    MODEL + "stacks.py",
    "    return x + self.dropout(y, training=training)",
    "    return self.layer_norm(x + self.dropout(y, training=training))",
    [FIDELITY, "-k", "equals_upstream and logits"],
  ),
  "smoothing_denominator": (
    MODEL + "cross_entropy.py",
    "    low = smoothing / (vocab_size - 1)",
    "    low = smoothing / vocab_size",
    ["tests/unit/model/test_cross_entropy.py"],
  ),
  "length_norm": (
    MODEL + "beam_search.py",
    "(5.0 + tf.cast(length, tf.float32)) / 6.0",
    "(6.0 + tf.cast(length, tf.float32)) / 7.0",
    [FIDELITY, "-k", "equals_upstream and toy_search"],
  ),
  "eos_counting": (
    MODEL + "beam_search.py",
    "    norm = length_normalization(self.alpha, state.index + 1)",
    "    norm = length_normalization(self.alpha, state.index)",
    [FIDELITY, "-k", "equals_upstream and toy_search"],
  ),
  "pad_mask": (
    MODEL + "model_utils.py",
    "  return (get_padding(ids) * NEGATIVE_BIAS)[:, None, None, :]",
    "  return (get_padding(ids) * 0.0)[:, None, None, :]",
    [FIDELITY, "-k", "equals_upstream and logits"],
  ),
  "causal_mask": (
    MODEL + "model_utils.py",
    "  return ((1.0 - visible) * NEGATIVE_BIAS)[None, None, :, :]",
    "  return ((1.0 - visible) * 0.0)[None, None, :, :]",
    [FIDELITY, "-k", "equals_upstream and logits"],
  ),
  "dropout_off": (
    MODEL + "dropout.py",
    "    if not training or self.rate == 0.0:\n      return x\n",
    "    return x\n",
    ["tests/unit/model/test_dropout.py"],
  ),
  "dropout_never_told_that_it_trains": (
    "official_transformer/training/step/training_step.py",
    "self.model([inputs, targets], training=True)",
    "self.model([inputs, targets], training=False)",
    ["tests/unit/training/step/test_training_step.py"],
  ),
  "adams_beta2": (
    "official_transformer/training/step/optimizer.py",
    "    params.optimizer_adam_beta2,",
    "    0.98,",
    ["tests/unit/training/step/test_optimizer.py"],
  ),
  "data_order_of_a_resumed_run": (
    "official_transformer/training/data_feed.py",
    "      skip_batches=first,",
    "      skip_batches=0,",
    [TRAINER, "-k", "resumed_run_equals and fit"],
  ),
  "a_line_dropped": (
    "official_transformer/decoding/window_batches.py",
    "      for line in window\n    ]\n\n  return Started",
    "      for line in window[: max(1, len(window) - 1)]\n"
    "    ]\n\n  return Started",
    ["tests/unit/decoding/test_translator.py", "-k", "line"],
  ),
  "positions": (
    MODEL + "model_utils.py",
    "[tf.sin(scaled_time), tf.cos(scaled_time)]",
    "[tf.cos(scaled_time), tf.sin(scaled_time)]",
    [FIDELITY, "-k", "equals_upstream and positions"],
  ),
  "epsilon": (
    MODEL + "stacks.py",
    "epsilon=params.layer_norm_epsilon",
    "epsilon=2 * params.layer_norm_epsilon",
    [FIDELITY, "-k", "equals_upstream and stacks"],
  ),
  "query_scale": (
    MODEL + "attention_layer.py",
    "self.query_scale = self.head_size**-0.5",
    "self.query_scale = 1.0",
    [FIDELITY, "-k", "equals_upstream and logits"],
  ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
  """A copy of what the tests need."""
  root = tmp_path_factory.mktemp("copy")
  for folder in ("official_transformer", "data_prep", "flags", "tests"):
    shutil.copytree(
      ROOT / folder,
      root / folder,
      ignore=shutil.ignore_patterns("__pycache__"),
    )
  shutil.copy(ROOT / "pyproject.toml", root)
  return root


def run(copy, arguments):
  """Runs some of the copy's tests; returns pytest's status."""
  environment = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("PYTEST")
  }
  done = subprocess.run(
    [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider",
     "-p", "no:xdist", "-m", "not slow", *arguments],
    cwd=copy,
    env={**environment, "PYTHONPATH": str(copy)},
    capture_output=True,
    text=True,
    check=False,
    timeout=900,
  )  # fmt: skip
  return done.returncode, done.stdout[-2000:]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_defect_is_noticed(copy, name):
  place, old, new, arguments = MUTATIONS[name]
  path = copy / place
  content = path.read_text(encoding="utf-8")
  assert content.count(old) == 1, "the source has changed: update this test"
  path.write_text(content.replace(old, new), encoding="utf-8")
  try:
    status, output = run(copy, arguments)
  finally:
    path.write_text(content, encoding="utf-8")
  # 1: tests ran, and some failed. Anything else is no answer.
  assert status == 1, output
