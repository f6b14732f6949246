"""Reading what is searched for, besides what the model finds best."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from absl import flags

from official_transformer.commands.flag_readers import predicts
from official_transformer.data import text_files
from official_transformer.decoding.phrases import Demands, LineRequest
from official_transformer.decoding.search_options import (
  Sampling,
  SearchOptions,
)
from official_transformer.errors import InputError
from official_transformer.model.search_rules import SamplingRule

FLAGS = flags.FLAGS

_BY_LINE = ("prefix_file", "required_phrases")


def read_search_options() -> SearchOptions:
  """Reads how a search is led; not at all in modes that have no such flags."""
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
  if FLAGS.interactive and by_line:
    raise InputError(
      f"{' and '.join(by_line)}: nobody knows beforehand which lines "
      "--interactive will read; give them by --file"
    )
  options = read_search_options()
  if (options.leads or options.mbr) and "runner" in FLAGS and FLAGS.runner:
    raise InputError(
      "--runner searches for what the model finds best: samples, phrases, "
      "penalties and --mbr are for --mode=predict without it"
    )
  if options.leads and "trace_dir" in FLAGS and FLAGS.trace_dir:
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
  prefixes, required = (
    text_files.read_lines(path) if path else itertools.repeat("")
    for path in paths
  )
  beside = zip(prefixes, required, strict=False)
  number = 0
  for number, line in enumerate(lines, start=1):
    prefix, phrases = next(beside, (None, ""))
    if prefix is None:
      raise InputError(_uneven(paths, f"ends before line {number}"))
    wanted = tuple(p.strip() for p in phrases.split("\t") if p.strip())
    yield LineRequest(line, Demands(prefix.strip(), wanted))
  if FLAGS.text is None and next(beside, None) is not None:
    raise InputError(_uneven(paths, f"goes on after line {number}"))


def _uneven(paths: list[str | None], said: str) -> str:
  names = [f"--{n}={p}" for n, p in zip(_BY_LINE, paths, strict=True) if p]
  return (
    f"{' or '.join(names)} {said}: line n of it is for line n of what is "
    "translated"
  )
