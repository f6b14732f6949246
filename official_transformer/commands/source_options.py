"""Flags of the source: a sentence, lines of a file or as typed, a document."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections.abc import Iterable

from absl import logging

from official_transformer.commands.decoding_options import TranslationOptions
from official_transformer.commands.flag_records import flag
from official_transformer.commands.shared_options import BeamOptions
from official_transformer.commands.text_options import (
  InputOptions,
  OutputOptions,
)
from official_transformer.decoding.engines import TENSORFLOW
from official_transformer.documents.document import Document
from official_transformer.documents.formats import (
  AUTO,
  FORMATS,
  LINES,
  DocumentFormat,
  format_of,
  read_document,
)
from official_transformer.errors import InputError
from official_transformer.text import text_files


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions(
  InputOptions, OutputOptions, TranslationOptions, BeamOptions
):
  """The source text."""

  heading = "Decoding: what is read and written"

  text: str | None = flag(None, "One sentence to translate.")
  interactive: bool = flag(
    False,
    "Translate each line of standard input as soon as it is read, as on a "
    "terminal.",
  )
  file_format: str = flag(
    AUTO,
    "Format of --file: lines, or a document in which only text is translated: "
    "html, subtitles (srt), gettext's messages (po), or Word's docx. auto: by "
    "the extension of its name.",
    choices=(AUTO, LINES, *FORMATS),
  )

  @property
  def line_by_line(self) -> bool:
    """Whether one line at a time is translated, on purpose."""
    return self.interactive or self.text is not None

  @property
  def answers(self) -> bool:
    """Whether lines are answered as they are typed."""
    return self.interactive or (
      self.file == text_files.STANDARD_STREAM and sys.stdin.isatty()
    )

  @property
  def shows_bar(self) -> bool:
    """Whether there is a bar of progress.

    A bar and translations on one terminal would be torn.
    """
    return (
      self.file_out != text_files.STANDARD_STREAM or not sys.stdout.isatty()
    )

  @property
  def document_format(self) -> DocumentFormat | None:
    """The document format of the file; None for lines."""
    if self.file in (None, text_files.STANDARD_STREAM):
      return FORMATS.get(self.file_format)
    for path in str(self.file).split(","):
      if found := format_of(path, self.file_format):
        return found
    return None

  @functools.cached_property
  def document(self) -> Document | None:
    """The file, if it is no lines."""
    if self.document_format is None:
      return None
    return read_document(str(self.file), self.document_format)

  @property
  def kept_in_document(self) -> re.Pattern[str] | None:
    """The default of `--keep` for a document."""
    return self.document_format.kept if self.document_format else None

  def check_source(self) -> None:
    """Refuses anything but one thing to translate."""
    if self.interactive:
      standard = (None, text_files.STANDARD_STREAM)
      if self.text is not None or self.file not in standard:
        raise InputError(
          "--interactive answers lines of standard input; leave --text and "
          "--file out"
        )
    elif (self.text is None) == (self.file is None):
      raise InputError("nothing to translate: pass either --text or --file")
    if self.answers and self.file_out != text_files.STANDARD_STREAM:
      raise InputError(
        "--interactive answers on standard output; see --file_out"
      )
    if self.text is not None:
      _check_one_line(self.text)

  def check_document_flags(self, by_line: Iterable[str]) -> None:
    """Refuses flags that cannot be combined with a document.

    Args:
      by_line: flags that say something of each line.
    """
    if not self.document_format:
      return
    if self.file in (None, text_files.STANDARD_STREAM):
      raise InputError(
        f"--file_format={self.file_format} is for a file, and no --text or "
        "standard input"
      )
    if self.runner:
      raise InputError(
        f"--file={self.file}: --runner translates lines, and no documents; "
        "--file_format=lines takes them as lines"
      )
    for name in (
      *("alignments", "trace_dir", "n_best", "output_format", "invalid_utf8"),
      *("min_length", "markup", *by_line),
    ):
      if name in self.given:
        raise InputError(
          f"--{name} is for lines, and {self.file} is a document; "
          "--file_format=lines takes it as lines"
        )
    if self.engine != TENSORFLOW:
      raise InputError(
        f"{self.file} is a document, into which TensorFlow's attention puts "
        f"markup back: leave --engine={self.engine} out"
      )
    if (
      not self.document_format.is_text
      and self.file_out == text_files.STANDARD_STREAM
    ):
      raise InputError(f"{self.file} is not text: pass --file_out")

  def translate_document(self, document: Document) -> None:
    """Translates the text of a document."""
    from official_transformer.decoding.progress import Progress

    translator = self.plan().load()
    with Progress(len(document.requests), self.shows_bar) as progress:
      stream = translator.translate_stream(document.requests, progress.add)
      texts = [translation.text for translation in stream]
    text_files.write_content(self.file_out, document.translated(texts))
    logging.info("translated %d texts of %s", len(texts), self.file)


def _check_one_line(text: str) -> None:
  """Refuses a `--text` that is not one line that can be written."""
  if "\n" in text:
    raise InputError("--text takes one line; put several into a --file")
  try:
    text.encode("utf-8")
  except UnicodeEncodeError:
    raise InputError("--text is not UTF-8; check the terminal") from None
