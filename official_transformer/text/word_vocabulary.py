"""Vocabularies of whole words, as courses on translation use them.

Text is cut into words and punctuation marks by the rules of the Moses toolkit
(Koehn et al. 2007), as the sacremoses library implements them. The file is
UTF-8 text: a first line that names the rules and the language, then one word a
line in the order of the ids, `<pad>`, `</s>` and `<unk>` first.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence

from absl import logging

from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.storage.durable_files import write_text
from official_transformer.text.packed_ids import PackedLines, pack_lines
from official_transformer.text.text_files import read_lines
from official_transformer.text.words import Span

# How a file of words begins: no word starts like this, and neither does any
# other kind of vocabulary.
FILE_START = "#words moses "
_RESERVED = ("<pad>", "</s>", "<unk>")
# As SentencePiece writes the beginning of a word, and an unknown one.
WORD_START = "\u2581"
_UNKNOWN = "\u2047"
_HYPHEN = "@-@"  # Moses' word for a hyphen inside a word.
_LANGUAGE = re.compile(r"[a-z]{2,3}")
# Text of these languages has no blanks between words, by which Moses cuts.
_WITHOUT_BLANKS = frozenset("bo ja km lo my th yue zh".split())


class WordTokenizer:
  """Whole words; a word that the vocabulary lacks becomes `<unk>`.

  Attributes:
    words: the vocabulary, in the order of its ids.
    language: ISO 639-1 code of the language whose rules cut the text.
  """

  def __init__(self, words: Sequence[str], language: str) -> None:
    """Initializes it.

    Args:
      words: the vocabulary; the first three are `<pad>`, `</s>` and `<unk>`.
      language: ISO 639-1 code. In a language that Moses does not know,
        abbreviations are English, and apostrophes are separate words.

    Raises:
      InputError: if sacremoses is not installed, if the code is not valid, or
        if the language has no blanks between words.
    """
    if not _LANGUAGE.fullmatch(language):
      raise InputError(
        f"{language!r:.30} is no language code of two or three small letters, "
        "such as en or de"
      )
    if language in _WITHOUT_BLANKS:
      raise InputError(
        f"text of the language {language} has no blanks between words, by "
        "which words are cut: take characters, --source_vocab_type=char or "
        "--target_vocab_type=char, or subwords"
      )
    try:
      import sacremoses
    except ImportError:
      raise InputError(
        "a vocabulary of words needs sacremoses: "
        "pip install 'official-transformer[words]'"
      ) from None
    self.words = list(words)
    self.language = language
    self._ids = {word: i for i, word in enumerate(self.words)}
    self._moses = sacremoses.MosesTokenizer(lang=language)
    self._detokenizer = sacremoses.MosesDetokenizer(lang=language)

  @classmethod
  def empty(cls, language: str) -> WordTokenizer:
    """Returns a tokenizer that knows no word, but cuts text into words."""
    return cls(_RESERVED, language)

  @classmethod
  def parse(cls, vocab_file: str, content: bytes) -> WordTokenizer:
    """Returns the tokenizer of a vocabulary file that has been read.

    Args:
      vocab_file: the file's path, for errors.
      content: the file's bytes.

    Raises:
      InputError: if the file is no vocabulary of words.
    """
    try:
      first, *words = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
      raise InputError(f"{vocab_file} is not UTF-8: {error}") from None
    if tuple(words[:3]) != _RESERVED or len(set(words)) < len(words):
      raise InputError(
        f"{vocab_file} is no vocabulary of words: its second to fourth lines "
        f"must be {', '.join(_RESERVED)}, and no word may come twice; copy "
        "the file again"
      )
    return cls(words, first.removeprefix(FILE_START).strip())

  @classmethod
  def build(
    cls,
    text_files: Sequence[str],
    language: str,
    size: int | None = None,
    min_frequency: int = 1,
  ) -> WordTokenizer:
    """Makes a vocabulary of the most frequent words of a text.

    Args:
      text_files: plain UTF-8 text.
      language: as for the constructor.
      size: most entries, the three reserved ones included; None is no bound.
      min_frequency: words seen fewer times are left out.

    Raises:
      InputError: as the constructor; or if no word is kept.
    """
    cutter = cls.empty(language)
    counts: collections.Counter[str] = collections.Counter()
    for path in text_files:
      for line in read_lines(path):
        counts.update(cutter.cut(line))
    for word in _RESERVED:
      counts.pop(word, None)
    frequent = sorted(
      (word for word, count in counts.items() if count >= min_frequency),
      key=lambda word: (-counts[word], word),
    )
    kept = frequent if size is None else frequent[: size - len(_RESERVED)]
    if not kept:
      most = max(counts.values(), default=0)
      raise InputError(
        f"no word of the text ({language}) comes {min_frequency} times, the "
        f"most frequent one {most} times: lower --min_frequency"
      )
    logging.info(
      "words (%s): %d of %d are kept, which are %.2f%% of the text; %d are "
      "seen fewer than %d times, %d are more than the vocabulary's size",
      *(language, len(kept), len(counts)),
      100 * sum(counts[w] for w in kept) / max(1, counts.total()),
      *(len(counts) - len(frequent), min_frequency, len(frequent) - len(kept)),
    )
    return cls([*_RESERVED, *kept], language)

  def save(self, vocab_file: str) -> None:
    """Writes the vocabulary file."""
    lines = [FILE_START + self.language, *self.words]
    write_text(vocab_file, "\n".join(lines) + "\n")

  @property
  def vocab_size(self) -> int:
    """Number of entries."""
    return len(self.words)

  def cut(self, text: str) -> list[str]:
    """Returns the words and punctuation marks of a line.

    A hyphen between two letters becomes the word `@-@`, which `join` writes
    without blanks: parts of compounds are known more often than compounds.
    """
    return self._moses.tokenize(text, aggressive_dash_splits=True, escape=False)

  def join(self, words: Iterable[str]) -> str:
    """Returns words as a line, with blanks where the language has them."""
    return self._detokenizer.detokenize(list(words), unescape=False)

  def encode(self, text: str, add_eos: bool = False) -> list[int]:
    """Returns the ids of one line, followed by EOS if asked for."""
    ids = [self._ids.get(word, UNK_ID) for word in self.cut(text)]
    return ids + [EOS_ID] * add_eos

  def pack_lines(self, lines: Sequence[str]) -> PackedLines:
    """Returns the ids of many lines, each followed by EOS, for records."""
    return pack_lines([self.encode(line, add_eos=True) for line in lines])

  def decode(self, ids: Sequence[int]) -> str:
    """Returns the text of ids."""
    return self.join(self._written(ids))

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """Returns the word of each id, marked as SentencePiece marks words."""
    return [
      self.words[int(i)] if i < len(_RESERVED) else WORD_START + self.words[i]
      for i in ids
    ]

  def spans(self, text: str) -> list[Span]:
    """Returns the characters that each id of `encode(text)` covers."""
    return places_of(self.cut(text), text)

  def decoded_spans(self, ids: Sequence[int]) -> list[Span]:
    """Returns the characters of `decode(ids)` that each id covers."""
    words = self._written(ids)
    return places_of(words, self.join(words))

  def _written(self, ids: Sequence[int]) -> list[str]:
    return [_UNKNOWN if i == UNK_ID else self.words[int(i)] for i in ids]


def places_of(words: Sequence[str], text: str) -> list[Span]:
  """Returns where words, in their order, are in a text.

  A word that is not there, because Moses has changed its characters, has no
  characters: its span is empty.
  """
  spans, end = [], 0
  for word in words:
    written = "-" if word == _HYPHEN else word
    start = text.find(written, end)
    if start < 0:
      spans.append(Span(end, end))
      continue
    end = start + len(written)
    spans.append(Span(start, end))
  return spans
