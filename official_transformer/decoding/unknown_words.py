"""Puts source text in the place of a translation's unknown tokens."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from official_transformer.decoding.alignment import piece_weights
from official_transformer.decoding.hypotheses import FoundSequence, as_one_line
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.options import AlignmentRule
from official_transformer.decoding.translation import (
  Hypothesis,
  SpansOfTokens,
)
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.text.tokenizer import (
  Tokenizer,
  formed_text,
  has_unknown,
  has_whole_words,
  plain_tokenizer,
)
from official_transformer.text.vocabulary_files import Tokenizers
from official_transformer.text.word_vocabulary import (
  WORD_START,
  WordTokenizer,
  places_of,
)
from official_transformer.text.words import Span, words_of, words_under

if TYPE_CHECKING:
  from official_transformer.decoding.attention import AttentionReader

_BLANK = "\u2581"  # As SentencePiece writes it.
_UNKNOWN = "\u2047"  # As `Tokenizer.decode` does.


def replace_unknown(
  reader: AttentionReader,
  rule: AlignmentRule | None,
  batch: Sequence[PieceToTranslate],
  found: Sequence[Sequence[FoundSequence]],
  hypotheses: Sequence[Sequence[Hypothesis]],
) -> tuple[list[list[Hypothesis]], SpansOfTokens]:
  """Returns hypotheses with source text in the place of unknown tokens.

  An unknown token becomes, of the source's unknown pieces, the one that it
  attends to most. If the source has none, and the token is a word by itself, it
  becomes the word that it attends to most (Luong et al. 2015, section 3).
  Otherwise it stays.

  Args:
    reader: reader of the attention.
    rule: rule of word alignment; None is the default.
    batch: pieces that were translated.
    found: hypotheses of each, as ids.
    hypotheses: the same as text.

  Returns:
    The hypotheses, and the places of the tokens in those that have changed.

  Raises:
    InputError: if the memory does not suffice.
  """
  rows = [
    (line, n)
    for line, sentence in enumerate(hypotheses)
    for n, hypothesis in enumerate(sentence)
    if hypothesis.has_unknown
  ]
  result = [list(sentence) for sentence in hypotheses]
  spans: dict[tuple[int, int], Sequence[Span]] = {}
  if not rows:
    return result, spans
  crosses = reader.read_cross(
    [(batch[line].ids, [*found[line][n].ids, EOS_ID]) for line, n in rows]
  )
  for (line, n), cross in zip(rows, crosses, strict=True):
    ids = found[line][n].ids
    parts = _parts(
      reader.tokenizers,
      batch[line],
      ids,
      piece_weights(rule or AlignmentRule(), cross),
    )
    text, spans[line, n] = _joined(parts, reader.tokenizers.target)
    result[line][n] = dataclasses.replace(
      result[line][n],
      text=text,
      has_unknown=any(
        token == UNK_ID and _UNKNOWN in part
        for token, part in zip(ids, parts, strict=True)
      ),
    )
  return result, spans


def _parts(
  tokenizers: Tokenizers,
  piece: PieceToTranslate,
  ids: Sequence[int],
  weights: np.ndarray,
) -> list[str]:
  """Returns the text of each token of a translation.

  Args:
    tokenizers: tokenizers of both sides; the target's has an unknown token.
    piece: piece of the source.
    ids: ids of the translation, without EOS.
    weights: [T, S], how much each of its pieces belongs to each source piece.
  """
  formed = formed_text(tokenizers.source, piece.text)
  spans = tokenizers.source.spans(piece.text)
  words = words_of(formed)
  words_of_piece = words_under(words, spans)
  sources = piece.ids[:-1]
  unknown = [
    n for n, i in enumerate(sources) if has_unknown(tokenizers.source, [i])
  ]
  with_word = [n for n, under in enumerate(words_of_piece) if under]
  parts = tokenizers.target.pieces(ids)
  has_words = has_whole_words(tokenizers.target)
  start = _BLANK if has_words else ""
  found = []
  for row, (token, part) in enumerate(zip(ids, parts, strict=True)):
    if token != UNK_ID:
      found.append(part)
    elif unknown:
      best = max(unknown, key=weights[row].__getitem__)
      found.append(start + spans[best].of(formed).strip())
    elif with_word and (has_words or _is_word(parts, row)):
      best = max(with_word, key=weights[row].__getitem__)
      word = "".join(words[n].of(formed) for n in words_of_piece[best])
      found.append(start + word)
    else:
      found.append(start + _UNKNOWN)
  return found


def _is_word(parts: Sequence[str], row: int) -> bool:
  """Returns whether blanks, or the ends of the text, are on both sides."""
  before = parts[row - 1][-1:] if row else _BLANK
  behind = parts[row + 1][:1] if row + 1 < len(parts) else _BLANK
  return before == behind == _BLANK


def _joined(
  parts: Sequence[str], tokenizer: Tokenizer
) -> tuple[str, list[Span]]:
  """Returns a target's parts as one line, and where each is in it."""
  plain = plain_tokenizer(tokenizer)
  if isinstance(plain, WordTokenizer):
    words = [part.removeprefix(WORD_START) for part in parts]
    text = as_one_line(plain.join(words))
    return text, places_of(words, text)
  whole = "".join(parts).replace(_BLANK, " ")
  start = len(whole) - len(whole.lstrip())
  text = as_one_line(whole.strip())
  places = [0, *itertools.accumulate(map(len, parts))]
  places = [min(max(place - start, 0), len(text)) for place in places]
  return text, [Span(*bounds) for bounds in itertools.pairwise(places)]
