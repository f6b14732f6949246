r"""Translates a sentence or a file: the official model's first command line.

    python translate.py --model_dir=model --text="hello world"
    python translate.py --model_dir=model --file=in.txt --file_out=out.txt

The same as `transformer_main.py --mode=predict`, but for one default of old: a
translation may be 100 tokens longer than its source.

Upstream's functions are here, too: `translate_file`, `translate_from_text` and
`translate_from_input`.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official_transformer.commands.decoding_flags import define_decoding_flags
from official_transformer.commands.modes import run_mode
from official_transformer.commands.transformer_flags import define_model_flags
from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core

EXTRA_DECODE_LENGTH = 100
_FUNCTIONS = ("translate_file", "translate_from_text", "translate_from_input")


def define_translate_flags() -> None:
  """Defines the command's flags."""
  flags_core.start_section("translate")
  flags_core.define(
    flags.DEFINE_string,
    "model_dir",
    "/tmp/transformer_model",
    "The model directory.",
    short_name="md",
    path=True,
  )
  define_model_flags()
  define_decoding_flags()
  flags.FLAGS.set_default("extra_decode_length", EXTRA_DECODE_LENGTH)
  flags_core.define_num_gpus()


def __getattr__(name: str) -> Any:
  """Returns upstream's functions, which the command line does not load."""
  if name not in _FUNCTIONS:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from official_transformer.decoding import official_calls

  return getattr(official_calls, name)


def main(_: list[str]) -> None:
  """Translates."""
  run_mode("predict")


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_translate_flags, describe_failures(main))


if __name__ == "__main__":
  run()
