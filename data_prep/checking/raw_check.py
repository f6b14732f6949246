"""Checks of parallel text: content, and effects of filters and vocabularies."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from data_prep.checking.data_report import Report
from data_prep.checking.text_check import (
  SEPARATORS,
  SideFindings,
  TextCheck,
  TextFindings,
)
from data_prep.checking.vocabulary_check import (
  VocabularyFindings,
  make_tokenizer,
  try_vocabulary,
)
from data_prep.encoding import filters
from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.pair_encoder import CleanPairs, PairCleaner
from data_prep.encoding.workers import Workers
from data_prep.reading.corpora import Corpus, check_sides
from data_prep.reading.sampling import sample_pairs
from data_prep.reading.text_blocks import read_blocks
from official_transformer.data.data_directory import DEV_TAG, TRAIN_TAG
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.text.text_files import STANDARD_STREAM, check_input
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import load_tokenizer

_SEED = 1
_SHOWN_CHARACTERS = 30
_GUESSED_FROM = 20_000  # Letters.


class RawRequest(NamedTuple):
  """Settings of a check of text.

  Attributes:
    form: form into which all text is brought first.
    vocab_sizes: sizes of vocabularies to make.
    vocab_file: an existing one to try instead, or None.
    sample: pairs to try them on.
  """

  form: TextForm
  vocab_sizes: Sequence[int]
  vocab_file: str | None
  sample: int


class RawCheck:
  """Checks the text of a training."""

  def __init__(
    self, report: Report, request: RawRequest, workers: int | None
  ) -> None:
    """Initializes the check.

    Args:
      report: receives the results.
      request: settings of the check.
      workers: processes; None is one a processor.
    """
    self._report = report
    self._request = request
    self._form = request.form
    self._workers = workers

  def run(self, corpora: Mapping[str, Corpus]) -> None:
    """Checks training and development text.

    Raises:
      InputError: if a file cannot be read at all.
    """
    for path in (path for c in corpora.values() for path in c.paths):
      check_input(path)
      if path == STANDARD_STREAM or not file_system.is_file(path):
        raise InputError(f"{path} is read several times; save it in a file")
    found = {}
    for tag, corpus in corpora.items():
      self._report.title(f"{tag}: {', '.join(corpus.paths)}")
      held_out: frozenset[str] = frozenset()
      try:
        check_sides(tag, corpus)
        if tag == TRAIN_TAG and DEV_TAG in corpora:
          # A fault of the development text is reported in its own turn.
          with contextlib.suppress(InputError):
            held_out = self._lines_of(corpora[DEV_TAG])
        of_tag = self._look_at(corpus, held_out)
      except InputError as error:
        # Files of different lengths, or one that is damaged.
        self._report.problem(str(error))
        continue
      found[tag] = of_tag
      self._tell(of_tag, held_out, tag)
    if len(found) == 2:
      self._tell_strange_characters(found[TRAIN_TAG], found[DEV_TAG])
    if TRAIN_TAG in found and found[TRAIN_TAG].usable:
      self._try_vocabularies(corpora[TRAIN_TAG])

  def _lines_of(self, dev: Corpus) -> frozenset[str]:
    """Returns the lines of development text, as they are compared."""
    found = set()
    for block in read_blocks(dev):
      for lines in block.sides():
        for line in lines:
          text = line.decode("utf-8", "replace")
          found.add(self._form.apply(text).strip())
    return frozenset(found - {""})

  def _look_at(self, corpus: Corpus, held_out: frozenset[str]) -> TextFindings:
    scripts = _scripts_of(corpus)
    found = TextFindings()
    for part in Workers(self._workers).each(
      functools.partial(TextCheck, scripts, self._form, held_out),
      TextCheck.check,
      read_blocks(corpus),
    ):
      found.add(part)
    return found

  def _tell(
    self, found: TextFindings, held_out: frozenset[str], tag: str
  ) -> None:
    """Reports the findings about a corpus."""
    report = self._report
    total = found.source.lines
    for name, side in (("source", found.source), ("target", found.target)):
      _tell_side(report, name, side)
    if not found.usable:
      report.problem("no pair has text on both sides")
      return
    duplicates, sources = found.duplicates()
    if tag == TRAIN_TAG:
      found.dropped[filters.DUPLICATE] = duplicates
    report.say("what each filter would leave out by itself:")
    names = {
      filters.SOURCE_SCRIPT: f"--source_script={found.source.main_script()}",
      filters.TARGET_SCRIPT: f"--target_script={found.target.main_script()}",
    }
    report.shares(
      {names.get(why, why): n for why, n in sorted(found.dropped.items())},
      total,
    )
    report.say(f"pairs whose source has come before: {sources}")
    if held_out:
      report.say(
        f"lines of the development text that are in it: {len(found.held_out)} "
        f"of {len(held_out)} different ones"
      )

  def _tell_strange_characters(
    self, train: TextFindings, dev: TextFindings
  ) -> None:
    self._report.title("characters of the development text not in training")
    for name, known, asked in (
      ("source", train.source, dev.source),
      ("target", train.target, dev.target),
    ):
      strange = sorted(asked.letters.keys() - known.letters.keys())
      times = sum(asked.letters[c] for c in strange)
      shown = " ".join(strange[:_SHOWN_CHARACTERS])
      self._report.say(
        f"{name}: {len(strange)}, {times} times"
        + (f": {shown}" if strange else "")
      )

  def _try_vocabularies(self, train: Corpus) -> None:
    """Reports how vocabularies cut the text, and how long pairs are then."""
    report = self._report
    cleaner = PairCleaner(self._form, FilterSettings(invalid_utf8="drop"))
    sample = CleanPairs([], [], [], collections.Counter())
    for part in sample_pairs(
      read_blocks(train), cleaner, self._request.sample, _SEED
    ):
      sample.sources.extend(part.sources)
      sample.targets.extend(part.targets)
    found: list[VocabularyFindings] = []
    unusable: list[str] = []
    if self._request.vocab_file:
      tokenizer = load_tokenizer(self._request.vocab_file)
      found.append(try_vocabulary(tokenizer, sample.sources, sample.targets))
    for size in () if found else self._request.vocab_sizes:
      try:
        tokenizer = make_tokenizer(sample, size)
      except InputError as error:
        unusable.append(str(error))
        continue
      found.append(try_vocabulary(tokenizer, sample.sources, sample.targets))
    if not found:
      if unusable:
        report.title("vocabularies")
        report.problem("; ".join(unusable))
      return
    report.title(f"vocabularies for both sides, of {len(sample.sources)} pairs")
    report.table(
      (
        *("entries", "source tokens/word", "/line", "<unk>"),
        *("target tokens/word", "/line", "<unk>"),
      ),
      [
        (
          one.size,
          *(
            cell
            for side in (one.source, one.target)
            for cell in (
              f"{side.a_word:.2f}",
              f"{side.a_line:.1f}",
              f"{side.unknown:.4%}",
            )
          ),
        )
        for one in found
      ],
    )
    for said in unusable:
      report.say(said)
    # The middle size stands for the vocabulary that will be made later.
    middle = found[(len(found) - 1) // 2]
    report_lengths(report, middle.lengths, f"{middle.size} entries")
    show_worst(report, middle.lengths, sample.sources, sample.targets)


def report_lengths(report: Report, lengths: np.ndarray, of: str) -> None:
  """Reports how long and how unequal pairs are.

  Args:
    report: gets it.
    lengths: [pairs, 2], tokens, EOS included.
    of: by which vocabulary.
  """
  longer = lengths.max(1)
  ratio = ratios(lengths)
  report.title(f"lengths by the vocabulary of {of}")
  report.shares(
    {
      f"--max_tokens={report.max_tokens}": int(
        (longer > report.max_tokens).sum()
      ),
      f"--max_length_ratio={report.max_ratio:g}": int(
        (ratio > report.max_ratio).sum()
      ),
    },
    len(lengths),
  )
  if (longer > report.max_tokens).all():
    report.problem(
      f"every pair has a side of over {report.max_tokens} tokens, and training "
      "leaves out what is over its --max_length"
    )
  report.histogram("tokens of the longer side", longer)
  report.histogram("ratio of the longer side to the shorter", ratio)


def show_worst(
  report: Report,
  lengths: np.ndarray,
  sources: Sequence[str],
  targets: Sequence[str],
) -> None:
  """Shows the longest pairs and the most unequal ones."""
  ratio = ratios(lengths)
  for title, values in (
    ("most unequal pairs", ratio),
    ("longest pairs", lengths.max(1)),
  ):
    order = np.argsort(-values, kind="stable")[: report.worst]
    report.pairs(
      title,
      (
        (
          f"{lengths[n, 0]} and {lengths[n, 1]} tokens",
          *(sources[n], targets[n]),
        )
        for n in order.tolist()
      ),
    )


def ratios(lengths: np.ndarray) -> np.ndarray:
  """Returns the longer side by the shorter, EOS apart, as filters have it."""
  tokens = np.maximum(lengths - 1, 1)
  return tokens.max(1) / tokens.min(1)


def _tell_side(report: Report, name: str, side: SideFindings) -> None:
  lines = max(side.lines, 1)
  words = sum(n * count for n, count in side.words.items())
  characters = sum(n * count for n, count in side.characters.items())
  report.say(
    f"{name}: {side.lines} lines, {words / lines:.1f} words and "
    f"{characters / lines:.1f} characters each, at most "
    f"{max(side.words, default=0)} and {max(side.characters, default=0)}; "
    f"{len(side.letters)} different characters"
  )
  scripts = ", ".join(f"{n} {share:.2%}" for n, share in side.scripts()[:4])
  report.say(f"  letters: {scripts or 'none'}")
  if side.carriage_returns:
    report.say(
      f"  line ends: {side.carriage_returns} with a carriage return, which is "
      "left out"
    )
  for character, count in sorted(side.separators.items()):
    report.say(f"  odd: {SEPARATORS[character]} in {count} lines")
  for form, count in sorted(side.changed.items()):
    report.say(f"  --normalize={form} would change {count} lines")
  if side.not_utf8:
    report.problem(
      f"{side.not_utf8} lines of the {name} are not UTF-8 ("
      + "; ".join(map(str, side.first_not_utf8))
      + "): convert the file, or drop them with --invalid_utf8=drop"
    )


def _scripts_of(corpus: Corpus) -> tuple[str | None, str | None]:
  """Guesses the script of each side from the beginning of the text."""
  sides = SideFindings(), SideFindings()
  for block in read_blocks(corpus):
    sources, targets = block.sides()
    sides[0].look_at(sources[:2000], block.source_name, 1)
    sides[1].look_at(targets[:2000], block.target_name, 1)
    if min(sum(side.letters.values()) for side in sides) > _GUESSED_FROM:
      break
  return sides[0].main_script(), sides[1].main_script()
