"""Corpora, and settings of their preparation; without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from data_prep.encoding.augmentation import Augmentation
from data_prep.encoding.filters import FilterSettings
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.text.text_files import STANDARD_STREAM, check_input
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import load_tokenizer
from official_transformer.text.word_vocabulary import WordTokenizer

# A SentencePiece model of subwords, the official model's subtokens, whole words
# with punctuation split off, and a SentencePiece model of single characters.
VOCAB_TYPES = ("sentencepiece", "subtoken", "word", "char")


@dataclasses.dataclass(frozen=True)
class Corpus:
  """Parallel text: line n of a source file translates as line n of its target.

  All files may be plain, .gz, .bz2, .xz or .zst; one of all may be `-`.

  Attributes:
    sources: paths.
    targets: as many paths.
    pairs: paths of files each line of which is a source, a tab and a target;
      they come after the others.
  """

  sources: Sequence[str] = ()
  targets: Sequence[str] = ()
  pairs: Sequence[str] = ()

  @property
  def paths(self) -> list[str]:
    """All files."""
    return [*self.sources, *self.targets, *self.pairs]

  def mapped(self, function: Callable[[str], str]) -> Corpus:
    """Returns the corpus with other paths for the same text."""
    return Corpus(
      *(
        [function(path) for path in paths]
        for paths in (self.sources, self.targets, self.pairs)
      )
    )

  def file_pairs(self) -> Iterator[tuple[str, str | None]]:
    """Yields each source file with its target file; None: it has both."""
    yield from zip(self.sources, self.targets, strict=True)
    for path in self.pairs:
      yield path, None


@dataclasses.dataclass(frozen=True)
class WantedVocabulary:
  """A vocabulary that one side has to itself.

  Attributes:
    size: entries, if it is made; None is all words of the text, and 8,000 of
      the other kinds.
    file: an existing one to use instead, or None.
    vocab_type: one of `VOCAB_TYPES`; None is the type in `DataSettings`.
    language: ISO 639-1 code, which a vocabulary of words is cut by.
  """

  size: int | None = None
  file: str | None = None
  vocab_type: str | None = None
  language: str | None = None


@dataclasses.dataclass(frozen=True)
class Shares:
  """The shares of a corpus, which add up to 1.

  Attributes:
    train: share of the training pairs.
    dev: share of the development pairs.
    test: share of the test pairs.
  """

  train: float
  dev: float
  test: float

  @classmethod
  def parse(cls, text: str) -> Shares:
    """Returns the shares that a flag names, such as `.7,.15,.15`.

    Args:
      text: shares of training, development and, if there is to be any, test
        pairs, between commas.

    Raises:
      InputError: if the text is not such a list.
    """
    try:
      shares = [float(share) for share in text.split(",")]
    except ValueError:
      shares = []
    if (
      len(shares) not in (2, 3)
      or min(shares) < 0
      or not shares[0]
      or abs(sum(shares) - 1) > 1e-6
    ):
      raise InputError(
        f"--split={text}: pass the shares of training, development and test "
        "pairs, which add up to 1, such as --split=.7,.15,.15"
      )
    return cls(*shares, *[0.0] * (3 - len(shares)))


@dataclasses.dataclass(frozen=True)
class DataSettings:
  """Settings of a preparation.

  Attributes:
    data_dir: where to write.
    vocab_type: one of `VOCAB_TYPES`; words need a vocabulary for each side.
    vocab_size: entries of a vocabulary that is made for both sides.
    vocab_file: an existing vocabulary to use instead, or None.
    separate: vocabularies of source and target, in the place of these two; None
      if both sides share one.
    vocab_sample: pairs that a vocabulary is made from; 0 is all.
    shards: files the training data is spread over.
    seed: seed of the shuffle, and of the sample.
    form: form into which all text is brought.
    filters: which pairs are left out.
    workers: processes; None is one a processor. The result is the same.
    prefix: how the names of the shards begin.
    sentencepiece_model_type: one of `tokenizer.SENTENCEPIECE_TYPES`.
    augmentation: which training pairs are rewritten.
    min_frequency: words seen fewer times are unknown, in a vocabulary of words.
    split: shares of the training corpus that become development and test text;
      None splits nothing.
  """

  data_dir: str
  vocab_type: str = "sentencepiece"
  vocab_size: int = 8000
  vocab_file: str | None = None
  separate: tuple[WantedVocabulary, WantedVocabulary] | None = None
  vocab_sample: int = 200_000
  shards: int = 8
  seed: int = 1
  form: TextForm = dataclasses.field(default_factory=TextForm)
  filters: FilterSettings = dataclasses.field(default_factory=FilterSettings)
  workers: int | None = None
  prefix: str = "text"
  sentencepiece_model_type: str = "unigram"
  augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
  min_frequency: int = 1
  split: Shares | None = None

  def vocab_type_of(self, side: WantedVocabulary) -> str:
    """Returns the kind of a side's own vocabulary, if it is made."""
    return side.vocab_type or self.vocab_type

  @property
  def given_vocabularies(self) -> list[str]:
    """The files of given vocabularies."""
    files = (
      [side.file for side in self.separate]
      if self.separate
      else [self.vocab_file]
    )
    return [path for path in files if path]

  def to_json(self) -> dict[str, Any]:
    """Returns all that the result depends on."""
    fields = dataclasses.asdict(self)
    del fields["data_dir"], fields["workers"]
    return fields


def check(corpora: Mapping[str, Corpus], settings: DataSettings) -> None:
  """Raises an `InputError` if a corpus lacks a side or a file."""
  if "train" not in corpora or not corpora["train"].paths:
    raise InputError(
      "--train_source and --train_target are needed, or --train_pairs"
    )
  for tag, corpus in corpora.items():
    check_sides(tag, corpus)
  paths = [path for corpus in corpora.values() for path in corpus.paths]
  paths += settings.filters.held_out
  if paths.count(STANDARD_STREAM) > 1:
    raise InputError("only one of the files can be -, standard input")
  for path in settings.filters.held_out:
    check_input(path)
  for path in settings.given_vocabularies:
    load_tokenizer(path)  # Raises InputError for a file that is no vocabulary.
  for side in settings.separate or ():
    if not side.file and settings.vocab_type_of(side) == "word":
      WordTokenizer.empty(side.language or "")  # Raises without sacremoses.


def check_sides(tag: str, corpus: Corpus) -> None:
  """Raises an `InputError` if a corpus lacks a side or a file."""
  if len(corpus.sources) != len(corpus.targets):
    raise InputError(
      f"--{tag}_source names {len(corpus.sources)} files and --{tag}_target "
      f"{len(corpus.targets)}: each source file needs its target file"
    )
  for path in corpus.paths:
    check_input(path)


def state_of(path: str) -> list[Any]:
  """Returns the identity of a file's content: path, size and time."""
  return [file_system.absolute(path), *file_system.state(path)]
