"""Making the vocabulary of some data."""

from __future__ import annotations

import os

from absl import logging

from data_prep.corpora import Corpus, DataSettings
from data_prep.pair_encoder import PairCleaner
from data_prep.sampling import sample_pairs
from data_prep.scratch import Scratch
from data_prep.text_blocks import read_blocks
from official_transformer.data.subtokenizer import Subtokenizer
from official_transformer.data.tokenizer import train_sentencepiece
from official_transformer.errors import InputError
from official_transformer.storage.durable_files import copy_file

_SUFFIXES = {"sentencepiece": ".model", "subtoken": ".subtokens"}


def vocabulary_name(settings: DataSettings) -> str:
  """Returns the name of the vocabulary's file."""
  if settings.vocab_file:
    return os.path.basename(settings.vocab_file)
  return f"vocab.{settings.vocab_size}{_SUFFIXES[settings.vocab_type]}"


def make_vocabulary(
  train: Corpus,
  settings: DataSettings,
  held_out: frozenset[str],
  scratch: Scratch,
) -> str:
  """Returns the path of the data's vocabulary, in the scratch directory.

  Args:
    train: what it is made from.
    settings: of what kind.
    held_out: the lines that no pair may have.
    scratch: where it is put, and found if an earlier run has made it.

  Raises:
    InputError: if there is no text for it.
  """
  path = scratch.path(vocabulary_name(settings))
  if os.path.exists(path):
    return path
  if settings.vocab_file:
    copy_file(settings.vocab_file, path)
    return path
  # Whoever encodes the pairs counts what is left out, and refuses it.
  files = [scratch.path("sample.source"), scratch.path("sample.target")]
  cleaner = PairCleaner(settings.form, settings.filters, held_out)
  pairs = 0
  with (
    open(files[0], "w", encoding="utf-8", newline="\n") as sources,
    open(files[1], "w", encoding="utf-8", newline="\n") as targets,
  ):
    for clean in sample_pairs(
      read_blocks(train), cleaner, settings.vocab_sample, settings.seed
    ):
      sources.writelines(line + "\n" for line in clean.sources)
      targets.writelines(line + "\n" for line in clean.targets)
      pairs += len(clean.sources)
  if not pairs:
    raise InputError(
      "no pair of --train_source and --train_target is left: the files are "
      "empty, or every pair has an empty side or is filtered out"
    )
  logging.info("making a vocabulary from %d pairs", pairs)
  if settings.vocab_type == "subtoken":
    Subtokenizer.build(files, settings.vocab_size).save(path)
  else:
    train_sentencepiece(files, path, settings.vocab_size)
  return path
