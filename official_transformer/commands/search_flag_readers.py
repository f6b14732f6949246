"""Reading what is searched for, besides what the model finds best."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from absl import flags

from official_transformer.commands.flag_readers import (
  answers_lines,
  predicts,
)
from official_transformer.data import text_files
from official_transformer.decoding.phrases import (
  DecodingConstraints,
  LineRequest,
)
from official_transformer.errors import InputError
from official_transformer.search.options import (
  Sampling,
  SamplingRule,
  SearchOptions,
)

FLAGS = flags.FLAGS

_BY_LINE = ("prefix_file", "required_phrases")


def read_search_options() -> SearchOptions:
  """Reads how a search is guided, in modes that have such flags."""
  if not predicts():
    return SearchOptions()
  sampling = None
  if FLAGS.sample:
    rule = SamplingRule(FLAGS.temperature, FLAGS.top_k, FLAGS.top_p)
    sampling = Sampling(rule, FLAGS.sample_seed)
  forbidden: tuple[str, ...] = ()
  if FLAGS.forbidden_phrases:
    lines = text_files.read_lines(FLAGS.forbidden_phrases)
    forbidden = tuple(line.strip() for line in lines if line.strip())
  return SearchOptions(
    FLAGS.no_repeat_ngram_size,
    FLAGS.repetition_penalty,
    FLAGS.min_length,
    FLAGS.coverage_penalty,
    forbidden,
    sampling,
    FLAGS.mbr,
    any(FLAGS[name].value for name in _BY_LINE),
  )


def check_search_flags() -> None:
  """Refuses files that are missing, and flags that do not go together."""
  for name in (*_BY_LINE, "forbidden_phrases"):
    if path := FLAGS[name].value:
      text_files.check_input(path)
      if path == text_files.STANDARD_STREAM:
        raise InputError(f"--{name} is a file, not standard input")
  by_line = [f"--{name}" for name in _BY_LINE if FLAGS[name].value]
  if by_line and answers_lines():
    raise InputError(
      f"{' and '.join(by_line)}: nobody knows beforehand which lines will be "
      "typed; give them by --file"
    )
  options = read_search_options()
  if (
    (options.changes_search or options.mbr)
    and "runner" in FLAGS
    and FLAGS.runner
  ):
    raise InputError(
      "--runner searches for what the model finds best: samples, phrases, "
      "penalties and --mbr are for --mode=predict without it"
    )
  if options.changes_search and "trace_dir" in FLAGS and FLAGS.trace_dir:
    raise InputError(
      "--trace_dir watches the search as it is, without samples, phrases or "
      "penalties"
    )


def requests(lines: Iterable[str]) -> Iterator[str | LineRequest]:
  """Yields lines with what files say of each, if there are such files.

  Raises:
    InputError: if a file has another number of lines.
  """
  paths = [FLAGS[n].value if n in FLAGS else None for n in _BY_LINE]
  if not any(paths):
    yield from lines
    return
  beside = [
    text_files.read_lines(path) if path else itertools.repeat("")
    for path in paths
  ]
  number = 0
  for number, line in enumerate(lines, start=1):
    found = [next(values, None) for values in beside]
    for name, value in zip(_BY_LINE, found, strict=True):
      if value is None:
        raise _uneven(name, f"ends before line {number}")
    prefix, phrases = (value or "" for value in found)
    wanted = tuple(p.strip() for p in phrases.split("\t") if p.strip())
    yield LineRequest(line, DecodingConstraints(prefix.strip(), wanted))
  for name, path, values in zip(_BY_LINE, paths, beside, strict=True):
    if path and next(values, None) is not None:
      raise _uneven(name, f"goes on after line {number}")


def check_line_counts() -> None:
  """Refuses files with more or fewer lines than there are to translate.

  Those that only reading counts are found out by `requests`.
  """
  paths = {name: FLAGS[name].value for name in _BY_LINE if FLAGS[name].value}
  if not paths:
    return
  lines = 1 if FLAGS.text is not None else text_files.count_lines(FLAGS.file)
  for name, path in paths.items():
    count = text_files.count_lines(path)
    if None not in (lines, count) and count != lines:
      raise _uneven(
        name, f"has another number of lines ({count}) than the text ({lines})"
      )


def _uneven(name: str, said: str) -> InputError:
  return InputError(
    f"--{name}={FLAGS[name].value} {said}: line n of it is for line n of what "
    "is translated"
  )
