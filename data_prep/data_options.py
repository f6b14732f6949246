"""Flags of the commands that read parallel text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from data_prep.encoding.augmentation import ALL
from data_prep.encoding.filters import FilterSettings
from data_prep.reading.corpora import (
  VOCAB_TYPES,
  Corpus,
  WantedVocabulary,
)
from official_transformer.commands.flag_records import Options, flag
from official_transformer.errors import InputError
from official_transformer.text.scripts import SCRIPTS
from official_transformer.text.text_form import NORMALIZATIONS, TextForm
from official_transformer.text.tokenizer import SENTENCEPIECE_TYPES

_FILES = (
  "UTF-8 text, one sentence a line; plain, .gz, .bz2, .xz or .zst, several "
  "files between commas."
)
_PAIRS = (
  "Files each line of which holds a source, a tab and its target; further "
  "columns are not looked at. Beside or instead of the other two."
)
_SCRIPT = "Leave out pairs whose {} is of other letters."
_OWN_SIZE = (
  "Make a vocabulary of this many entries for the {} alone. The other side "
  "then needs its own vocabulary, too, and the model has two embedding tables."
)
_OWN_FILE = "Use this vocabulary for the {} alone."
_OWN_TYPE = (
  "Make a vocabulary of this kind for the {} alone, such as characters for "
  "Chinese beside subwords for English."
)
_LANGUAGE = (
  "Language of the {} as an ISO 639-1 code such as en: its rules cut the text "
  "into words. Needed by a vocabulary of words alone."
)


def _makes_no(vocab_type: str) -> Callable[[VocabularyOptions], bool]:
  """Returns whether no side gets a vocabulary of a kind."""
  return lambda options: vocab_type not in options.made_types


_NO_VOCABULARY = (
  lambda o: all(kind is None for kind in o.made_types),
  "no vocabulary is made",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextOptions(Options):
  """Flags of text files."""

  heading = "Text"

  train_source: tuple[str, ...] = flag((), _FILES, path=True)
  train_target: tuple[str, ...] = flag((), _FILES, path=True)
  dev_source: tuple[str, ...] = flag((), _FILES, path=True)
  dev_target: tuple[str, ...] = flag((), _FILES, path=True)
  train_pairs: tuple[str, ...] = flag((), _PAIRS, path=True)
  dev_pairs: tuple[str, ...] = flag((), _PAIRS, path=True)

  @property
  def corpora(self) -> dict[str, Corpus]:
    """The text that was named, by its tag."""
    corpora = {
      "train": Corpus(self.train_source, self.train_target, self.train_pairs),
      "dev": Corpus(self.dev_source, self.dev_target, self.dev_pairs),
    }
    return {tag: corpus for tag, corpus in corpora.items() if corpus.paths}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormOptions(Options):
  """The form of all text."""

  heading = "The form of the text, kept with the data and the model"

  normalize: str = flag(
    "none",
    "Unicode's normal form to bring all text into.",
    choices=tuple(NORMALIZATIONS),
  )
  lowercase: bool = flag(False, "Lowercase all text.")

  @property
  def form(self) -> TextForm:
    """The form of all text."""
    return TextForm(self.normalize, self.lowercase)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilterOptions(Options):
  """Flags of filters."""

  heading = "Pairs that are left out, besides those with an empty side"

  invalid_utf8: str = flag(
    "error",
    "Treatment of pairs with bytes that are not UTF-8.",
    choices=("error", "drop"),
  )
  drop_control_characters: bool = flag(
    False, "Leave out pairs with control characters other than tabs."
  )
  drop_identical: bool = flag(
    False, "Leave out pairs whose sides are the same."
  )
  drop_duplicates: bool = flag(
    False, "Keep only the first of equal training pairs."
  )
  held_out: tuple[str, ...] = flag(
    (),
    "Text files, such as test sets: leave out training pairs one side of which "
    "is a line of them.",
    path=True,
  )
  source_script: str | None = flag(
    None, _SCRIPT.format("source"), choices=tuple(sorted(SCRIPTS))
  )
  target_script: str | None = flag(
    None, _SCRIPT.format("target"), choices=tuple(sorted(SCRIPTS))
  )
  min_script_share: float = flag(
    0.5,
    "How many of a line's letters must be of its script.",
    (
      lambda o: not (o.source_script or o.target_script),
      "there is no --source_script or --target_script",
    ),
    lower_bound=0,
    upper_bound=1,
  )
  max_tokens: int = flag(
    0,
    "Leave out pairs with a side of more tokens, EOS included. 0 keeps them; "
    "training then leaves out pairs over its --max_length.",
    lower_bound=0,
  )
  max_length_ratio: float = flag(
    0.0,
    "Leave out pairs with a side that has more than this many times the "
    "other's tokens; 0 keeps them.",
    lower_bound=0,
  )

  @property
  def filters(self) -> FilterSettings:
    """These flags as `FilterSettings`."""
    return FilterSettings(
      invalid_utf8=self.invalid_utf8,
      control_characters=self.drop_control_characters,
      identical=self.drop_identical,
      duplicates=self.drop_duplicates,
      held_out=self.held_out,
      max_tokens=self.max_tokens,
      max_ratio=self.max_length_ratio,
      source_script=self.source_script,
      target_script=self.target_script,
      script_share=self.min_script_share,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AugmentOptions(Options):
  """Training pairs that are rewritten."""

  heading = "Training text as people write it"

  augment: str = flag(
    "",
    "Rewrite some training pairs: kinds with their shares, such as "
    "upper:.05,merge:.1. On both sides: upper (capitals), title (a capital for "
    "each word), lower (no capitals), endpunct (the last mark is left out, or "
    "a full stop added), merge (pairs that follow each other on one line). On "
    "the source alone: typos. all: " + ALL + ".",
  )
  augment_passes: int = flag(
    1,
    "Number of times that the training text is written, each time with other "
    "pairs rewritten; an epoch becomes that many times as long.",
    (lambda o: not o.augment, "there is no --augment"),
    lower_bound=1,
    upper_bound=20,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyOptions(Options):
  """The vocabulary, of both sides or of each."""

  heading = "Vocabulary"

  vocab_type: str = flag(
    "sentencepiece",
    "The vocabulary to make: a SentencePiece model of subwords, the official "
    "model's subtokens, whole words with punctuation split off (a vocabulary "
    "for each side; needs the extra [words]), or single characters.",
    (lambda o: o.vocab_file, "--vocab_file is a vocabulary that exists"),
    (
      lambda o: all(said["type"] or said["file"] for said in o.sides.values()),
      "each side has a file or a type of its own",
    ),
    choices=VOCAB_TYPES,
  )
  source_vocab_type: str | None = flag(
    None, _OWN_TYPE.format("source"), choices=VOCAB_TYPES
  )
  target_vocab_type: str | None = flag(
    None, _OWN_TYPE.format("target"), choices=VOCAB_TYPES
  )
  source_language: str | None = flag(
    None,
    _LANGUAGE.format("source"),
    (
      lambda o: o.made_types[0] != "word",
      "no vocabulary of words is made for the source",
    ),
  )
  target_language: str | None = flag(
    None,
    _LANGUAGE.format("target"),
    (
      lambda o: o.made_types[-1] != "word",
      "no vocabulary of words is made for the target",
    ),
  )
  min_frequency: int = flag(
    1,
    "Words that occur fewer times are left out of a vocabulary of words; to "
    "the model they are unknown.",
    (_makes_no("word"), "no vocabulary of words is made"),
    lower_bound=1,
  )
  sentencepiece_model_type: str = flag(
    "unigram",
    "Kind of a SentencePiece model: unigram language model, byte pair "
    "encoding, text between blanks (punctuation sticks to its word: see "
    "--vocab_type=word), or single characters.",
    (
      _makes_no("sentencepiece"),
      "no SentencePiece model of subwords is made",
    ),
    choices=tuple(SENTENCEPIECE_TYPES),
  )
  vocab_size: int = flag(
    8000,
    "Entries of the vocabulary that source and target share. A small corpus "
    "may yield fewer. With --vocab_type=word: most words of each side, all "
    "if unset.",
    _NO_VOCABULARY,
    lower_bound=32,
  )
  vocab_file: str | None = flag(
    None,
    "Use this vocabulary instead of making one.",
    path=True,
    short_name="vf",
  )
  source_vocab_size: int | None = flag(
    None, _OWN_SIZE.format("source"), lower_bound=32
  )
  source_vocab_file: str | None = flag(
    None, _OWN_FILE.format("source"), path=True
  )
  target_vocab_size: int | None = flag(
    None, _OWN_SIZE.format("target"), lower_bound=32
  )
  target_vocab_file: str | None = flag(
    None, _OWN_FILE.format("target"), path=True
  )
  vocab_sample: int = flag(
    200_000,
    "Pairs of the training data from which a vocabulary is made, drawn evenly; "
    "0 is all. SentencePiece takes 1.5 GB of memory for a million lines.",
    _NO_VOCABULARY,
    lower_bound=0,
  )

  def __post_init__(self) -> None:
    sides = self.sides
    own = [f"--{side}_vocab_{what}" for side in sides for what in sides[side]]
    given = self._has_own
    if given and (self.vocab_file or "vocab_size" in self.given):
      raise InputError(
        "--vocab_size and --vocab_file are for one vocabulary of both sides, "
        f"{', '.join(own)} for one of each: leave out the one or the other"
      )
    for side, said in sides.items():
      if said["file"] and (said["size"] or said["type"]):
        raise InputError(
          f"--{side}_vocab_file is a vocabulary that exists, "
          f"--{side}_vocab_size and --{side}_vocab_type are for one that is "
          "made: leave out the one or the other"
        )
      if given and self.vocab_type != "word" and not any(said.values()):
        raise InputError(
          f"the {side} needs --{side}_vocab_size, --{side}_vocab_type or "
          f"--{side}_vocab_file, because the other side has a vocabulary of "
          "its own"
        )
    for side, wanted in zip(sides, self.separate or (), strict=False):
      if wanted.vocab_type == "word" and not wanted.language:
        raise InputError(
          f"a vocabulary of words needs --{side}_language, such as en: each "
          "language has its own abbreviations and apostrophes"
        )

  @property
  def sides(self) -> dict[str, dict[str, int | str | None]]:
    """The flags of each side's own vocabulary: size, type and file."""
    return {
      "source": {
        "size": self.source_vocab_size,
        "type": self.source_vocab_type,
        "file": self.source_vocab_file,
      },
      "target": {
        "size": self.target_vocab_size,
        "type": self.target_vocab_type,
        "file": self.target_vocab_file,
      },
    }

  @property
  def _has_own(self) -> bool:
    """Whether a flag asks for a vocabulary of one side alone."""
    return any(any(said.values()) for said in self.sides.values())

  @property
  def separate(self) -> tuple[WantedVocabulary, WantedVocabulary] | None:
    """The vocabularies of source and target; None if they share one."""
    if not self._has_own and (self.vocab_type != "word" or self.vocab_file):
      return None
    bound = self.vocab_size if "vocab_size" in self.given else None
    return (
      WantedVocabulary(
        self.source_vocab_size or bound,
        self.source_vocab_file,
        None if self.source_vocab_file else self._type_of("source"),
        self.source_language,
      ),
      WantedVocabulary(
        self.target_vocab_size or bound,
        self.target_vocab_file,
        None if self.target_vocab_file else self._type_of("target"),
        self.target_language,
      ),
    )

  @property
  def made_types(self) -> tuple[str | None, ...]:
    """The kinds of the vocabularies that are made; None for a given file."""
    if self.separate:
      return tuple(wanted.vocab_type for wanted in self.separate)
    return (None if self.vocab_file else self.vocab_type,)

  def _type_of(self, side: str) -> str:
    """Returns the kind of vocabulary that is made for a side."""
    return str(self.sides[side]["type"] or self.vocab_type)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions(Options):
  """Flag of the number of processes."""

  workers: int | None = flag(
    None,
    "Processes; one a processor if unset. The data are the same.",
    lower_bound=1,
  )
