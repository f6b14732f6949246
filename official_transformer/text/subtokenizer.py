"""The official subtoken vocabulary, byte for byte.

A line is split where letters or digits meet anything else, a single space
between two words is implied. Each token is escaped so that it uses only the
vocabulary's alphabet, ends in `_`, and is cut greedily into the longest
subtokens. The file holds one subtoken a line between single quotes, `<pad>`
and `<EOS>` first.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text
from official_transformer.text.packed_ids import PackedLines, count, pack
from official_transformer.text.subtoken_growth import SubtokenGrowth
from official_transformer.text.words import Span

Computed = TypeVar("Computed")

__all__ = ["EOS", "EOS_ID", "PAD", "PAD_ID", "RESERVED_TOKENS", "Subtokenizer"]

PAD, EOS = RESERVED_TOKENS = ("<pad>", "<EOS>")
ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")
# Decoded form of an escape that is no valid code point: the geta mark.
UNDEFINED_CHARACTER = "\u3013"

# Python's \w is a letter or a number of any kind, as in `is_word_character`, or
# an underscore, which is no word character here.
_RUNS = re.compile(r"[^\W_]+|[\W_]+")
# A word with the other characters after it: half as many matches.
_WORDS = re.compile(r"[^\W_]+[\W_]*|[\W_]+")
_SPACE_BEFORE_OTHER = re.compile(r" [\W_]")
# Marks a space that is a token, at either end of a line. The empty text is free
# for this, because no part of a line is empty.
_SPACE_AT_END = ""
# Words whose ids are remembered, of the order of 100 bytes each.
_REMEMBERED = 2**18
_LONGEST_REMEMBERED = 64  # Characters.
_ESCAPE = re.compile(r"\\u|\\\\|\\([0-9]+);")


@functools.cache
def is_word_character(character: str) -> bool:
  """Returns whether a character is a letter or number of any script."""
  return unicodedata.category(character)[0] in "LN"


def split_to_tokens(text: str) -> list[str]:
  """Splits where word characters meet others, dropping single inner spaces."""
  tokens = _RUNS.findall(text)
  if " " not in tokens:
    return tokens
  # At either end, a space is a token.
  last = len(tokens) - 1
  return [
    token
    for number, token in enumerate(tokens)
    if token != " " or number in (0, last)
  ]


def join_tokens(tokens: Sequence[str]) -> str:
  """Inverse of `split_to_tokens`: puts a space between two word tokens."""
  pieces = []
  word_before = False
  for token in tokens:
    word = is_word_character(token[0])
    if word and word_before:
      pieces.append(" ")
    pieces.append(token)
    word_before = word
  return "".join(pieces)


def escape_token(token: str, alphabet: Iterable[str]) -> str:
  r"""Writes a token with the alphabet's characters alone, and ends it.

  Backslash and underscore become `\\` and `\u`, any character outside the
  alphabet `\N;` with its code point N, and `_` marks the end.
  """
  token = token.replace("\\", "\\\\").replace("_", "\\u")
  escaped = (
    c if c in alphabet and c != "\n" else f"\\{ord(c)};" for c in token
  )
  return "".join(escaped) + "_"


def unescape_token(escaped: str) -> str:
  """Undoes `escape_token`, but for the end mark."""

  def original(match: re.Match[str]) -> str:
    code = match.group(1)
    if code is None:
      return "_" if match.group(0) == "\\u" else "\\"
    try:
      character = chr(int(code))
    except (ValueError, OverflowError):
      return UNDEFINED_CHARACTER
    # Half of a UTF-16 pair is no character and cannot be written as UTF-8.
    return (
      UNDEFINED_CHARACTER if "\ud800" <= character <= "\udfff" else character
    )

  return _ESCAPE.sub(original, escaped)


def _cut(
  escaped: str, subtokens: collections.abc.Container[str], longest: int
) -> list[str]:
  """Cuts an escaped token greedily into the longest known subtokens."""
  pieces = []
  start = 0
  while start < len(escaped):
    end = min(len(escaped), start + longest)
    while escaped[start:end] not in subtokens:
      end -= 1
      if end == start:
        raise InputError(
          f"the vocabulary has no subtoken for {escaped[start]!r}, which "
          "every vocabulary of this kind has; the file is damaged"
        )
    pieces.append(escaped[start:end])
    start = end
  return pieces


def _parts(text: str) -> list[str]:
  """Cuts a line into words, each with the separators behind it."""
  parts = _WORDS.findall(text)
  # At either end, a space is a token, unlike between words.
  if text[:1] == " " and parts[0] == " ":
    parts[0] = _SPACE_AT_END
  if text[-1:] == " " and text[-2:-1].isalnum():
    parts.append(_SPACE_AT_END)
  return parts


class _Memory(dict[str, Computed]):
  """A cache of results for words, which is emptied before it grows large."""

  def __init__(self, compute: Callable[[str], Computed]) -> None:
    super().__init__()
    self._compute = compute

  def __missing__(self, word: str) -> Computed:
    computed = self._compute(word)
    # A whole line may be one word: it would not recur, and fill the memory.
    if len(word) <= _LONGEST_REMEMBERED:
      if len(self) >= _REMEMBERED:
        self.clear()
      self[word] = computed
    return computed


class Subtokenizer:
  """Encodes and decodes with a subtoken vocabulary.

  Attributes:
    subtokens: the vocabulary, in the order of its ids.
    alphabet: the characters that are written without escapes.
  """

  def __init__(
    self,
    vocab_file: str,
    reserved_tokens: Sequence[str] | None = None,
    master_char_set: Iterable[str] | None = None,
  ) -> None:
    """Reads a vocabulary file.

    Args:
      vocab_file: path of the vocabulary.
      reserved_tokens: tokens of the first ids; None is `RESERVED_TOKENS`.
      master_char_set: must be None: the characters of words are the letters
        and numbers of all scripts.

    Raises:
      InputError: if a line does not stand between quotes.
      ValueError: if `master_char_set` is given.
    """
    _refuse(master_char_set=master_char_set)
    if reserved_tokens is None:
      reserved_tokens = RESERVED_TOKENS
    content = file_system.read_bytes(vocab_file)
    self._index(
      [*reserved_tokens, *_parse(vocab_file, content, reserved_tokens)]
    )

  @classmethod
  def parse(cls, vocab_file: str, content: bytes) -> Subtokenizer:
    """Returns one of a vocabulary file that has been read."""
    subtokens = _parse(vocab_file, content, RESERVED_TOKENS)
    return cls.of([*RESERVED_TOKENS, *subtokens])

  @classmethod
  def of(cls, subtokens: Sequence[str]) -> Subtokenizer:
    """Returns one of a vocabulary in memory, in the order of its ids."""
    made = cls.__new__(cls)
    made._index(subtokens)
    return made

  def _index(self, subtokens: Sequence[str]) -> None:
    self.subtokens = list(subtokens)
    self._ids = {subtoken: i for i, subtoken in enumerate(self.subtokens)}
    self.alphabet = _alphabet(self.subtokens)
    self._longest = max(map(len, self.subtokens))
    # Words recur: remembering their ids makes encoding several times faster.
    self._ids_of_token = _Memory(self._cut_token).__getitem__
    self._ids_of_part = _Memory(self._cut_part).__getitem__
    self._packed_part = _Memory(
      lambda part: pack(self._cut_part(part))
    ).__getitem__
    self._packed_before_space = _Memory(
      lambda chunk: pack(self._cut_part(chunk + " "))
    ).__getitem__

  @classmethod
  def init_from_files(
    cls,
    vocab_file: str,
    files: Sequence[str],
    target_vocab_size: int,
    threshold: int,
    min_count: int | None = None,
    file_byte_limit: float = 1e6,
    reserved_tokens: Sequence[str] | None = None,
    correct_strip: bool = True,
    master_char_set: Iterable[str] | None = None,
  ) -> Subtokenizer:
    """Reads a vocabulary file, and makes it first if it is not there.

    This is upstream's call.

    Args:
      vocab_file: file to read or write.
      files: plain UTF-8 text.
      target_vocab_size: number of subtokens to come near to.
      threshold: as in `build`.
      min_count: as in `build`.
      file_byte_limit: as in `build`.
      reserved_tokens: must be None, `<pad>` and `<EOS>`.
      correct_strip: must be true, because blanks at the ends of a line are
        ignored.
      master_char_set: must be None.

    Raises:
      ValueError: if one of the last three is another.
    """
    _refuse(master_char_set=master_char_set, reserved_tokens=reserved_tokens)
    if not correct_strip:
      raise ValueError("correct_strip=False is not supported: leave it out")
    if not file_system.exists(vocab_file):
      cls.build(
        files, target_vocab_size, threshold, min_count, file_byte_limit
      ).save(vocab_file)
    return cls(vocab_file)

  @classmethod
  def build(
    cls,
    text_files: Sequence[str],
    target_size: int,
    threshold: int | None = None,
    min_count: int | None = None,
    file_byte_limit: float = 1e6,
  ) -> Subtokenizer:
    """Makes a vocabulary from a sample of several files.

    Args:
      text_files: plain UTF-8 text.
      target_size: number of subtokens to come near to.
      threshold: a size this near is taken at once; 1% of `target_size`
        if None.
      min_count: how often a subtoken must occur; if None, a search finds
        the one that comes nearest to `target_size`.
      file_byte_limit: how much of each file is sampled.
    """
    counts = _count_tokens(text_files, file_byte_limit)
    alphabet = _alphabet(counts)
    growth = SubtokenGrowth(
      {escape_token(token, alphabet): n for token, n in counts.items()}
    )

    def generate(min_count: int) -> list[str]:
      return _with_letters(growth.grow(min_count), alphabet)

    if min_count is not None:
      return cls.of(generate(min_count))
    if threshold is None:
      threshold = max(1, target_size // 100)
    return cls.of(_search(generate, target_size, threshold))

  def save(self, vocab_file: str) -> None:
    """Writes the vocabulary file.

    Raises:
      OSError: if the system refuses; an earlier file is as it was.
    """
    lines = (f"'{subtoken}'\n" for subtoken in self.subtokens)
    write_text(vocab_file, "".join(lines))

  @property
  def vocab_size(self) -> int:
    """Number of subtokens."""
    return len(self.subtokens)

  def encode(self, raw_string: str, add_eos: bool = False) -> list[int]:
    """Returns the ids of one line, followed by EOS if asked for."""
    ids = list(
      itertools.chain.from_iterable(map(self._ids_of_part, _parts(raw_string)))
    )
    if add_eos:
      ids.append(EOS_ID)
    return ids

  def pack_lines(self, lines: Sequence[str]) -> PackedLines:
    """Returns the ids of many lines, each followed by EOS, for records."""
    end = pack([EOS_ID])
    packed = [self._pack(line) + end for line in lines]
    return PackedLines(packed, list(map(count, packed)))

  def _pack(self, text: str) -> bytes:
    """Returns the ids of one line, packed."""
    if (
      not text
      or text[0] == " "
      or text[-1] == " "
      or _SPACE_BEFORE_OTHER.search(text)
    ):
      return b"".join(map(self._packed_part, _parts(text)))
    # In most lines, each space comes before a word, so that it is no token by
    # itself, or forms one with the characters before it.
    *chunks, last = text.split(" ")
    before = b"".join(map(self._packed_before_space, chunks))
    return before + self._packed_part(last)

  def _cut_part(self, part: str) -> tuple[int, ...]:
    """Returns the ids of a word and its separators, except a single space."""
    if part == _SPACE_AT_END:
      return self._ids_of_token(" ")
    tokens = _RUNS.findall(part)
    return tuple(i for t in tokens if t != " " for i in self._ids_of_token(t))

  def _cut_token(self, token: str) -> tuple[int, ...]:
    escaped = escape_token(token, self.alphabet)
    return tuple(self._ids[s] for s in _cut(escaped, self._ids, self._longest))

  def decode(self, subtokens: Sequence[int]) -> str:
    """Returns the text of ids; ids beyond the vocabulary are ignored."""
    known = (i for i in subtokens if i < len(self.subtokens))
    joined = "".join(map(self.subtokens.__getitem__, known))
    return join_tokens([unescape_token(t) for t in joined.split("_") if t])

  def pieces(self, ids: Sequence[int]) -> list[str]:
    """Returns the subtoken of each id, none for ids beyond the vocabulary."""
    return [self.subtokens[i] for i in ids if i < len(self.subtokens)]

  def spans(self, text: str) -> list[Span]:
    """Returns the characters that each id of `encode(text)` covers.

    In a token with escapes, each id covers the whole token.
    """
    found: list[Span] = []
    start = 0
    for token in split_to_tokens(text):
      start = text.index(token, start)
      end = start + len(token)
      parts = [self.subtokens[i] for i in self._cut_token(token)]
      if "".join(parts) == f"{token}_":
        ends = itertools.accumulate(map(len, parts), initial=start)
        edges = [min(edge, end) for edge in ends]
        found += map(Span, edges, edges[1:])
      else:
        found += [Span(start, end)] * len(parts)
      start = end
    return found


def _refuse(**arguments: object) -> None:
  """Raises ValueError if an argument of upstream's call is not its default."""
  for name, value in arguments.items():
    if value is not None:
      raise ValueError(f"{name}={value!r} is not supported: leave it out")


def _parse(
  vocab_file: str, content: bytes, reserved_tokens: Sequence[str]
) -> list[str]:
  """Returns the subtokens of a vocabulary file but for the reserved ones."""
  subtokens = []
  for number, raw in enumerate(io.BytesIO(content), start=1):
    try:
      line = raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
      raise InputError(
        f"{vocab_file}, line {number}: not UTF-8 (byte {error.start + 1} "
        "of the line); is it damaged, or was it converted to another "
        "encoding?"
      ) from None
    if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"":
      raise InputError(
        f"{vocab_file}, line {number}: {line!r} does not stand between "
        "quotes, as each line of a subtoken vocabulary does"
      )
    subtoken = line[1:-1]
    # Tensor2Tensor writes the two reserved tokens with the end mark, like all
    # others; adding them again would shift every id.
    tensor2tensor = number <= 2 and subtoken.removesuffix("_") in (
      reserved_tokens
    )
    if subtoken not in reserved_tokens and not tensor2tensor:
      subtokens.append(subtoken)
  return subtokens


def _alphabet(subtokens: Iterable[str]) -> set[str]:
  """Returns every character a vocabulary can write without escapes."""
  alphabet = {c for subtoken in subtokens for c in subtoken}
  alphabet.update(c for token in RESERVED_TOKENS for c in token)
  return alphabet | ESCAPE_CHARACTERS


def _count_tokens(
  text_files: Sequence[str], file_byte_limit: float
) -> dict[str, int]:
  """Counts the tokens in lines taken evenly from each file."""
  counts: dict[str, int] = collections.defaultdict(int)
  for path in text_files:
    budget = file_byte_limit
    skip = int(file_system.size(path) / (file_byte_limit * 2))
    skipped = 0
    with file_system.open_file(path) as stream:
      for line in stream:
        if skipped < skip:
          skipped += 1
          continue
        if budget < 0:
          break
        line = line.strip()
        budget -= len(line)
        skipped = 0
        for token in split_to_tokens(line):
          counts[token] += 1
  return counts


def _with_letters(
  entries: Sequence[tuple[int, str]], alphabet: set[str]
) -> list[str]:
  """Returns a vocabulary: most frequent first, with all of the alphabet.

  Letters are added even if they are rare, so that every text can be encoded.
  """
  letters = dict.fromkeys(alphabet, 0)
  letters.update((entry, count) for count, entry in entries if len(entry) == 1)
  longer = [pair for pair in entries if len(pair[1]) > 1]
  ordered = sorted(
    longer + [(n, letter) for letter, n in letters.items()], reverse=True
  )
  return [*RESERVED_TOKENS, *(entry for _, entry in ordered)]


def _search(
  generate: Callable[[int], list[str]],
  target_size: int,
  threshold: int,
  lowest: int = 1,
  highest: int = 1000,
) -> list[str]:
  """Bisects for the min_count whose vocabulary is nearest to a size."""
  best: list[str] | None = None
  while True:
    min_count = (lowest + highest) // 2
    subtokens = generate(min_count)
    distance = abs(len(subtokens) - target_size)
    if best is None or distance < abs(len(best) - target_size):
      best = subtokens
    if distance < threshold or lowest >= highest or min_count < 2:
      return best
    if len(subtokens) > target_size:
      lowest = min_count + 1
    else:
      highest = min_count - 1
