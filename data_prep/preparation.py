"""From parallel text to a vocabulary, shuffled shards and data.json."""

from __future__ import annotations

import collections
import itertools
import os
import tempfile
from collections.abc import Iterator

from absl import logging

from data_prep.corpora import Corpus, DataSettings, check
from data_prep.records import Pair, write_shards
from official_transformer.data.data_directory import (
  DESCRIPTION_FILE,
  DEV_TAG,
  TRAIN_TAG,
  CorpusDescription,
  DataDescription,
  is_shard,
  write_description,
)
from official_transformer.data.identity import Vocabularies, Vocabulary
from official_transformer.data.subtokenizer import Subtokenizer
from official_transformer.data.text_files import read_lines
from official_transformer.data.tokenizer import (
  Tokenizer,
  load_tokenizer,
  train_sentencepiece,
)
from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, copy_file

PREFIX = "text"


def prepare(corpora: dict[str, Corpus], settings: DataSettings) -> None:
  """Makes vocabulary, shards and data.json; logs what came of it.

  Args:
    corpora: `train` and, if there is one, `dev`.
    settings: what to make of them.

  Raises:
    InputError: if a file is missing, or a pair of files does not match.
  """
  check(corpora, settings)
  file_system.make_directories(settings.data_dir)
  # Beside the data, where there is room for them; a remote store has none.
  is_remote = file_system.is_remote(settings.data_dir)
  place = None if is_remote else settings.data_dir
  with tempfile.TemporaryDirectory(dir=place) as scratch:
    texts = {
      tag: CleanText(tag, corpus, scratch) for tag, corpus in corpora.items()
    }
    for tag, text in texts.items():
      if not os.path.getsize(text.source):
        raise InputError(
          f"no pair of --{tag}_source and --{tag}_target is left: the files "
          "are empty, or every pair has an empty side"
        )
    vocab_file = _vocabulary(texts["train"], settings)
    tokenizer = load_tokenizer(vocab_file)
    vocabulary = Vocabulary.of(vocab_file, tokenizer.vocab_size)
    logging.info("vocabulary %s: %d entries", vocab_file, vocabulary.size)
    _remove_earlier_run(settings.data_dir)
    parts = {
      tag: _encode(text, tokenizer, settings) for tag, text in texts.items()
    }
  write_description(
    settings.data_dir,
    DataDescription(
      Vocabularies.joint(vocabulary), parts[TRAIN_TAG], parts.get(DEV_TAG)
    ),
  )


class CleanText:
  """One corpus as two plain files without pairs that have an empty side.

  Attributes:
    tag: `train` or `dev`.
    source: the file of source lines.
    target: the file of target lines.
    dropped: how many pairs were left out, by reason.
  """

  def __init__(self, tag: str, corpus: Corpus, directory: str) -> None:
    self.tag = tag
    self.source = os.path.join(directory, f"{tag}.source")
    self.target = os.path.join(directory, f"{tag}.target")
    self.dropped: collections.Counter[str] = collections.Counter()
    with (
      open(self.source, "w", encoding="utf-8", newline="\n") as source_file,
      open(self.target, "w", encoding="utf-8", newline="\n") as target_file,
    ):
      for source, target in _line_pairs(corpus):
        if not source.strip():
          self.dropped["empty source"] += 1
        elif not target.strip():
          self.dropped["empty target"] += 1
        else:
          source_file.write(source.strip() + "\n")
          target_file.write(target.strip() + "\n")

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields the pairs of lines that were kept."""
    yield from zip(
      read_lines(self.source), read_lines(self.target), strict=True
    )


def _line_pairs(corpus: Corpus) -> Iterator[tuple[str, str]]:
  """Yields pairs of lines; raises if two files differ in their number."""
  for source, target in zip(corpus.sources, corpus.targets, strict=True):
    source_lines, target_lines = read_lines(source), read_lines(target)
    both = itertools.zip_longest(source_lines, target_lines)
    for count, (source_line, target_line) in enumerate(both):
      if source_line is None or target_line is None:
        source_count = count + _count_rest(source_line, source_lines)
        target_count = count + _count_rest(target_line, target_lines)
        raise InputError(
          f"{source} has {source_count} lines and {target} {target_count}: "
          "line n of the one must translate line n of the other. Was a blank "
          "line dropped from one of them?"
        )
      yield source_line, target_line


def _count_rest(line: str | None, rest: Iterator[str]) -> int:
  """Counts a line, unless None, and those after it."""
  return sum(1 for _ in rest) + (line is not None)


def _vocabulary(train: CleanText, settings: DataSettings) -> str:
  """Returns the path of the data's vocabulary, made or copied there."""
  if settings.vocab_file:
    name = os.path.basename(settings.vocab_file)
    path = os.path.join(settings.data_dir, name)
    if file_system.absolute(path) != file_system.absolute(settings.vocab_file):
      copy_file(settings.vocab_file, path)
    return path
  files = [train.source, train.target]
  stem = os.path.join(settings.data_dir, f"vocab.{settings.vocab_size}")
  if settings.vocab_type == "subtoken":
    path = stem + ".subtokens"
    Subtokenizer.build(files, settings.vocab_size).save(path)
  else:
    path = stem + ".model"
    train_sentencepiece(files, path, settings.vocab_size)
  return path


def _remove_earlier_run(data_dir: str) -> None:
  """Removes an earlier run's shards and description.

  Shards of two runs must not mix, nor a description speak of others' shards.
  """
  for name in file_system.names_in(data_dir):
    ours = any(
      name.startswith(f"{PREFIX}-{tag}-")
      and is_shard(name.removesuffix(INCOMPLETE), tag)
      for tag in (TRAIN_TAG, DEV_TAG)
    )
    if ours or name == DESCRIPTION_FILE:
      file_system.remove_file(os.path.join(data_dir, name))


def _encode(
  text: CleanText, tokenizer: Tokenizer, settings: DataSettings
) -> CorpusDescription:
  """Writes one corpus' shards; returns its part of data.json."""
  tokens = [0, 0]

  def encoded() -> Iterator[Pair]:
    for lines in text.lines():
      source, target = (tokenizer.encode(line, add_eos=True) for line in lines)
      for side, ids in (("source", source), ("target", target)):
        if ids == [EOS_ID]:
          # Of characters without width, for instance, the tokenizer keeps none.
          text.dropped[f"{side} without tokens"] += 1
          break
      else:
        tokens[0] += len(source)
        tokens[1] += len(target)
        yield source, target

  train = text.tag == "train"
  histogram = write_shards(
    encoded(),
    settings.data_dir,
    PREFIX,
    text.tag,
    shards=settings.shards if train else 1,
    seed=settings.seed if train else None,
  )
  dropped = ", ".join(f"{n} {why}" for why, n in text.dropped.items())
  pairs = sum(histogram.values())
  if not pairs:
    raise InputError(
      f"no pair of the {text.tag} data has tokens on both sides ({dropped}): "
      "is the vocabulary that of another language?"
    )
  logging.info(
    "%s: %d pairs, %d source and %d target tokens; dropped: %s",
    *(text.tag, pairs, *tokens, dropped or "none"),
  )
  source_tokens, target_tokens = tokens
  return CorpusDescription(
    pairs, source_tokens, target_tokens, dict(text.dropped), histogram
  )
