"""Trial vocabularies of several sizes for some text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_prep.encoding.pair_encoder import CleanPairs
from official_transformer.model_params import UNK_ID
from official_transformer.text.tokenizer import (
  Tokenizer,
  has_unknown,
  load_tokenizer,
  train_sentencepiece,
)


class SideTokens(NamedTuple):
  """Tokens of one side.

  Attributes:
    a_word: tokens a word; of text without spaces, a line is one word.
    a_line: tokens a line, EOS included.
    unknown: share of tokens that are the unknown token, for text that the
      vocabulary lacks.
  """

  a_word: float
  a_line: float
  unknown: float


class VocabularyFindings(NamedTuple):
  """Statistics of a text under a vocabulary.

  Attributes:
    size: number of entries.
    source: statistics of the source.
    target: statistics of the target.
    lengths: int64 [pairs, 2], tokens of each, EOS included.
  """

  size: int
  source: SideTokens
  target: SideTokens
  lengths: np.ndarray


def make_tokenizer(sample: CleanPairs, size: int) -> Tokenizer:
  """Returns a SentencePiece vocabulary of some text.

  Args:
    sample: the text.
    size: most entries.

  Raises:
    InputError: if SentencePiece cannot make one.
  """
  with tempfile.TemporaryDirectory() as directory:
    text = os.path.join(directory, "text")
    with open(text, "w", encoding="utf-8", newline="\n") as stream:
      for lines in (sample.sources, sample.targets):
        stream.writelines(line + "\n" for line in lines)
    path = os.path.join(directory, "vocabulary")
    train_sentencepiece([text], path, size)
    return load_tokenizer(path)


def try_vocabulary(
  tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str]
) -> VocabularyFindings:
  """Returns statistics of pairs of lines under a vocabulary."""
  source, source_lengths = _cut(tokenizer, sources)
  target, target_lengths = _cut(tokenizer, targets)
  lengths = np.stack([source_lengths, target_lengths], axis=1)
  return VocabularyFindings(tokenizer.vocab_size, source, target, lengths)


def _cut(
  tokenizer: Tokenizer, lines: Sequence[str]
) -> tuple[SideTokens, np.ndarray]:
  """Returns how lines are cut, and the tokens of each."""
  ids = [tokenizer.encode(line, add_eos=True) for line in lines]
  counts = np.array(list(map(len, ids)), np.int64)
  words = sum(len(line.split()) for line in lines)
  unknown = 0
  if has_unknown(tokenizer, [UNK_ID]):
    unknown = sum(row.count(UNK_ID) for row in ids)
  tokens = max(int(counts.sum()) - len(lines), 1)
  return (
    SideTokens(tokens / max(words, 1), float(counts.mean()), unknown / tokens),
    counts,
  )
