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

from absl import flags

from official_transformer.commands.modes import run_mode
from official_transformer.commands.transformer_flags import (
  define_transformer_flags,
)
from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core

FLAGS = flags.FLAGS


def main(_: list[str]) -> None:
  """Runs the mode that the flags ask for."""
  run_mode(FLAGS.mode)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_transformer_flags, describe_failures(main))


if __name__ == "__main__":
  run()
