"""Ends of sentences, in scripts that mark them.

A full stop is many things: the end of a sentence, of an abbreviation, of an
initial, of an ordinal number. In doubt it ends none: two sentences that are
translated together lose less than one that is torn apart.
"""

from __future__ import annotations

import re
import unicodedata

# Quotes and brackets that belong to the sentence before them. French quotes may
# have a blank before them. German closing quotes are opening quotes in other
# languages: they close only if a blank, or the end of the text, follows.
CLOSING = (
  r"(?:[\"')\]\u203a\u201d\u2019\u300d\u300f\uff09]"
  r"|[ \u00a0\u202f]?\u00bb(?=\s|$)|[\u00ab\u201c\u2018](?=\s|$))*"
)
_OPENING = (
  "\"'([\u00ab\u00bb\u2039\u201c\u2018\u201e\u201a\u00bf\u00a1"
  "\u300c\u300e\uff08"
)
# Marks that a blank follows: of Latin, Cyrillic and Greek (its question mark
# looks like a semicolon), Armenian, Arabic and Urdu.
_STOP_MARKS = r".!?\u2026\u037e\u0589\u061f\u06d4"
_STOPS = rf"[{_STOP_MARKS}]+"
# Marks that need none: of Chinese and Japanese, Devanagari, Burmese, Khmer,
# Ethiopic.
_WIDE_MARKS = r"\u3002\uff61\uff01\uff1f\u0964\u0965\u104b\u17d4\u1362"
WIDE_STOPS = rf"[{_WIDE_MARKS}]+"
# A mark before the end of the line; lines without one need no further look.
_INNER_MARK = re.compile(
  rf"[{_STOP_MARKS}{_WIDE_MARKS}][^\w{_STOP_MARKS}{_WIDE_MARKS}]*\w"
)
_CANDIDATE = re.compile(
  rf"(?:(?P<stop>{_STOPS})|{WIDE_STOPS})(?P<closing>{CLOSING})(?P<gap>\s*)"
)
_END = re.compile(rf"(?:{_STOPS}|{WIDE_STOPS}){CLOSING}$")
_CLOSING_MARKS = re.compile(rf"{CLOSING}$")
_LAST_MARKS = re.compile(rf"\s*(?:{_STOPS}|{WIDE_STOPS})$")
# Characters on either side of a mark that are looked at.
_NEAR = 40
_FIRST_EAST_ASIAN = "\u2e80"
_BLANKS = " \u00a0\u202f"
_NO_WORD = re.compile(r"[\s\"'(\[\u00ab\u201c\u2018\u201e\u201a-]")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Such as U.S, p.m, Ph.D and z.B; not 3.50 or example.com.
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
# Before an answer, and before the items of a list.
_DASHES = "-\u2013\u2014"

# Of numbered things and of months, if a number follows.
_NUMBERED = frozenset(
  "no nos nr nrn fig figs abb tab vol bd art par abs ziff kap chap sec p pp "
  "pg s n nº jan feb mar mär apr jun jul aug sep sept oct okt nov dec "
  "dez".split()
)
# Words that numbers follow, not abbreviated. English writes no ordinal numbers
# with a full stop, so a number with a full stop after one of these words ends a
# sentence.
_NUMBERED_WORDS = frozenset(
  "number figure table chapter section page part step item line room".split()
)
# Before a name, or amid a sentence: they never end one.
_TITLES = frozenset(
  "mr mrs ms dr prof hr fr frl st sra srta mme mlle mgr hon rev gen col sgt "
  "capt lt cmdr gov sen rep pres supt vgl cf vs ca approx bzw ggf evtl bspw "
  "sog inkl einschl zzgl abzgl z.b d.h u.a o.g v.a i.d.r m.e z.t e.g i.e "
  "viz p.ej fa dra ee dipl ул им κ κα".split()
)
# Amid a name, a title or a sentence, or at its end; some are words, too.
_OFTEN_INNER = frozenset("co bros al med phil jur rer nat ing".split())
# Words that begin sentences and are hardly ever names: after an initial, a
# number or an abbreviation that may end a sentence, only these show an end.
_BEGINNINGS = frozenset(
  "i he she it we you they the a an this that these those there here my "
  "your his her its our their what when where who why how which but and so "
  "if then now yes no please do does did is are was were can could will "
  "would let ich er sie es wir ihr du der die das ein eine dies diese "
  "dieser mein meine dein sein seine unser was wann wo wer warum wie aber "
  "und dann jetzt ja nein bitte ist sind war kann je tu il elle nous vous "
  "ils elles on le la les un une ce cette mon ma mes mais et oui non yo él "
  "ella nosotros ellos ellas el los las una esto este esta mi su pero y "
  "sí".split()
)


def sentence_ends(text: str) -> list[int]:
  """Returns where sentences end that another one follows.

  Args:
    text: one line.

  Returns:
    Places in the text, ascending: each behind the marks and quotes that end a
    sentence, before the blanks that follow.
  """
  return [
    match.end("closing")
    for match in _CANDIDATE.finditer(text)
    if match.end() < len(text) and _is_end(text, match)
  ]


def has_several_sentences(text: str) -> bool:
  """Returns whether a line holds more than one sentence."""
  return _INNER_MARK.search(text) is not None and bool(
    sentence_ends(text.strip())
  )


def ends_a_sentence(text: str) -> bool:
  """Returns whether a line ends with a mark that may end a sentence."""
  return _END.search(text[-_NEAR:]) is not None


def are_set_apart(left: str, right: str) -> bool:
  """Returns whether a blank belongs between two sentences on one line.

  It does in most scripts, also in scripts without blanks between words, such as
  Thai. It does not in Chinese and Japanese.

  Args:
    left: text up to the end of a sentence.
    right: the next sentence.
  """
  end = _CLOSING_MARKS.sub("", left[-_NEAR:])[-1:]
  if end and unicodedata.category(end)[0] == "P" and _is_wide(end):
    return False
  last = next(filter(str.isalnum, reversed(left[-_NEAR:])), "")
  first = next(filter(str.isalnum, right[:_NEAR]), "")
  return not (_is_wide(last) and _is_wide(first))


def _is_wide(character: str) -> bool:
  """Returns whether a character is written as Chinese and Japanese ones are."""
  name = unicodedata.name(character, "") if character else ""
  return (
    bool(name)
    and unicodedata.east_asian_width(character) in ("W", "F", "H")
    and "HANGUL" not in name
  )


def without_last_mark(text: str) -> str:
  """Returns a line without the marks at its very end; a quote may hide them."""
  return text[:-_NEAR] + _LAST_MARKS.sub("", text[-_NEAR:])


def _names_numbers(word: str) -> bool:
  """Returns whether numbers follow a word, or an abbreviation with its stop."""
  if word.endswith("."):
    return word[:-1] in _NUMBERED
  return word in _NUMBERED_WORDS


def _is_end(text: str, match: re.Match[str]) -> bool:
  """Returns whether marks that could end a sentence do."""
  stop, closing = match["stop"], match["closing"]
  following = text[match.end() : match.end() + _NEAR].lstrip(_OPENING + _BLANKS)
  if stop is None:
    # Text right after a closing quote names the speaker, and goes on with the
    # sentence; an opening quote there begins another quotation.
    after = text[match.end() : match.end() + 1]
    return bool(match["gap"] or not closing or after in _OPENING)
  if not following or following[0].islower():
    return False
  if not match["gap"]:
    # Of text without blanks, with the marks of others.
    return not closing and following[0] >= _FIRST_EAST_ASIAN
  if following[0] in _DASHES:
    following = following.lstrip(_DASHES + _OPENING + _BLANKS)
  if not following[:1].isalnum() or following[0].islower():
    return False
  if stop != ".":
    return True
  before = text[max(match.start() - _NEAR, 0) : match.start()]
  *others, word = _NO_WORD.split(before)
  if word.lower() in _TITLES:
    return False
  if word.lower() in _NUMBERED and following[0].isdigit():
    return False
  is_short = len(word) == 1 and word.isupper()
  is_short = is_short or word.lower() in _OFTEN_INNER
  is_ordinal = word.isdigit() and len(word) <= 2
  if is_ordinal and others and _names_numbers(others[-1].lower()):
    is_ordinal = False
  if is_short or is_ordinal or _DOTTED.fullmatch(word):
    first = _FIRST_WORD.match(following)
    return first is not None and first[0].lower() in _BEGINNINGS
  return True
