"""Flags that guide the search."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from official_transformer.commands.flag_records import Options, flag
from official_transformer.errors import InputError
from official_transformer.search.options import (
  Sampling,
  SamplingRule,
  SearchOptions,
)
from official_transformer.text import text_files

if TYPE_CHECKING:
  from official_transformer.decoding.requests import LineRequest

_BY_LINE = ("prefix_file", "required_phrases")
_NO_SAMPLE = (lambda o: not o.sample, "nothing is drawn without --sample")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GuidanceOptions(Options):
  """Samples, phrases, prefixes, penalties, and how one is chosen."""

  heading = "Decoding: samples, phrases, penalties"

  sample: bool = flag(
    False,
    "Draw translations from the model's distribution instead of searching for "
    "the best: --n_best of them, or --beam_size to choose from by --mbr.",
  )
  temperature: float = flag(
    1.0,
    "Divides log-probabilities before a token is drawn: below 1, probable ones "
    "become more so.",
    _NO_SAMPLE,
  )
  top_k: int = flag(
    0,
    "Draw from this many of the most probable tokens; 0 is all.",
    _NO_SAMPLE,
    lower_bound=0,
  )
  top_p: float = flag(
    1.0,
    "Nucleus sampling: draw from the fewest most probable tokens whose "
    "probabilities sum up to this; applied after --top_k.",
    _NO_SAMPLE,
  )
  sample_seed: int = flag(
    0,
    "Decides the samples, together with a line's text and the number of "
    "samples: they are the same in any batch, and for equal lines.",
    _NO_SAMPLE,
    lower_bound=0,
  )
  mbr: bool = flag(
    False,
    "Of all hypotheses, or samples, choose the one that is most like the "
    "others by chrF (minimum Bayes risk).",
  )
  prefix_file: str | None = flag(
    None,
    "A file with a prefix for each line: the translation of the line begins "
    "with it.",
    path=True,
  )
  required_phrases: str | None = flag(
    None,
    "A file with one line for each source line: the phrases that its "
    "translation must contain, separated by tabs. A missing phrase is reported "
    "as unmet.",
    path=True,
  )
  forbidden_phrases: str | None = flag(
    None,
    "A file of phrases, one a line, that translations must not contain as "
    "whole words. One that remains is reported as unmet.",
    path=True,
  )
  no_repeat_ngram_size: int = flag(
    0,
    "No translation repeats a sequence of this many tokens; 0 allows it.",
    lower_bound=0,
  )
  repetition_penalty: float = flag(
    1.0,
    "Makes tokens that a translation holds already less probable: positive "
    "logits are divided by it, negative ones multiplied.",
  )
  coverage_penalty: float = flag(
    0.0,
    "How much a translation loses for each part of the source that it has not "
    "attended to (Wu et al. 2016); .2 was theirs.",
    lower_bound=0.0,
  )
  min_length: int = flag(
    0, "Tokens that a translation has at least.", lower_bound=0
  )

  @property
  def files_by_line(self) -> dict[str, str]:
    """The files that say something of each line, by the flags' names."""
    paths = {name: getattr(self, name) for name in _BY_LINE}
    return {name: path for name, path in paths.items() if path}

  @property
  def guidance_files(self) -> dict[str, str]:
    """All files that guide the search, by the flags' names."""
    if self.forbidden_phrases is None:
      return self.files_by_line
    return {**self.files_by_line, "forbidden_phrases": self.forbidden_phrases}

  def search(self, samples: int | None = None) -> SearchOptions:
    """Returns the flags as options of the search.

    Args:
      samples: how many are drawn, if any are; None is the beam's size.
    """
    sampling = None
    if self.sample:
      rule = SamplingRule(self.temperature, self.top_k, self.top_p)
      sampling = Sampling(rule, self.sample_seed, samples)
    forbidden: tuple[str, ...] = ()
    if self.forbidden_phrases:
      lines = text_files.read_lines(self.forbidden_phrases)
      forbidden = tuple(line.strip() for line in lines if line.strip())
    return SearchOptions(
      self.no_repeat_ngram_size,
      self.repetition_penalty,
      self.min_length,
      self.coverage_penalty,
      forbidden,
      sampling,
      self.mbr,
    )

  def check_guidance(self) -> SearchOptions:
    """Refuses files that are missing; returns how the search is guided."""
    for name, path in self.guidance_files.items():
      text_files.check_input(path)
      if path == text_files.STANDARD_STREAM:
        raise InputError(f"--{name} is a file, not standard input")
    return self.search()

  def requests(self, lines: Iterable[str]) -> Iterator[str | LineRequest]:
    """Yields lines with their constraints from files, if there are files.

    Raises:
      InputError: if a file has another number of lines.
    """
    paths = self.files_by_line
    if not paths:
      yield from lines
      return
    from official_transformer.decoding.phrases import DecodingConstraints
    from official_transformer.decoding.requests import LineRequest

    beside = {
      name: text_files.read_lines(paths[name])
      if name in paths
      else itertools.repeat("")
      for name in _BY_LINE
    }
    number = 0
    for number, line in enumerate(lines, start=1):
      found = {name: next(values, None) for name, values in beside.items()}
      for name, value in found.items():
        if value is None:
          raise self._uneven(name, f"ends before line {number}")
      prefix, phrases = (found[name] or "" for name in _BY_LINE)
      wanted = tuple(p.strip() for p in phrases.split("\t") if p.strip())
      yield LineRequest(line, DecodingConstraints(prefix.strip(), wanted))
    for name in paths:
      if next(beside[name], None) is not None:
        raise self._uneven(name, f"goes on after line {number}")

  def check_line_counts(self, lines: int | None) -> None:
    """Refuses files with more or fewer lines than there are to translate.

    Counts that need the file to be read are checked by `requests`.

    Args:
      lines: how many there are; None if only reading counts them.
    """
    for name, path in self.files_by_line.items():
      count = text_files.count_lines(path)
      if None not in (lines, count) and count != lines:
        raise self._uneven(
          name, f"has another number of lines ({count}) than the text ({lines})"
        )

  def _uneven(self, name: str, said: str) -> InputError:
    return InputError(
      f"--{name}={getattr(self, name)} {said}: line n of it is for line n of "
      "what is translated"
    )
