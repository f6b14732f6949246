"""Phrases that a translation must or may not have, as text and as tokens."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from official_transformer.decoding.hypotheses import as_one_line
from official_transformer.model_params import EOS_ID, UNK_ID
from official_transformer.text.tokenizer import (
  Tokenizer,
  decoded_spans,
  has_unknown,
)
from official_transformer.text.words import Span, is_mark, stands_alone


@dataclasses.dataclass(frozen=True)
class DecodingConstraints:
  """Constraints of one line's translation, as text.

  Attributes:
    prefix: beginning of the translation.
    required: phrases that it has.
    forbidden: phrases that it does not have.
  """

  prefix: str = ""
  required: tuple[str, ...] = ()
  forbidden: tuple[str, ...] = ()

  @property
  def forbids_cutting(self) -> bool:
    """Whether the line must be translated whole."""
    return bool(self.prefix or self.required)

  def unmet_by(
    self, text: str, formed: Callable[[str], str] = str
  ) -> tuple[str, ...]:
    """Returns missing required phrases and present forbidden ones.

    Args:
      text: text of the translation.
      formed: a phrase to how a translation would write it.
    """
    prefix = " ".join(formed(self.prefix).split())
    starts = " ".join(text.split()).startswith(prefix)
    return (
      *([] if starts else [self.prefix]),
      *(p for p in self.required if not holds(text, formed(p))),
      *(p for p in self.forbidden if holds(text, formed(p))),
    )


NO_CONSTRAINTS = DecodingConstraints()
# The same ones are asked for by line after line.
_REMEMBERED = 4096
Found = TypeVar("Found")


def remembered(
  function: Callable[[Tokenizer, str], Found], tokenizer: Tokenizer
) -> Callable[[str], Found]:
  """Returns a function of phrases, for one vocabulary, that keeps answers."""
  bound = functools.partial(function, tokenizer)
  return functools.lru_cache(_REMEMBERED)(bound)


def places_of(text: str, phrase: str) -> list[Span]:
  """Returns where a text has a phrase, as whole words.

  A word ends where letters, their accents, and digits do; in scripts without
  blanks, each character is one.
  """
  phrase = phrase.strip()
  found: list[Span] = []
  start = text.find(phrase) if phrase else -1
  while start >= 0:
    end = start + len(phrase)
    cuts = _is_one_word(text, start) or _is_one_word(text, end)
    if not cuts:
      found.append(Span(start, end))
    start = text.find(phrase, start + 1 if cuts else end)
  return found


def _joins(character: str) -> bool:
  """Returns whether a character is a part of the word next to it."""
  is_of_word = re.match(r"\w", character) or is_mark(character)
  return bool(is_of_word) and not stands_alone(character)


def holds(text: str, phrase: str) -> bool:
  """Returns whether a text has a phrase, as whole words."""
  return bool(places_of(text, phrase))


def tokens_of(tokenizer: Tokenizer, phrase: str) -> list[int]:
  """Returns the tokens of a phrase within a text.

  In scripts without blanks, the tokens are those after another character,
  because the first token of a text begins with the mark of a blank. There are
  none if no translation can contain the phrase: the vocabulary lacks some of
  its characters, or drops all.
  """
  ids = list(tokenizer.encode(phrase.strip()))
  if has_unknown(tokenizer, ids):
    return []
  phrase = tokenizer.decode(ids).strip()
  if phrase and stands_alone(phrase[0]):
    spans = tokenizer.spans("。" + phrase)
    after = tokenizer.encode("。" + phrase)
    if any(span.start == 1 for span in spans):
      ids = [
        i for i, span in zip(after, spans, strict=False) if span.start >= 1
      ]
  return ids


def prefix_of(tokenizer: Tokenizer, text: str) -> list[int]:
  """Returns the tokens of a prefix, as far as the vocabulary knows them."""
  ids = list(tokenizer.encode(text.strip()))
  if not has_unknown(tokenizer, ids):
    return ids
  known = list(itertools.takewhile(lambda i: i != UNK_ID, ids))
  text = tokenizer.decode(known).rstrip()
  # A blank alone would forbid all pieces that begin with one.
  while known and tokenizer.decode(known[:-1]).rstrip() == text:
    known.pop()
  return known


def as_written(tokenizer: Tokenizer, phrase: str) -> str:
  """Returns a phrase as a translation would hold it.

  The vocabulary may have one kind of letters, or of blanks, for several.
  """
  ids = list(tokenizer.encode(phrase.strip()))
  if has_unknown(tokenizer, ids):
    return " ".join(phrase.split())
  return as_one_line(tokenizer.decode(ids))


def overgrown(
  tokenizer: Tokenizer, ids: Sequence[int], tokens: Sequence[int]
) -> Iterator[tuple[int, ...]]:
  """Yields tokens with neighbours that make them parts of longer words.

  Args:
    tokenizer: tokenizer of the ids.
    ids: ids of a text.
    tokens: tokens of a phrase, that the ids may hold.
  """
  size, text = len(tokens), tokenizer.decode(ids)
  spans = None
  for start in range(len(ids) - size + 1):
    end = start + size
    if list(ids[start:end]) != list(tokens):
      continue
    spans = spans or decoded_spans(tokenizer, ids)
    place = Span(spans[start].start, spans[end - 1].end)
    # Blanks at either side are a token's, not the phrase's.
    left = place.end - len(place.of(text).lstrip())
    right = place.start + len(place.of(text).rstrip())
    if start and _is_one_word(text, left):
      yield tuple(ids[start - 1 : end])
    if end < len(ids) and _is_one_word(text, right):
      yield tuple(ids[start : end + 1])


def _is_one_word(text: str, place: int) -> bool:
  """Returns whether the characters before and at a place are of one word."""
  sides = text[place - 1 : place], text[place : place + 1]
  return all(side and _joins(side) for side in sides)


def spelled(
  tokenizer: Tokenizer, ids: Sequence[int], phrase: str
) -> Iterator[tuple[int, ...]]:
  """Yields the tokens by which ids have a phrase, however they are cut."""
  ids = [i for i in ids if i != EOS_ID]
  text = tokenizer.decode(ids)
  spans = None
  for place in places_of(text, phrase):
    spans = spans or decoded_spans(tokenizer, ids)
    yield tuple(
      i
      for i, span in zip(ids, spans, strict=True)
      if span.start < place.end and span.end > place.start
    )
