"""What the source has where a translation has a token for the unknown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from official_transformer.decoding.alignment import piece_weights
from official_transformer.decoding.attention import AttentionReader
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import PieceToTranslate
from official_transformer.decoding.options import AlignmentRule
from official_transformer.decoding.translation import Hypothesis
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.text.tokenizer import formed_text
from official_transformer.text.vocabulary_files import Tokenizers
from official_transformer.text.words import words_of, words_under

_BLANK = "\u2581"  # As SentencePiece writes it.


def replace_unknown(
  reader: AttentionReader,
  rule: AlignmentRule | None,
  batch: Sequence[PieceToTranslate],
  found: Sequence[Sequence[FoundSequence]],
  hypotheses: Sequence[Sequence[Hypothesis]],
) -> list[list[Hypothesis]]:
  """Returns hypotheses with source text in the place of unknown tokens.

  An unknown token becomes the source's unknown piece that it attends to most;
  if the source has none, the word that it attends to most (Luong et al. 2015,
  section 3).

  Args:
    reader: of the attention.
    rule: where in it is read what belongs together; None is as usual.
    batch: what was translated.
    found: of each, its hypotheses as ids.
    hypotheses: the same as text.

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
  if not rows:
    return result
  crosses = reader.read_cross(
    [(batch[line].ids, [*found[line][n].ids, EOS_ID]) for line, n in rows]
  )
  for (line, n), cross in zip(rows, crosses, strict=True):
    text = _text_with_source(
      reader.tokenizers,
      batch[line],
      found[line][n].ids,
      piece_weights(rule or AlignmentRule(), cross),
    )
    result[line][n] = dataclasses.replace(result[line][n], text=text)
  return result


def _text_with_source(
  tokenizers: Tokenizers,
  piece: PieceToTranslate,
  ids: Sequence[int],
  weights: np.ndarray,
) -> str:
  """Returns a translation's text, with the source's where it is unknown.

  Args:
    tokenizers: of both sides; the target's is SentencePiece's.
    piece: of the source.
    ids: of the translation, without EOS.
    weights: [T, S], how much each of its pieces belongs to each source piece.
  """
  formed = formed_text(tokenizers.source, piece.text)
  spans = tokenizers.source.spans(piece.text)
  words = words_of(formed)
  unknown = [n for n, token in enumerate(piece.ids[:-1]) if token == UNK_ID]
  parts = list[str]()
  for row, (token, part) in enumerate(
    zip(ids, tokenizers.target.pieces(ids), strict=True)
  ):
    if token != UNK_ID:
      parts.append(part)
    elif unknown:
      parts.append(spans[max(unknown, key=weights[row].__getitem__)].of(formed))
    else:
      under = words_under(words, [spans[int(weights[row].argmax())]])[0]
      begins = not parts or parts[-1].endswith(_BLANK)
      parts += ["" if begins else _BLANK, *(words[n].of(formed) for n in under)]
  return "".join(parts).replace(_BLANK, " ").strip()
