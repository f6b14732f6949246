r"""Translates a sentence or a file: the official model's first command line.

    python -m official_transformer.translate --model_dir=model --text="A dog."
    python -m official_transformer.translate --model_dir=model \
      --file=in.txt --file_out=out.txt

The same as `transformer_main --mode=predict`, except for one default of
upstream's: a translation may be 100 tokens longer than its source.

Upstream's functions are here, too: `translate_file`, `translate_from_text` and
`translate_from_input`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import flag
from official_transformer.commands.modes import run_mode
from official_transformer.commands.predict import PredictOptions
from official_transformer.errors import describe_failures

EXTRA_DECODE_LENGTH = 100
_FUNCTIONS = ("translate_file", "translate_from_text", "translate_from_input")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateOptions(PredictOptions):
  """Flags of `--mode=predict`, with one default of upstream's."""

  extra_decode_length: int | None = flag(
    EXTRA_DECODE_LENGTH,
    "Tokens a translation may be longer than its source.",
    lower_bound=0,
  )


OPTIONS = TranslateOptions


def __getattr__(name: str) -> Any:
  """Returns upstream's functions, which the command line does not load."""
  if name not in _FUNCTIONS:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from official_transformer.decoding import official_calls

  return getattr(official_calls, name)


def main(_: list[str]) -> None:
  """Translates."""
  run_mode(flags_core.begin(OPTIONS))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
