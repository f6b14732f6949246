"""Text with HTML in it: what of it is translated, and where its tags were.

A document, or a line of one, is cut at what divides text: tags of blocks,
comments, scripts, and tags without a partner. What lies between is a run of
text, with elements such as `<b>` over parts of it, and placeholders such as
`<img>` at places in it.
"""

from __future__ import annotations

import bisect
import dataclasses
import html
import html.parser
import re
from collections.abc import Sequence

from official_transformer.text.markup import Element, Run, RunBuilder

# Elements that lie within a sentence; all others divide text.
_INLINE = frozenset(
  "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark "
  "nobr q rb rt ruby s small span strike strong time tt u".split()
)
# Elements that have no end tag, and lie within a sentence.
_INLINE_VOID = frozenset("img input wbr".split())
_VOID = _INLINE_VOID | frozenset(
  "area base basefont br col embed frame hr keygen link meta param source "
  "track".split()
)
# Elements whose content is no text to translate, but lies within a sentence: a
# formula, the number of a footnote.
_KEPT = frozenset("code kbd math samp sub sup svg".split())
# Elements whose content is not shown, or stays as it is.
_KEPT_BLOCKS = frozenset(
  "audio canvas iframe object pre script style template textarea var "
  "video".split()
)
_REFERENCE = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?")


def parse_html(markup: str) -> list[str | Run]:
  """Cuts markup into runs of text, and what divides them, as it is written.

  All of it is in the result, in its order. Nothing is refused: a tag without a
  partner divides text.
  """
  tokens = _tokens(markup)
  _match(tokens)
  return _runs(tokens, markup)


@dataclasses.dataclass
class _Token:
  """A part of markup.

  Attributes:
    start: where it begins.
    end: where it ends.
    kind: `text`, `start`, `end`, `placeholder` or `divider`.
    name: of a tag.
    partner: of a start or an end tag within a sentence, the other one.
  """

  start: int
  end: int
  kind: str
  name: str = ""
  partner: int | None = None


class _Parser(html.parser.HTMLParser):
  """Notes where tags and all else begin."""

  def __init__(self, markup: str) -> None:
    super().__init__(convert_charrefs=False)
    self.found: list[_Token] = []
    # The parser tells lines and columns.
    self._lines = [0]
    for match in re.finditer("\n", markup):
      self._lines.append(match.end())
    self.feed(markup)
    self.close()

  def _note(self, kind: str, name: str = "") -> None:
    line, column = self.getpos()
    self.found.append(_Token(self._lines[line - 1] + column, 0, kind, name))

  def handle_starttag(self, tag: str, attrs: object) -> None:
    """Notes a start tag, or a tag without an end."""
    kept = {"translate": "no", "class": "notranslate"}
    is_kept = any(
      name in kept and kept[name] in (value or "").lower().split()
      for name, value in attrs  # type: ignore[attr-defined]
    )
    if tag in _VOID:
      kind = "placeholder" if tag in _INLINE_VOID else "divider"
    elif is_kept or tag in _KEPT or tag in _KEPT_BLOCKS:
      kind = "kept"
    else:
      kind = "start"
    self._note(kind, tag)

  def handle_startendtag(self, tag: str, attrs: object) -> None:
    """Notes a tag that is closed by itself."""
    is_inline = tag in _INLINE | _INLINE_VOID | _KEPT
    self._note("placeholder" if is_inline else "divider", tag)

  def handle_endtag(self, tag: str) -> None:
    """Notes an end tag."""
    self._note("end", tag)

  def handle_data(self, data: str) -> None:
    """Notes text."""
    self._note("text")

  def handle_entityref(self, name: str) -> None:
    """Notes a reference such as `&amp;`."""
    self._note("text")

  def handle_charref(self, name: str) -> None:
    """Notes a reference such as `&#38;`."""
    self._note("text")

  def handle_comment(self, data: str) -> None:
    """Notes a comment."""
    self._note("divider")

  def handle_decl(self, decl: str) -> None:
    """Notes a declaration."""
    self._note("divider")

  def handle_pi(self, data: str) -> None:
    """Notes a processing instruction."""
    self._note("divider")

  def unknown_decl(self, data: str) -> None:
    """Notes a marked section."""
    self._note("divider")


def _tokens(markup: str) -> list[_Token]:
  """Returns the parts of markup, each to where the next begins."""
  found = _Parser(markup).found
  if not found or found[0].start:
    found.insert(0, _Token(0, 0, "text"))
  for token, after in zip(found, [*found[1:], None], strict=True):
    token.end = after.start if after else len(markup)
  return found


def _match(tokens: list[_Token]) -> None:
  """Finds partners; tags that cannot lie within a sentence become dividers."""
  is_open: list[int] = []
  pairs = []
  for number, token in enumerate(tokens):
    if token.kind in ("start", "kept"):
      is_open.append(number)
    elif token.kind == "end":
      names = [tokens[n].name for n in is_open]
      if token.name not in names:
        token.kind = "divider"
        continue
      # Those that were opened later have no end.
      place = len(names) - 1 - names[::-1].index(token.name)
      for lost in is_open[place + 1 :]:
        tokens[lost].kind = "divider"
      pairs.append((is_open[place], number))
      del is_open[place:]
  for lost in is_open:
    tokens[lost].kind = "divider"
  # Inner ones come first: what holds a divider is one.
  dividers = [n for n, token in enumerate(tokens) if token.kind == "divider"]
  for first, last in pairs:
    if tokens[first].kind == "kept":
      _keep(tokens, first, last)
      if tokens[first].kind == "divider":
        bisect.insort(dividers, first)
      continue
    place = bisect.bisect(dividers, first)
    holds_divider = place < len(dividers) and dividers[place] < last
    if tokens[first].name not in _INLINE or holds_divider:
      tokens[first].kind = tokens[last].kind = "divider"
      bisect.insort(dividers, first)
      bisect.insort(dividers, last)
    else:
      tokens[first].partner, tokens[last].partner = last, first


def _keep(tokens: list[_Token], first: int, last: int) -> None:
  """Makes an element with all that it holds one placeholder, or one divider."""
  name = tokens[first].name
  is_inline = name in _INLINE | _KEPT
  tokens[first].kind = "placeholder" if is_inline else "divider"
  tokens[first].end = tokens[last].end
  for token in tokens[first + 1 : last + 1]:
    token.kind = "nothing"


def _runs(tokens: Sequence[_Token], markup: str) -> list[str | Run]:
  """Returns runs and dividers."""
  found: list[str | Run] = []
  run = RunBuilder(is_html=True)
  for token in tokens:
    if token.kind == "nothing":
      continue
    written = markup[token.start : token.end]
    if token.kind == "divider":
      found += run.finish()
      found.append(written)
      run = RunBuilder(is_html=True)
      continue
    run.markup += written
    if token.kind == "text":
      run.add_text(_resolved(written))
    elif token.kind == "start":
      assert token.partner is not None
      end = tokens[token.partner]
      run.open(Element(written, markup[end.start : end.end]))
    elif token.kind == "end":
      run.close()
    else:
      run.add_placeholder(written)
  return found + run.finish()


def _resolved(text: str) -> str:
  """Returns text without references to characters."""
  return _REFERENCE.sub(lambda match: html.unescape(match[0]), text)
