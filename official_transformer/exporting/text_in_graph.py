"""Both tokenizers as operations of a TensorFlow graph.

A SavedModel maps text to text with nothing but TensorFlow and tensorflow-text
installed. For any text, both classes find the same ids as `text.tokenizer`, and
the same text of ids.

Shapes: B lines, L tokens, C characters of all lines, W words of all lines.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tensorflow_text

from official_transformer.errors import InputError
from official_transformer.exporting.formats import NO_WORDS_IN_GRAPH
from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.text.subtokenizer import (
  UNDEFINED_CHARACTER,
  Subtokenizer,
  is_word_character,
)
from official_transformer.text.tokenizer import (
  SentencePieceTokenizer,
  Tokenizer,
)
from official_transformer.text.vocabulary_files import Tokenizers

# Characters that `str.strip` removes: more than RE2's \s.
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_ENDS = f"^[{_BLANKS}]+|[{_BLANKS}]+$"
_LINE_ENDS = "[\r\n]"
_MOST_BYTES = 2**31 - 1


class TextInGraph(Protocol):
  """The interface of tokenizers inside a graph.

  The object must be an attribute of the exported module, because it may have
  tables, which TensorFlow tracks by attributes.
  """

  def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """Maps lines, string [B], to ids, int32 [B, (L)], each with EOS."""

  def decode(self, ids: tf.Tensor) -> tf.Tensor:
    """Maps ids, int32 [B, L], up to EOS, to text, string [B]."""


class TwoVocabularies(tf.Module):
  """Text cut by one vocabulary, and put together by another."""

  def __init__(self, source: tf.Module, target: tf.Module) -> None:
    super().__init__()
    self._source: Any = source
    self._target: Any = target

  def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """Maps lines, string [B], to ids of the source."""
    return self._source.encode(lines)

  def decode(self, ids: tf.Tensor) -> tf.Tensor:
    """Maps ids of the target to text, string [B]."""
    return self._target.decode(ids)


def text_in_graph(tokenizers: Tokenizer | Tokenizers) -> tf.Module:
  """Returns the `TextInGraph` of a model's tokenizers."""
  tokenizers = Tokenizers.of(tokenizers)
  source = _of_tokenizer(tokenizers.source)
  if tokenizers.source is tokenizers.target:
    return source
  return TwoVocabularies(source, _of_tokenizer(tokenizers.target))


def _of_tokenizer(tokenizer: Tokenizer) -> tf.Module:
  if isinstance(tokenizer, SentencePieceTokenizer):
    return SentencePieces(tokenizer)
  if not isinstance(tokenizer, Subtokenizer):
    raise InputError(NO_WORDS_IN_GRAPH)
  return Subtokens(tokenizer)


def strip(lines: tf.Tensor) -> tf.Tensor:
  """Takes blanks off both ends, as the tokenizers' callers do."""
  lines = tf.strings.unicode_transcode(lines, "UTF-8", "UTF-8")
  return tf.strings.regex_replace(lines, _ENDS, "")


def _as_one_line(text: tf.Tensor) -> tf.Tensor:
  """Returns translations without line ends."""
  return tf.strings.regex_replace(text, _LINE_ENDS, " ")


def _up_to_end(ids: tf.Tensor) -> tf.Tensor:
  """Returns which of the ids [B, L] are text, before EOS, bool [B, L]."""
  ended = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1)
  return tf.logical_and(tf.equal(ended, 0), tf.not_equal(ids, PAD_ID))


class SentencePieces(tf.Module):
  """A SentencePiece model, by tensorflow-text."""

  def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
    super().__init__()
    content = tokenizer.processor.serialized_model_proto()
    self._pieces = tensorflow_text.SentencepieceTokenizer(
      model=content,
      out_type=tf.int32,
      add_eos=True,
      # In a loaded SavedModel, tokenizers of one name are one tokenizer.
      name=f"sentencepiece_{hashlib.sha256(content).hexdigest()}",
    )

  def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """As `TextInGraph.encode`."""
    return self._pieces.tokenize(strip(lines))

  def decode(self, ids: tf.Tensor) -> tf.Tensor:
    """As `TextInGraph.decode`."""
    kept = tf.ragged.boolean_mask(ids, _up_to_end(ids))
    return _as_one_line(self._pieces.detokenize(kept))


class Subtokens(tf.Module):
  """An official subtoken vocabulary, by tables and a greedy longest match."""

  def __init__(self, tokenizer: Subtokenizer) -> None:
    super().__init__()
    self._entries = tf.constant(tokenizer.subtokens)
    # Where the kind of characters changes, of all that there are.
    self._kinds = tf.constant(_changes(is_word_character))
    alphabet = tokenizer.alphabet
    self._alphabet = tf.constant(_changes(lambda c: c in alphabet))
    # Of equal entries the last counts.
    ids = {subtoken: i for i, subtoken in enumerate(tokenizer.subtokens)}
    table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(
        list(ids), tf.constant(list(ids.values()), tf.int64)
      ),
      default_value=PAD_ID,
    )
    self._cutter = tensorflow_text.WordpieceTokenizer(
      table,
      suffix_indicator="",
      max_bytes_per_word=_MOST_BYTES,
      token_out_type=tf.int64,
      unknown_token=None,
    )

  def encode(self, lines: tf.Tensor) -> tf.RaggedTensor:
    """As `TextInGraph.encode`."""
    codes = tf.strings.unicode_decode(strip(lines), "UTF-8")
    rows, codes = codes.value_rowids(), codes.values  # [C]
    kinds = self._is_word(codes)
    starts = _differs_from_previous(rows) | _differs_from_previous(kinds)
    words = tf.cumsum(tf.cast(starts, tf.int64)) - 1  # [C], its word's number
    number = tf.reduce_sum(tf.cast(starts, tf.int64))
    escaped = tf.strings.unsorted_segment_join(
      self._escape(codes), words, number
    )  # [W]
    rows = tf.boolean_mask(rows, starts)
    # A space between two words is implied.
    kept = tf.not_equal(escaped, " ")
    cut = self._cutter.tokenize(tf.boolean_mask(escaped, kept) + "_")
    rows = tf.repeat(tf.boolean_mask(rows, kept), cut.row_lengths())
    batch = tf.size(lines, tf.int64)
    ids = tf.RaggedTensor.from_value_rowids(
      tf.cast(cut.flat_values, tf.int32), rows, batch
    )
    ends = tf.fill([tf.size(lines), 1], EOS_ID)
    return tf.concat([ids, ends], axis=1)

  def decode(self, ids: tf.Tensor) -> tf.Tensor:
    """As `TextInGraph.decode`."""
    size = tf.size(self._entries)
    known = tf.logical_and(_up_to_end(ids), ids < size)
    entries = tf.gather(self._entries, tf.minimum(ids, size - 1))
    joined = tf.strings.reduce_join(tf.where(known, entries, ""), axis=1)
    words = tf.strings.split(joined, "_")
    rows, words = words.value_rowids(), words.values
    there = tf.not_equal(words, "")
    rows, words = tf.boolean_mask(rows, there), tf.boolean_mask(words, there)
    words = _unescape(words)
    first = tf.strings.substr(words, 0, 1, unit="UTF8_CHAR")
    kinds = self._is_word(tf.strings.unicode_decode(first, "UTF-8").flat_values)
    spaced = kinds & _same_as_previous(kinds) & _same_as_previous(rows)
    words = tf.where(spaced, " ", "") + words
    batch = tf.shape(ids, tf.int64)[0]
    text = tf.strings.unsorted_segment_join(words, rows, batch)
    return _as_one_line(text)

  def _is_word(self, codes: tf.Tensor) -> tf.Tensor:
    """Returns which are letters or numbers, as `is_word_character`."""
    return _holds(self._kinds, codes)

  def _escape(self, codes: tf.Tensor) -> tf.Tensor:
    """Writes characters, int32 [C], with the alphabet's alone, string [C]."""
    known = _holds(self._alphabet, codes) & tf.not_equal(codes, ord("\n"))
    characters = tf.strings.unicode_encode(codes[:, None], "UTF-8")
    numbers = "\\" + tf.strings.as_string(codes) + ";"
    escaped = tf.where(known, characters, numbers)
    for character, escape in (("\\", "\\\\"), ("_", "\\u")):
      escaped = tf.where(tf.equal(codes, ord(character)), escape, escaped)
    return escaped


def _unescape(words: tf.Tensor) -> tf.Tensor:
  """Inverse of `Subtokens._escape`, word by word, string [W]."""
  # No escaped word holds a line feed: here it sets escapes apart.
  apart = tf.strings.regex_replace(words, r"(\\u|\\\\|\\[0-9]+;)", "\n\\1\n")
  parts = tf.strings.split(apart, "\n")
  words_of, parts = parts.value_rowids(), parts.values
  is_code = tf.strings.regex_full_match(parts, r"\\[0-9]+;")
  digits = tf.strings.regex_replace(parts, r"^\\0*([0-9]{1,7});$", "\\1")
  fits = tf.strings.regex_full_match(digits, "[0-9]{1,7}")
  codes = tf.strings.to_number(tf.where(fits & is_code, digits, "0"), tf.int32)
  is_character = (codes <= sys.maxunicode) & ~(
    (codes >= 0xD800) & (codes <= 0xDFFF)
  )
  codes = tf.where(fits & is_character, codes, ord(UNDEFINED_CHARACTER))
  characters = tf.strings.unicode_encode(codes[:, None], "UTF-8")
  parts = tf.where(is_code, characters, parts)
  parts = tf.where(tf.equal(parts, "\\u"), "_", parts)
  parts = tf.where(tf.equal(parts, "\\\\"), "\\", parts)
  return tf.strings.unsorted_segment_join(
    parts, words_of, tf.size(words, tf.int64)
  )


def _changes(holds: Callable[[str], bool]) -> np.ndarray:
  """Returns the code points from which on something holds, or no longer does.

  At the first of them it begins to.
  """
  kinds = np.array([False, *(holds(chr(n)) for n in range(sys.maxunicode + 1))])
  return np.flatnonzero(kinds[1:] != kinds[:-1]).astype(np.int32)


def _holds(changes: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
  """Returns for which code points [C] a property holds, bool [C]."""
  passed = tf.searchsorted(changes, codes, side="right")
  return tf.equal(passed % 2, 1)


def _same_as_previous(values: tf.Tensor) -> tf.Tensor:
  """Returns which values [C] equal the one before; False for the first."""
  return tf.concat(
    [tf.zeros_like(values[:1], tf.bool), tf.equal(values[1:], values[:-1])], 0
  )


def _differs_from_previous(values: tf.Tensor) -> tf.Tensor:
  """Returns which values [C] differ from the one before; True for the first."""
  return tf.logical_not(_same_as_previous(values))
