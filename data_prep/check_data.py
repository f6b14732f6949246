r"""Reports on parallel text, or on prepared data, before a training.

    check_data --train_source=train.en \
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de
    check_data --data_dir=data

Its exit status is 1 if something would break a training.
"""

from __future__ import annotations

import dataclasses

from data_prep.checking.data_report import Report, check_drawing
from data_prep.data_options import FormOptions, TextOptions, WorkerOptions
from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import flag
from official_transformer.errors import InputError, describe_failures
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.storage.standard_streams import show_result
from official_transformer.text.tokenizer import load_tokenizer

# Flags that prepared data leave nothing for.
_OF_TEXT = (
  *("vocab_sizes", "vocab_file", "sample", "workers"),
  *("normalize", "lowercase"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckOptions(WorkerOptions, TextOptions, FormOptions):
  """Flags of `check_data`."""

  heading = "check_data"

  data_dir: str | None = flag(
    None,
    "Prepared data to check, in the place of text.",
    path=True,
    short_name="dd",
  )
  vocab_sizes: tuple[str, ...] = flag(
    ("2000", "8000", "32000"),
    "Vocabularies to try on the text, SentencePiece's, by their entries.",
    (lambda o: o.vocab_file, "--vocab_file is tried instead"),
  )
  vocab_file: str | None = flag(
    None,
    "An existing vocabulary to try on the text, in the place of those.",
    path=True,
    short_name="vf",
  )
  max_tokens: int = flag(
    256,
    "A side of more tokens counts as too long; training leaves out pairs over "
    "its --max_length.",
    lower_bound=2,
  )
  max_length_ratio: float = flag(
    3.0,
    "A pair counts as unequal if a side has more than this many times the "
    "other's tokens.",
    lower_bound=1.0,
  )
  sample: int = flag(
    50_000,
    "Pairs that vocabularies are made from and tried on, drawn evenly.",
    lower_bound=1,
  )
  worst: int = flag(5, "Pairs to show of each kind of oddity.", lower_bound=0)
  plot_dir: str | None = flag(
    None, "Where to draw the histograms, as PNG (extra [plots]).", path=True
  )

  def __post_init__(self) -> None:
    if bool(self.corpora) == bool(self.data_dir):
      raise InputError(
        "name text, with --train_source and --train_target, or prepared data, "
        "with --data_dir"
      )
    if self.data_dir and (
      given := [f"--{name}" for name in _OF_TEXT if name in self.given]
    ):
      raise InputError(
        f"{', '.join(given)}: for text; prepared data have a vocabulary and a "
        "form of their own"
      )

  @property
  def sizes(self) -> list[int]:
    """Entries of the vocabularies to try."""
    return [_size(text) for text in self.vocab_sizes if text]


OPTIONS = CheckOptions


def main(_: list[str]) -> int:
  """Runs the command; returns its exit status."""
  options: CheckOptions = flags_core.begin(OPTIONS)
  if options.vocab_file:
    # Raises InputError for a file that is no vocabulary.
    load_tokenizer(options.vocab_file)
  if options.plot_dir:
    check_drawing(options.plot_dir)
  report = Report(options.max_tokens, options.max_length_ratio, options.worst)
  if options.data_dir:
    # Records are read with TensorFlow, which takes its time to be imported.
    start_tensorflow()
    from data_prep.checking.prepared_check import check_prepared

    check_prepared(options.data_dir, report)
  else:
    from data_prep.checking.raw_check import RawCheck, RawRequest

    RawCheck(
      report,
      RawRequest(
        options.form,
        options.sizes,
        options.vocab_file,
        options.sample,
      ),
      options.workers,
    ).run(options.corpora)
  show_result(report.text())
  if options.plot_dir:
    report.draw(options.plot_dir)
  return 1 if report.problems else 0


def _size(text: str) -> int:
  if not text.isdigit() or int(text) < 32:
    raise InputError(
      f"--vocab_sizes: {text!r} is no number of entries; at least 32, between "
      "commas"
    )
  return int(text)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
