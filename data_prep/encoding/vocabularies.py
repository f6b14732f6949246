"""Making the vocabularies of some data."""

from __future__ import annotations

import os
from typing import NamedTuple

from absl import logging

from data_prep.encoding.augmentation import Augmenter
from data_prep.encoding.pair_encoder import PairCleaner
from data_prep.encoding.scratch import Scratch
from data_prep.reading.corpora import Corpus, DataSettings
from data_prep.reading.sampling import sample_pairs
from data_prep.reading.text_blocks import read_blocks
from official_transformer.errors import InputError
from official_transformer.storage.durable_files import copy_file
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.tokenizer import train_sentencepiece
from official_transformer.text.vocabulary_files import VocabFiles, describe
from official_transformer.text.word_vocabulary import WordTokenizer

# The sample's files, and that they are whole.
_TEXTS = ("sample.source", "sample.target")
_SAMPLED = "sampled"
_SUFFIXES = {
  "sentencepiece": ".model",
  "char": ".model",
  "subtoken": ".subtokens",
  "word": ".words",
}
_USUAL_SIZE = 8000


class _Vocabulary(NamedTuple):
  """A vocabulary of the data.

  Attributes:
    name: name of its file.
    size: entries, if it is made; None is all words, of words alone.
    given: an existing one, or None.
    texts: which files of the sample it is made from.
    vocab_type: one of `corpora.VOCAB_TYPES`, if it is made.
    language: ISO 639-1 code, which words are cut by.
  """

  name: str
  size: int | None
  given: str | None
  texts: tuple[str, ...]
  vocab_type: str
  language: str | None = None


def make_vocabularies(
  train: Corpus,
  settings: DataSettings,
  held_out: frozenset[str],
  scratch: Scratch,
) -> VocabFiles:
  """Returns the paths of the data's vocabularies, in the scratch directory.

  Args:
    train: training text.
    settings: kinds and sizes.
    held_out: the lines that no pair may have.
    scratch: where they are put, and found if an earlier run has made them.

  Raises:
    InputError: if there is no text for them.
  """
  wanted = _wanted(settings)
  missing = [v for v in wanted if not scratch.has(v.name)]
  for vocabulary in missing:
    if vocabulary.given:
      copy_file(vocabulary.given, scratch.path(vocabulary.name))
  made = [v for v in missing if not v.given]
  if made and not scratch.has(_SAMPLED):
    _sample(train, settings, held_out, scratch)
    scratch.mark(_SAMPLED)
  for vocabulary in made:
    path = scratch.path(vocabulary.name)
    texts = [scratch.path(name) for name in vocabulary.texts]
    _make(vocabulary, texts, path, settings)
  return VocabFiles(scratch.path(wanted[0].name), scratch.path(wanted[-1].name))


def _make(
  wanted: _Vocabulary, texts: list[str], path: str, settings: DataSettings
) -> None:
  """Makes a vocabulary from some files, and writes it."""
  if wanted.vocab_type == "word":
    language = wanted.language or ""
    WordTokenizer.build(
      texts, language, wanted.size, settings.min_frequency
    ).save(path)
    return
  size = wanted.size or _USUAL_SIZE
  if wanted.vocab_type == "subtoken":
    Subtokenizer.build(texts, size).save(path)
    return
  is_of_characters = wanted.vocab_type == "char"
  train_sentencepiece(
    *(texts, path, size),
    "char" if is_of_characters else settings.sentencepiece_model_type,
  )


def _wanted(settings: DataSettings) -> list[_Vocabulary]:
  """Returns the vocabularies of source and target, or the one of both."""
  if not settings.separate:
    kind, given = settings.vocab_type, settings.vocab_file
    name = (
      os.path.basename(given)
      if given
      else f"vocab.{settings.vocab_size}{_SUFFIXES[kind]}"
    )
    return [_Vocabulary(name, settings.vocab_size, given, _TEXTS, kind)]
  wanted: list[_Vocabulary] = []
  for side, one, text in zip(
    ("source", "target"), settings.separate, _TEXTS, strict=True
  ):
    kind = settings.vocab_type_of(one)
    size = one.size or (None if kind == "word" else _USUAL_SIZE)
    parts = ["vocab", side, *([str(size)] if size else [])]
    name = (
      os.path.basename(one.file)
      if one.file
      else ".".join(parts) + _SUFFIXES[kind]
    )
    wanted.append(
      _Vocabulary(name, size, one.file, (text,), kind, one.language)
    )
  source, target = wanted
  if source.name == target.name:
    if not (source.given and target.given):
      raise InputError(
        f"the given vocabulary {source.name} has the name that the new one "
        "will get: rename the file"
      )
    describe(VocabFiles(source.given, target.given))  # Raises if they differ.
  return wanted


def _sample(
  train: Corpus,
  settings: DataSettings,
  held_out: frozenset[str],
  scratch: Scratch,
) -> None:
  """Writes the text that vocabularies are made from."""
  # Left-out pairs are not counted here, but when the records are made.
  cleaner = PairCleaner(settings.form, settings.filters, held_out)
  # A vocabulary knows text as the training does, capitals among it.
  augmenter = Augmenter(settings.augmentation)
  pairs = 0
  with (
    open(scratch.path(_TEXTS[0]), "w", encoding="utf-8") as sources,
    open(scratch.path(_TEXTS[1]), "w", encoding="utf-8") as targets,
  ):
    for clean in sample_pairs(
      read_blocks(train), cleaner, settings.vocab_sample, settings.seed
    ):
      for source, target in augmenter.apply(clean.sources, clean.targets, 0):
        sources.write(source + "\n")
        targets.write(target + "\n")
      pairs += len(clean.sources)
  if not pairs:
    raise InputError(
      "no pair of the train text is left: the files are empty, or every pair "
      "has an empty side or is filtered out"
    )
  logging.info("making the vocabulary from %d pairs", pairs)
