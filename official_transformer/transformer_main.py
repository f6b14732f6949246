r"""Trains a Transformer, translates with it, and measures its translations.

    transformer_main --mode=train --data_dir=data --model_dir=model
    transformer_main --mode=average --model_dir=model
    transformer_main --mode=predict --model_dir=model --file=in.txt
    transformer_main --mode=eval --model_dir=model \
      --bleu_source=test.en --bleu_ref=test.de
    transformer_main --mode=score --model_dir=model \
      --file=test.en --reference_file=test.de
"""

from __future__ import annotations

from absl import flags

from official_transformer.commands import flags_core
from official_transformer.commands.modes import MODES, run_mode
from official_transformer.errors import describe_failures

OPTIONS = MODES
FLAGS = flags.FLAGS


def define_transformer_flags() -> None:
  """Defines every flag, as the official model's function does."""
  flags_core.define_all(OPTIONS)


def main(_: list[str]) -> None:
  """Runs the mode that the flags ask for."""
  run_mode(flags_core.begin(OPTIONS))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
