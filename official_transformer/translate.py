r"""Translates a sentence or a file: the official model's first command line.

    python translate.py --model_dir=model --text="hello world"
    python translate.py --model_dir=model --file=in.txt --file_out=out.txt

The same as `transformer_main.py --mode=predict`, but for one default of old: a
translation may be 100 tokens longer than its source.
"""

from __future__ import annotations

import os

from absl import flags, logging

from flags import core as flags_core
from flags._effects import without_effect
from official_transformer.commands.decoding_flags import define_decoding_flags
from official_transformer.commands.transformer_flags import define_model_flags
from official_transformer.errors import describe_failures

EXTRA_DECODE_LENGTH = 100


def define_translate_flags() -> None:
  """Defines the command's flags."""
  flags.DEFINE_string(
    "model_dir",
    "/tmp/transformer_model",
    flags_core.help_wrap("The model directory."),
    short_name="md",
  )
  define_model_flags()
  define_decoding_flags()
  flags.FLAGS.set_default("extra_decode_length", EXTRA_DECODE_LENGTH)
  flags.DEFINE_integer(
    "num_gpus",
    None,
    flags_core.help_wrap("0 for the CPU. Unset: a GPU where there is one."),
    lower_bound=-1,
    short_name="ng",
  )


def main(_: list[str]) -> None:
  """Translates."""
  logging.set_verbosity(logging.INFO)
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  for line in without_effect(flags.FLAGS):
    logging.warning("%s", line)

  from official_transformer.commands.predict import predict

  predict()


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_translate_flags, describe_failures(main))


if __name__ == "__main__":
  run()
