"""Flags of input text, output files and pictures."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import ClassVar

from absl import logging

from official_transformer.commands.flag_records import Demand, Options, flag
from official_transformer.commands.scoring import (
  TOKENIZE_HELP,
  check_tokenizer,
)
from official_transformer.errors import InputError
from official_transformer.plotting import figures
from official_transformer.storage import file_system
from official_transformer.text import text_files

OUTPUT_FORMATS = ("text", "jsonl")
INVALID_UTF8 = ("refuse", "replace")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputOptions(Options):
  """The file to read."""

  heading = "Decoding: what is read and written"

  file: str | None = flag(
    None,
    "A file to translate; - is standard input. With --runner: several, as a "
    "pattern or between commas. With --mode=export: lines to verify the export "
    "with, instead of the development data's.",
    path=True,
  )
  invalid_utf8: str = flag(
    "refuse",
    "Treatment of lines of --file that are not UTF-8: refuse the file, or "
    "replace the bytes by U+FFFD and report the line, as --interactive always "
    "does.",
    (
      lambda o: o.file is None or getattr(o, "interactive", False),
      "it is about what is read from --file",
    ),
    choices=INVALID_UTF8,
  )

  @property
  def replaces_invalid(self) -> bool:
    """Whether bytes that are not UTF-8 are read as U+FFFD."""
    return self.invalid_utf8 == "replace"

  def lines(self) -> Iterator[str]:
    """Returns the lines of the file, which there is."""
    return text_files.read_lines(str(self.file), self.replaces_invalid)

  def lines_beside(self, target: str) -> Iterator[tuple[str, str]]:
    """Yields line n of the file and of another; refuses different lengths."""
    source = str(self.file)
    lines = itertools.zip_longest(
      self.lines(), text_files.read_lines(target, self.replaces_invalid)
    )
    for number, (first, second) in enumerate(lines, start=1):
      if first is None or second is None:
        shorter, longer = source, target
        if second is None:
          shorter, longer = target, source
        raise InputError(
          f"{shorter} ends after line {number - 1}, {longer} goes on: line n "
          "of the one must belong to line n of the other"
        )
      yield first, second


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReferenceOptions(InputOptions):
  """Translations that there are already."""

  heading = "Decoding: what is read and written"

  reference_file: str | None = flag(
    None,
    "The translations of --file: to score, or to show the attention of. "
    "Without it, --mode=attention takes the model's own.",
    path=True,
  )

  def check_inputs(self) -> list[str]:
    """Refuses files that cannot be read; returns which they are."""
    paths = [path for path in (self.file, self.reference_file) if path]
    if paths == [text_files.STANDARD_STREAM] * 2:
      raise InputError("only one of --file and --reference_file may be -")
    for path in paths:
      text_files.check_input(path)
    return paths


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputOptions(Options):
  """Flags of the output."""

  heading = "Decoding: what is read and written"

  file_out: str = flag(
    "-",
    "File for the translations; - is standard output. With --runner: a "
    "directory.",
    path=True,
  )
  output_format: str = flag(
    "text",
    "text: a line for each line. jsonl: a JSON object for each, with score, "
    "tokens and flags.",
    choices=OUTPUT_FORMATS,
  )

  def check_output(self, inputs: list[str]) -> None:
    """Refuses an output that cannot be written, or is one of the inputs."""
    text_files.check_output(self.file_out)
    text_files.check_not_read(self.file_out, inputs, "file_out")

  def write(self, lines: Iterable[str]) -> None:
    """Writes lines as they come."""
    count = text_files.write_lines(self.file_out, lines)
    if self.file_out != text_files.STANDARD_STREAM:
      logging.info("wrote %d lines to %s", count, self.file_out)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationOptions(Options):
  """The reference translations."""

  heading = "What is translated for BLEU"
  demands: ClassVar[tuple[Demand, ...]] = (
    Demand(
      ("bleu_source", "bleu_ref"),
      lambda values: bool(values["bleu_source"]) == bool(values["bleu_ref"]),
      "--bleu_source and --bleu_ref are given together or not at all",
    ),
  )

  bleu_source: str | None = flag(
    None,
    "Text to translate for BLEU, in training too. With --mode=eval: several "
    "files between commas.",
    path=True,
    short_name="bls",
  )
  bleu_ref: str | None = flag(
    None,
    "Reference translation of --bleu_source; for several files, as many in "
    "the same order.",
    path=True,
    short_name="blr",
  )
  bleu_tokenize: str = flag(
    "auto",
    TOKENIZE_HELP,
    (lambda o: not o.bleu_source, "nothing is scored without --bleu_source"),
  )

  def tokenizer(self) -> str:
    """Returns the tokenizer of BLEU, if there is one of that name."""
    return check_tokenizer("bleu_tokenize", self.bleu_tokenize)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatOptions(Options):
  """File formats of pictures."""

  heading = "Pictures"

  picture_formats: tuple[str, ...] = flag(
    ("png", "svg"),
    "Formats of pictures (extra [plots]). Empty: no pictures, only the "
    "numbers of attention and --trace_dir.",
    (lambda o: not o.draws, "there is no --trace_dir"),
  )

  @property
  def draws(self) -> bool:
    """Whether there may be pictures."""
    return True

  def check_formats(self) -> None:
    """Refuses formats that pictures cannot be written in."""
    figures.check_formats(list(self.picture_formats))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PictureOptions(FormatOptions):
  """Flags of pictures."""

  heading = "Pictures"

  output_dir: str | None = flag(
    None, "Where pictures, and the numbers they are made of, go.", path=True
  )

  def check_pictures(self, demand: str) -> str:
    """Refuses missing packages, unknown formats and a wrong --output_dir.

    Args:
      demand: error if no directory is given.

    Returns:
      The directory.
    """
    if not self.output_dir:
      raise InputError(demand)
    if file_system.is_file(self.output_dir):
      raise InputError(f"--output_dir={self.output_dir} is a file")
    self.check_formats()
    return self.output_dir
