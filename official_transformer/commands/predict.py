"""`--mode=predict`: translates a sentence, files, or typed lines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands import beam_pipeline
from official_transformer.commands.flag_records import flag
from official_transformer.commands.guidance_options import GuidanceOptions
from official_transformer.commands.source_options import SourceOptions
from official_transformer.commands.text_options import FormatOptions
from official_transformer.decoding.engines import TENSORFLOW
from official_transformer.decoding.options import AlignmentRule, DecodingOptions
from official_transformer.errors import InputError
from official_transformer.hardware.startup import grappler_disabled
from official_transformer.storage import file_system
from official_transformer.text import text_files

if TYPE_CHECKING:
  from official_transformer.decoding.translation import Translation


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictOptions(SourceOptions, GuidanceOptions, FormatOptions):
  """Flags of `--mode=predict`."""

  heading = "Decoding: what is read and written"
  summary = "translate --text or --file"
  most_used = (
    "model_dir",
    "text",
    "file",
    "file_out",
    "checkpoint",
    "beam_size",
    "alpha",
    "n_best",
    "engine",
    "output_format",
  )

  n_best: int = flag(
    1,
    "Number of hypotheses to write for each source line, best first: as that "
    "many lines of text, empty ones if fewer were found, or as one JSON "
    "object.",
    lower_bound=1,
  )
  alignments: bool = flag(
    False,
    "Write word alignments: after |||, in Pharaoh's form 0-0 1-2, or as "
    "fields of JSON. Words end at blanks; in scripts without them, each "
    "character is one.",
  )
  alignment_layer: int | None = flag(
    None,
    "Decoder layer whose attention gives the alignments, counted from 0. "
    "Unset: all layers, which was the best.",
    (lambda o: not o.alignments, "there are no --alignments"),
    lower_bound=0,
  )
  markup: str = flag(
    "none",
    "html: lines are HTML, or parts of it. Their text is translated, and tags "
    "come back where alignments say.",
    choices=("none", "html"),
  )
  trace_dir: str | None = flag(
    None,
    "Directory for a record of each search, step by step: hypotheses, scores, "
    "pruned candidates, and a picture of the tree. Slow: use it for some "
    "lines.",
    path=True,
  )

  @property
  def takes_several(self) -> bool:
    """Whether several models may decide together."""
    return not self.runner

  @property
  def draws(self) -> bool:
    """Whether there may be pictures."""
    return bool(self.trace_dir)

  def decoding(self) -> DecodingOptions:
    """Returns the options of decoding and output."""
    rule = None
    if self.alignments and self.alignment_layer is not None:
      rule = AlignmentRule((self.alignment_layer,))
    elif self.alignments:
      rule = AlignmentRule()
    samples = None
    if self.sample and self.beam_size is None:
      # Without a choice among samples, only those to be written are drawn.
      samples = self.n_best
      if self.mbr:
        samples = max(samples, self.model[1].params.beam_size)
    of_lines = super().decoding()
    return dataclasses.replace(
      of_lines,
      keep=of_lines.keep or self.kept_in_document,
      n_best=self.n_best,
      alignment=rule,
      is_html=self.markup == "html",
      search=self.search(samples),
    )

  def check(self) -> None:
    """Refuses flags without a text to translate, and a missing model.

    Raises:
      InputError: for the first thing that is wrong.
    """
    _check_guidance(self)
    if self.runner:
      _check_bulk(self)
    else:
      self.check_source()
    self.check_engine()
    if self.alignments and self.engine != TENSORFLOW and not self.runner:
      raise InputError(
        "--alignments is read from TensorFlow's attention: leave --engine="
        f"{self.engine} out"
      )
    self._check_markup()
    self.check_document_flags(self.files_by_line)
    if not self.runner:
      _check_trace(self)
      self._check_files()
    self.check_model()
    options = self.decoding()
    options.check(self.model[1].params)
    if self.files_by_line:
      options.check_guided()

  def _check_markup(self) -> None:
    """Refuses flags that cannot be combined with markup."""
    markup = [f"--markup={self.markup}"] if self.markup != "none" else []
    if self.keep is not None:
      markup.append(f"--keep={self.keep}")
    of_whole = [
      *("alignments", "trace_dir", "min_length"),
      *self.files_by_line,
    ]
    given = [f"--{name}" for name in of_whole if getattr(self, name)]
    if markup and given:
      raise InputError(
        f"{markup[0]}: text is translated without its markup, in parts; leave "
        f"{', '.join(given)} out"
      )

  def _check_files(self) -> None:
    inputs = [self.file] if self.file is not None else []
    for path in inputs:
      text_files.check_input(path)
    self.check_output([*inputs, *self.guidance_files.values()])
    # Read now: a damaged document is refused before a model is loaded.
    _ = self.document
    if self.files_by_line:
      lines = 1 if self.file is None else text_files.count_lines(self.file)
      self.check_line_counts(lines)

  def run(self) -> None:
    """Translates the text that the flags name."""
    if self.runner:
      self._translate_files(self.runner)
    elif self.trace_dir:
      self._trace(self.trace_dir)
    elif self.text is not None:
      self._translate_text(self.text)
    elif self.answers:
      self._answer()
    elif self.document:
      self.translate_document(self.document)
    else:
      self._translate_file()

  def _translate_files(self, runner: str) -> None:
    """Translates many files, by Beam's workers."""
    # It imports Apache Beam.
    from official_transformer.commands.bulk_predict import bulk_predict

    bulk_predict(
      self.plan(),
      str(self.file),
      self.file_out,
      output_format=self.output_format,
      replace_invalid=self.replaces_invalid,
      run_pipeline=functools.partial(
        beam_pipeline.run, runner, self.beam_options
      ),
    )

  def _translate_text(self, text: str) -> None:
    """Translates the only sentence of this process."""
    runs_once = (
      grappler_disabled if self.needs_tensorflow else contextlib.nullcontext
    )
    with runs_once():
      translator = self.load_one_by_one()
      (line,) = self.requests([text])
      self._write(iter([translator.translate_line(line)]))

  def _trace(self, directory: str) -> None:
    """Translates line by line, and writes the steps of each search."""
    # matplotlib need not be installed.
    from official_transformer.commands.trace import TraceWriter

    lines = iter([self.text]) if self.text is not None else self.lines()
    translator = self.load_one_by_one()
    writer = TraceWriter(translator, directory, self.picture_formats)

    def translations() -> Iterator[Translation]:
      for line in lines:
        writer.write(line)
        yield translator.translate_line(line)

    self._write(translations())
    writer.close()

  def _answer(self) -> None:
    """Answers lines of standard input, each at once."""
    from official_transformer.decoding.translation import BLANK

    translator = self.load_one_by_one()
    translator.warm_up()
    logging.info("ready: a line, and its translation; Ctrl-D ends")
    # One bad byte is no reason to send a user away.
    lines = text_files.read_lines(
      text_files.STANDARD_STREAM, replace_invalid=True
    )

    def answers() -> Iterator[Translation]:
      for line in lines:
        try:
          yield translator.translate_line(line)
        except InputError as error:  # A lack of memory is no reason, either.
          logging.error("%s", error)
          yield BLANK

    self._write(answers())

  def _translate_file(self) -> None:
    """Translates a file, side by side and in order."""
    from official_transformer.decoding.progress import Progress

    lines = self.lines()
    translator = self.plan().load()
    count = text_files.count_lines(str(self.file))
    with Progress(count, self.shows_bar) as progress:
      stream = translator.translate_stream(self.requests(lines), progress.add)
      with contextlib.closing(stream):
        self._write(stream)

  def _write(self, translations: Iterable[Translation]) -> None:
    """Writes translations as they come."""
    from official_transformer.decoding.output import lines_of

    self.write(lines_of(translations, self.output_format, self.n_best))


def _check_bulk(options: PredictOptions) -> None:
  """Refuses flags that do not say which files go where."""
  beam_pipeline.check(str(options.runner), options.beam_options)
  standard = text_files.STANDARD_STREAM
  if (
    options.line_by_line
    or options.file in (None, standard)
    or options.file_out in ("", standard)
  ):
    raise InputError(
      "--runner translates files: --file names them, as a pattern or between "
      "commas, and --file_out the directory of their translations"
    )
  if options.trace_dir:
    raise InputError("--trace_dir watches no search of --runner's workers")
  for name in ("tf_gpu_thread_mode", "per_gpu_thread_count", "enable_xla"):
    if name in options.given:
      raise InputError(
        f"--{name} is about this process, not the workers of --runner, whose "
        "environment is theirs: leave it out"
      )
  if file_system.is_file(options.file_out):
    raise InputError(
      f"--file_out={options.file_out} is a file, not a directory"
    )


def _check_trace(options: PredictOptions) -> None:
  """Refuses to watch a search that cannot be."""
  if not options.trace_dir:
    return
  if options.answers or options.engine != TENSORFLOW or options.padded_decode:
    raise InputError(
      "--trace_dir watches TensorFlow's search of --file or --text, step by "
      "step: leave --interactive, --engine and --padded_decode out"
    )
  if file_system.is_file(options.trace_dir):
    raise InputError(f"--trace_dir={options.trace_dir} is a file")
  options.check_formats()


def _check_guidance(options: PredictOptions) -> None:
  """Refuses flags that contradict samples, phrases or penalties."""
  search = options.check_guidance()
  if options.files_by_line and options.answers:
    by_line = " and ".join(f"--{name}" for name in options.files_by_line)
    raise InputError(
      f"{by_line}: nobody knows beforehand which lines will be typed; give "
      "them by --file"
    )
  guided = search.changes_search or bool(options.files_by_line)
  if (guided or search.mbr) and options.runner:
    raise InputError(
      "--runner cannot guide the search: samples, phrases, penalties and "
      "--mbr need --mode=predict without --runner"
    )
  if guided and options.trace_dir:
    raise InputError(
      "--trace_dir writes plain searches: leave samples, phrases and "
      "penalties out"
    )
