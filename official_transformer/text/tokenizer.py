"""Tokenizers: text to ids and back.

Three kinds of vocabulary file have one interface, and are recognised by their
content: SentencePiece models, the official subtoken files, and files of whole
words. In all of them PAD is 0 and EOS is 1.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import sentencepiece
from absl import logging

from official_transformer.errors import InputError
from official_transformer.model_params import (
  EOS_ID,
  PAD_ID,
  UNK_ID,
  TransformerParams,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_bytes
from official_transformer.text.packed_ids import PackedLines, pack_lines
from official_transformer.text.sentencepiece_model import RuleFile
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.text_files import check_input, read_lines
from official_transformer.text.text_form import TextForm
from official_transformer.text.word_vocabulary import FILE_START, WordTokenizer
from official_transformer.text.words import Span

# SentencePiece's message for a vocabulary that is too small.
_TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
NO_ID = -1
# Lines that a vocabulary is estimated from; all would exhaust the memory on a
# large corpus.
_SAMPLED_LINES = 2_000_000
# A character that is seen so often has a piece of its own, unless such pieces
# would be more than this share of a vocabulary; then rare ones have none.
_SEEN = 5
_CHARACTERS_SHARE = 1 / 8
# The mark that SentencePiece writes in the place of a space.
_SPACE_MARK = "\u2581"
# Kudo 2018; Sennrich et al. 2016; whole words, and single characters.
SENTENCEPIECE_TYPES = ("unigram", "bpe", "word", "char")


class Tokenizer(Protocol):
  """The interface of all tokenizers."""

  @property
  def vocab_size(self) -> int:
    """Number of ids; each id is below it."""

  def encode(self, text: str, /, add_eos: bool = False) -> list[int]:
    """Returns the ids of one line, followed by EOS if asked for."""

  def pack_lines(self, lines: Sequence[str]) -> PackedLines:
    """Returns the ids of many lines, each followed by EOS, for records."""

  def decode(self, ids: Sequence[int], /) -> str:
    """Returns the text of ids, which hold neither PAD nor EOS."""

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """Returns the vocabulary's entry for each of the ids."""

  def spans(self, text: str) -> list[Span]:
    """Returns the characters that each id of `encode(text)` covers."""


class SentencePieceTokenizer:
  """A SentencePiece model with PAD 0, EOS 1 and unknown 2 (Kudo 2018).

  Attributes:
    processor: SentencePiece's own.
  """

  def __init__(self, vocab_file: str, content: bytes | None = None) -> None:
    """Initializes it.

    Args:
      vocab_file: the model's path.
      content: content of the file, if it has been read.

    Raises:
      InputError: if it is none, or has other ids.
    """
    self.processor = sentencepiece.SentencePieceProcessor()
    try:
      if content is None:
        content = file_system.read_bytes(vocab_file)
      self.processor.LoadFromSerializedProto(content)
    except (OSError, RuntimeError) as error:
      raise InputError(
        f"{vocab_file} is neither a SentencePiece model nor a subtoken "
        "vocabulary (whose lines stand between single quotes) nor one of "
        f"words (which begins with {FILE_START!r}): {error}"
      ) from None
    p = self.processor
    ids = (p.pad_id(), p.eos_id(), p.unk_id(), p.bos_id())
    if ids != (PAD_ID, EOS_ID, UNK_ID, NO_ID):
      raise InputError(
        f"{vocab_file} has PAD {ids[0]}, EOS {ids[1]}, unknown {ids[2]} and "
        f"BOS {ids[3]} where 0, 1, 2 and none are needed; train it with "
        "--pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1"
      )

  @property
  def vocab_size(self) -> int:
    """Number of pieces."""
    return self.processor.GetPieceSize()

  def encode(self, text: str, add_eos: bool = False) -> list[int]:
    """Returns the ids of one line, followed by EOS if asked for."""
    return self.processor.EncodeAsIds(text) + [EOS_ID] * add_eos

  def pack_lines(self, lines: Sequence[str]) -> PackedLines:
    """Returns the ids of many lines, each followed by EOS, for records."""
    return pack_lines(
      self.processor.Encode(list(lines), add_eos=True, num_threads=1)
    )

  def decode(self, ids: Sequence[int]) -> str:
    """Returns the text of ids."""
    return self.processor.DecodeIds([int(i) for i in ids])

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """Returns the vocabulary's entry for each of the ids."""
    return [self.processor.IdToPiece(int(i)) for i in ids]

  def spans(self, text: str) -> list[Span]:
    """Returns the characters that each id of `encode(text)` covers."""
    # It counts bytes.
    characters = {0: 0}
    length = 0
    for number, character in enumerate(text, start=1):
      length += len(character.encode("utf-8"))
      characters[length] = number
    found = self.processor.EncodeAsProto(text)
    return [
      Span(characters[piece.begin], characters[piece.end])
      for piece in found.pieces
    ]


class FormedTokenizer:
  """A tokenizer of text that is brought into a form first.

  Attributes:
    tokenizer: tokenizer of text in that form.
    form: form into which text is brought; decoded text has it already.
  """

  def __init__(self, tokenizer: Tokenizer, form: TextForm) -> None:
    self.tokenizer = tokenizer
    self.form = form

  @property
  def vocab_size(self) -> int:
    """Number of ids."""
    return self.tokenizer.vocab_size

  def encode(self, text: str, add_eos: bool = False) -> list[int]:
    """Returns the ids of one line, followed by EOS if asked for."""
    # Text may begin or end with a blank after it is brought into its form.
    return self.tokenizer.encode(self.form.apply(text).strip(), add_eos)

  def pack_lines(self, lines: Sequence[str]) -> PackedLines:
    """Returns the ids of many lines, each followed by EOS, for records."""
    formed = [self.form.apply(line).strip() for line in lines]
    return self.tokenizer.pack_lines(formed)

  def decode(self, ids: Sequence[int]) -> str:
    """Returns the text of ids."""
    return self.tokenizer.decode(ids)

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """Returns the vocabulary's entry for each of the ids."""
    return self.tokenizer.pieces(ids)

  def spans(self, text: str) -> list[Span]:
    """Returns the characters that each id covers, of the text in its form."""
    return self.tokenizer.spans(self.form.apply(text).strip())


def decoded_spans(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Span]:
  """Returns the characters of `decode(ids)` that each id covers.

  The n-th id ends where the decoded text of the first n ids ends.
  """
  plain = plain_tokenizer(tokenizer)
  if isinstance(plain, WordTokenizer):
    return plain.decoded_spans(ids)
  spans, start = [], 0
  for number in range(1, len(ids) + 1):
    end = max(start, len(tokenizer.decode(ids[:number])))
    spans.append(Span(start, end))
    start = end
  return spans


def formed_text(tokenizer: Tokenizer, text: str) -> str:
  """Returns a line as its tokenizer cuts it, which `spans` are of."""
  if isinstance(tokenizer, FormedTokenizer):
    return tokenizer.form.apply(text).strip()
  return text


def is_lowercase(tokenizer: Tokenizer) -> bool:
  """Returns whether the form of a tokenizer's text has no capitals."""
  return isinstance(tokenizer, FormedTokenizer) and tokenizer.form.lowercase


def has_unknown(tokenizer: Tokenizer, ids: Sequence[int]) -> bool:
  """Returns whether ids contain the unknown token."""
  # Subtokens spell all text: their third id is an ordinary one.
  plain = plain_tokenizer(tokenizer)
  has_one = isinstance(plain, (SentencePieceTokenizer, WordTokenizer))
  return has_one and UNK_ID in ids


def has_whole_words(tokenizer: Tokenizer) -> bool:
  """Returns whether each id, the unknown one too, is a word with its blank."""
  plain = plain_tokenizer(tokenizer)
  if isinstance(plain, SentencePieceTokenizer):
    # Without the mark alone, an unknown piece holds the one before it.
    return plain.processor.PieceToId(_SPACE_MARK) == UNK_ID
  return isinstance(plain, WordTokenizer)


def fitting_params(
  params: TransformerParams, target: Tokenizer
) -> TransformerParams:
  """Returns parameters without `suppress_unk` where nothing is unknown.

  The token of that number is an ordinary one in the official vocabularies,
  which spell all text.
  """
  if not params.suppress_unk or has_unknown(target, [UNK_ID]):
    return params
  logging.info("suppress_unk: the vocabulary can spell all text")
  return dataclasses.replace(params, suppress_unk=False)


def check_text(text: str) -> None:
  """Raises an `InputError` for what Python's strings hold and UTF-8 cannot."""
  try:
    text.encode()
  except UnicodeEncodeError as error:
    raise InputError(
      f"character {error.start + 1} of {text[:60]!r} is half of a surrogate "
      "pair, which is no text; decode what it came from as UTF-8 or UTF-16"
    ) from None


def plain_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
  """Returns the tokenizer without its form of text."""
  if isinstance(tokenizer, FormedTokenizer):
    return tokenizer.tokenizer
  return tokenizer


def load_tokenizer(vocab_file: str, form: TextForm | None = None) -> Tokenizer:
  """Loads a vocabulary of any kind.

  Args:
    vocab_file: path of the vocabulary.
    form: form into which text is brought first; None changes nothing.

  Raises:
    InputError: if it is missing, of no known kind, or has other ids for
      PAD and EOS.
  """
  if form is not None and not form.is_plain:
    return FormedTokenizer(load_tokenizer(vocab_file), form)
  check_input(vocab_file)
  return parse_vocabulary(vocab_file, file_system.read_bytes(vocab_file))


def parse_vocabulary(vocab_file: str, content: bytes) -> Tokenizer:
  """Returns the tokenizer of a vocabulary of any kind.

  Args:
    vocab_file: path of the vocabulary, for errors.
    content: content of the file.

  Raises:
    InputError: if it is of no known kind, or has other ids for PAD and EOS.
  """
  # A subtoken file begins with a quote; a SentencePiece model with the tag of
  # its first protocol buffer field, which is a line feed.
  if content.startswith((b"'", b'"')):
    return Subtokenizer.parse(vocab_file, content)
  if content.startswith(FILE_START.encode()):
    return WordTokenizer.parse(vocab_file, content)
  return SentencePieceTokenizer(vocab_file, content)


def count_characters(
  texts: Iterable[Iterable[str]],
) -> collections.Counter[str]:
  """Returns how often characters are in each text's first 2,000,000 lines."""
  counts: collections.Counter[str] = collections.Counter()
  for lines in texts:
    for line in itertools.islice(lines, _SAMPLED_LINES):
      counts.update(line)
  return counts


def common_characters(counts: Mapping[str, int], most: int) -> str:
  """Returns the characters that a vocabulary should not be without.

  SentencePiece keeps the characters that make up 99.99% of a text; in a small
  text, this excludes the question mark, for example, or half of the digits.

  Args:
    counts: how often characters are in its text.
    most: how many characters there may be; of more, none is returned.
  """
  found = [
    character
    for character, count in counts.items()
    if count >= _SEEN
    and character.isprintable()
    and not character.isspace()
    and character != _SPACE_MARK
  ]
  return "".join(sorted(found)) if len(found) <= most else ""


def train_sentencepiece(
  text_files: Sequence[str],
  vocab_file: str,
  vocab_size: int,
  model_type: str = "unigram",
) -> None:
  """Trains one SentencePiece model on several files together.

  Args:
    text_files: plain UTF-8 text, in the form that models are to see: none of
      its characters becomes another, blanks apart.
    vocab_file: the model to write.
    vocab_size: most pieces; a small corpus yields fewer.
    model_type: one of `SENTENCEPIECE_TYPES`.

  Raises:
    InputError: if SentencePiece cannot train on this text.
  """

  # Read and written here: given paths, the model would record them, and equal
  # texts would give different vocabularies.
  def lines() -> Iterator[str]:
    return itertools.chain.from_iterable(map(read_lines, text_files))

  counts = count_characters(map(read_lines, text_files))
  characters = common_characters(counts, int(vocab_size * _CHARACTERS_SHARE))
  model = io.BytesIO()
  try:
    with RuleFile(counts) as rule:
      sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=lines(),
        normalization_rule_tsv=rule.path,
        model_writer=model,
        vocab_size=vocab_size,
        model_type=model_type,
        hard_vocab_limit=False,
        character_coverage=0.9999,
        required_chars=characters,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        input_sentence_size=_SAMPLED_LINES,
        shuffle_input_sentence=True,
        # SentencePiece would skip longer lines, in silence.
        max_sentence_length=1_000_000,
        minloglevel=2,
      )
      content = rule.without_path(model.getvalue())
  except (OSError, RuntimeError) as error:
    said = str(error)
    if few := _TOO_FEW.search(said):
      said = f"its characters alone are {few[1]}; ask for more pieces"
    raise InputError(
      f"SentencePiece cannot make {vocab_size} pieces from this text: {said}"
    ) from None
  write_bytes(vocab_file, content)
