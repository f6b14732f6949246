r"""Trains a Transformer, translates with it, and measures its translations.

    python transformer_main.py --mode=train --data_dir=data --model_dir=model
    python transformer_main.py --mode=average --model_dir=model
    python transformer_main.py --mode=predict --model_dir=model --file=in.txt
    python transformer_main.py --mode=eval --model_dir=model \
      --bleu_source=test.en --bleu_ref=test.de
    python transformer_main.py --mode=score --model_dir=model \
      --file=test.en --reference_file=test.de
"""

from __future__ import annotations

import os

from absl import flags, logging

from flags import core as flags_core
from flags._effects import without_effect
from official_transformer.commands.transformer_flags import (
  define_transformer_flags,
)
from official_transformer.errors import describe_failures

FLAGS = flags.FLAGS


def main(_: list[str]) -> None:
  """Runs the mode that the flags ask for."""
  logging.set_verbosity(logging.INFO)
  for line in without_effect(FLAGS):
    logging.warning("%s", line)
  configure_environment()
  # TensorFlow takes seconds to import: what needs it is imported once the
  # flags have been parsed, so that --help and a mistyped flag answer at once.
  if FLAGS.mode == "train":
    from official_transformer.commands.train import train

    train()
    return
  if FLAGS.mode == "average":
    from official_transformer.commands.average import average

    average()
    return
  from official_transformer.commands import predict as decoding_modes

  {
    "eval": decoding_modes.evaluate,
    "predict": decoding_modes.predict,
    "score": decoding_modes.score,
  }[FLAGS.mode]()


def configure_environment() -> None:
  """Sets what TensorFlow reads when it is imported."""
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  os.environ.update(
    flags_core.thread_environment(
      FLAGS.tf_gpu_thread_mode, FLAGS.per_gpu_thread_count
    )
  )
  if FLAGS.enable_xla:
    # Without this, clusters are compiled for GPUs alone.
    given = os.environ.get("TF_XLA_FLAGS", "")
    os.environ["TF_XLA_FLAGS"] = f"{given} --tf_xla_cpu_global_jit".strip()


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_transformer_flags, describe_failures(main))


if __name__ == "__main__":
  run()
