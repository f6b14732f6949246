"""Running the mode that a command line asks for."""

from __future__ import annotations

import importlib
import os

from absl import flags

from official_transformer.commands import checks
from official_transformer.flag_groups import core as flags_core
from official_transformer.hardware.startup import start_tensorflow

FLAGS = flags.FLAGS

# What checks a mode's flags, and the module whose function of the same name
# does what the mode says.
COMMANDS = {
  "train": (checks.check_train, "train"),
  "average": (checks.check_average, "average"),
  "eval": (checks.check_eval, "evaluate"),
  "predict": (checks.check_predict, "predict"),
  "score": (checks.check_score, "score"),
  "export": (checks.check_export, "export"),
  "plot": (checks.check_plot, "plot"),
  "attention": (checks.check_attention, "attention"),
}


def run_mode(mode: str) -> None:
  """Checks what can be checked at once, then imports and runs a mode."""
  check, name = COMMANDS[mode]
  # Before anything imports TensorFlow, as a remote file does.
  _configure_environment()
  # It takes seconds to import: --help, a mistyped flag and a missing file are
  # answered before it is.
  check()
  start_tensorflow()
  command = importlib.import_module(f"official_transformer.commands.{name}")
  getattr(command, name)()


def _configure_environment() -> None:
  """Sets what TensorFlow reads when it is imported."""
  if "tf_gpu_thread_mode" in FLAGS:
    os.environ.update(
      flags_core.thread_environment(
        FLAGS.tf_gpu_thread_mode, FLAGS.per_gpu_thread_count
      )
    )
  if "enable_xla" in FLAGS and FLAGS.enable_xla:
    # Without this, clusters are compiled for GPUs alone.
    given = os.environ.get("TF_XLA_FLAGS", "")
    os.environ["TF_XLA_FLAGS"] = f"{given} --tf_xla_cpu_global_jit".strip()
