"""Text with HTML: its translatable text, and the places of its tags.

Tags of blocks, scripts, and tags without a partner divide the text of a
document or a line. The text between two of them is a run: elements such as
`<b>` cover parts of it, and placeholders such as `<img>` or a comment are at
places in it.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import re
from collections.abc import Iterator, Sequence

from official_transformer.text.markup import Element, Run, RunBuilder

# Elements inside a sentence; all others divide text.
_INLINE = frozenset(
  "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark "
  "nobr q rb rt ruby s small span strike strong time tt u".split()
)
# Elements inside a sentence that have no end tag.
_INLINE_VOID = frozenset("img input wbr".split())
_VOID = _INLINE_VOID | frozenset(
  "area base basefont br col embed frame hr keygen link meta param source "
  "track".split()
)
# Elements inside a sentence whose content is not translated, such as a formula
# or the number of a footnote.
_KEPT = frozenset("code kbd math samp sub sup svg var".split())
# Elements whose content is not shown, or is kept unchanged.
_KEPT_BLOCKS = frozenset(
  "audio canvas iframe object pre script style template textarea video".split()
)
# Elements in which nothing but their end tag is a tag.
_RAW = frozenset("iframe noembed noframes script style textarea xmp".split())
# Only quotes after = count, as in browsers. A tag, comment or declaration that
# is not complete extends to the end.
_TOKEN = re.compile(
  r"""
  (?P<comment><!--(?:>|->|.*?(?:--!?>|\Z)))
  | (?P<other><!\[CDATA\[.*?(?:\]\]>|\Z)
    | <!doctype[^>\[]*+(?:\[[^\]]{0,2000}+\]\s*+)?(?:>|\Z)
    | <\?.*?(?:\?>|\Z)
    | <!.*?(?:>|\Z)
    | </(?![a-z]).*?(?:>|\Z))
  | <(?P<slash>/?)(?P<name>[a-z][^\s/>]*+)
    (?P<attributes>(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?)*+)
    (?P<closed>>)?
  """,
  re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(
  r"""([^\s=/]++)(?:\s*+=\s*+("[^"]*+"?|'[^']*+'?|[^\s]*+))?"""
)
# Deeper elements divide text: each of their parts knows all elements around it.
_DEEPEST = 100
_REFERENCE = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?")


def parse_html(markup: str, has_references: bool = True) -> list[str | Run]:
  """Cuts markup into runs of text and the markup between them.

  The result contains the whole markup, in its order. Nothing is refused: a tag
  without a partner divides text.

  Args:
    markup: markup of a document, or a part of one.
    has_references: whether `&amp;` means `&`, as in HTML. Subtitles and
      messages have tags only.
  """
  tokens = list(_tokens(markup))
  _match(tokens)
  return _runs(tokens, markup, has_references)


@dataclasses.dataclass
class _Token:
  """A part of markup.

  Attributes:
    start: where it begins.
    end: where it ends.
    kind: `text`, `start`, `end`, `kept`, `placeholder`, `divider`, or `within`
      another one.
    name: name of a tag.
    partner: partner of a start or an end tag within a sentence, the other one.
    covered: number of the token behind the content of a kept element; 0 for
      other tokens.
  """

  start: int
  end: int
  kind: str
  name: str = ""
  partner: int | None = None
  covered: int = 0


def _tokens(markup: str) -> Iterator[_Token]:
  """Yields the parts of markup, one behind the other."""
  place = 0
  while match := _TOKEN.search(markup, place):
    if match.start() > place:
      yield _Token(place, match.start(), "text")
    start, place = match.span()
    name = (match["name"] or "").lower()
    yield _Token(start, place, _kind(match, name), name)
    if name in _RAW and not match["slash"] and match["closed"]:
      end = re.compile(rf"</{name}(?![^\s/>])", re.IGNORECASE)
      found = end.search(markup, place)
      stop = found.start() if found else len(markup)
      if stop > place:
        yield _Token(place, stop, "divider")
      place = stop
  if place < len(markup):
    yield _Token(place, len(markup), "text")


def _kind(match: re.Match[str], name: str) -> str:
  """Returns the kind of a tag."""
  if match["comment"]:
    return "placeholder"
  if not name or not match["closed"]:
    return "divider"
  if match["slash"]:
    return "end"
  if name in _VOID:
    return "placeholder" if name in _INLINE_VOID else "divider"
  if match["attributes"].endswith("/"):
    is_inline = name in _INLINE | _KEPT
    return "placeholder" if is_inline else "divider"
  if name in _KEPT | _KEPT_BLOCKS or _is_kept(match["attributes"]):
    return "kept"
  return "start"


def _is_kept(attributes: str) -> bool:
  """Returns whether attributes say that an element is not translated."""
  for found in _ATTRIBUTE.finditer(attributes):
    name, value = found[1].lower(), (found[2] or "").strip("\"'").lower()
    if name == "translate" and value.strip() == "no":
      return True
    if name == "class" and "notranslate" in value.split():
      return True
  return False


@dataclasses.dataclass
class _Opened:
  """A start tag whose end tag has not come yet.

  Attributes:
    number: number of its token.
    divides: whether something in the element divides text.
  """

  number: int
  divides: bool = False


def _match(tokens: list[_Token]) -> None:
  """Pairs tags; tags that cannot be inside a sentence become dividers."""
  is_open = [_Opened(-1)]  # The whole markup.
  names: collections.Counter[str] = collections.Counter()
  for number, token in enumerate(tokens):
    if token.kind == "divider":
      is_open[-1].divides = True
    elif token.kind == "start" and sum(names[n] for n in _INLINE) >= _DEEPEST:
      token.kind = "divider"
      is_open[-1].divides = True
    elif token.kind in ("start", "kept"):
      is_open.append(_Opened(number))
      names[token.name] += 1
    elif token.kind == "end":
      if not names[token.name]:
        token.kind = "divider"
        is_open[-1].divides = True
        continue
      # Elements that were opened later have no end tag.
      while tokens[is_open[-1].number].name != token.name:
        _leave_open(tokens, is_open, names, number)
      opened = is_open.pop()
      names[token.name] -= 1
      _close(tokens, opened, number, is_open[-1])
  while len(is_open) > 1:
    _leave_open(tokens, is_open, names, len(tokens))


def _leave_open(
  tokens: list[_Token],
  is_open: list[_Opened],
  names: collections.Counter[str],
  end: int,
) -> None:
  """Takes away the innermost start tag, which has no end tag before `end`."""
  opened = is_open.pop()
  is_open[-1].divides = True
  token = tokens[opened.number]
  names[token.name] -= 1
  if token.kind == "kept":
    _cover(tokens, opened.number, end, to_block=True)
  token.kind = "divider"


def _cover(
  tokens: list[_Token], number: int, end: int, to_block: bool = False
) -> None:
  """Makes tokens the content of a kept element.

  Each token is looked at once: kept elements in the content have seen theirs.

  Args:
    tokens: all tokens.
    number: number of the element's start tag.
    end: number of the token behind the content.
    to_block: whether the content ends where another block begins or ends.
  """
  token = tokens[number]
  place = number + 1
  while place < end:
    inner = tokens[place]
    in_sentence = _INLINE | _INLINE_VOID | _KEPT
    if to_block and inner.name and inner.name not in in_sentence:
      break
    inner.kind = "within"
    token.end = inner.end
    place = max(place + 1, inner.covered)
  token.covered = place


def _close(
  tokens: list[_Token], opened: _Opened, last: int, outer: _Opened
) -> None:
  """Makes two tags an element, a placeholder, or dividers."""
  first = tokens[opened.number]
  if first.kind == "kept":
    is_inline = first.name in _INLINE | _KEPT
    first.kind = "placeholder" if is_inline else "divider"
    _cover(tokens, opened.number, last + 1)
    outer.divides |= not is_inline
  elif first.name in _INLINE and not opened.divides:
    first.partner, tokens[last].partner = last, opened.number
  else:
    first.kind = tokens[last].kind = "divider"
    outer.divides = True


def _runs(
  tokens: Sequence[_Token], markup: str, has_references: bool
) -> list[str | Run]:
  """Returns runs and dividers."""
  found: list[str | Run] = []
  builder = RunBuilder(has_references)
  for token in tokens:
    written = markup[token.start : token.end]
    if token.kind == "divider":
      found += [*_finished(builder), written]
      builder = RunBuilder(has_references)
    elif token.kind == "text":
      text = _resolved(written) if has_references else written
      builder.add_text(text, written)
    elif token.kind == "start":
      assert token.partner is not None
      end = tokens[token.partner]
      builder.open(Element(written, markup[end.start : end.end]))
    elif token.kind == "end":
      builder.close()
    elif token.kind == "placeholder":
      builder.add_placeholder(written)
  return [*found, *_finished(builder)]


def _finished(builder: RunBuilder) -> list[str | Run]:
  """Returns a run, or its markup if there is nothing to translate."""
  run = builder.finish()
  if run.has_text:
    return [run]
  return [run.markup] if run.markup else []


def _resolved(text: str) -> str:
  """Returns text without references to characters."""
  return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
  """Returns the character of a reference; a plain blank for any blank.

  A line feed would end the line that is translated.
  """
  found = html.unescape(reference[0])
  return " " if found.isspace() and found != "\u00a0" else found
