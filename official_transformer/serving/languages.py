"""The languages of a service: their names, and which one a text is in."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

import babel
from py3langid.langid import MODEL_FILE, LanguageIdentifier


class DetectedLanguage(NamedTuple):
  """A language that a text may be in.

  Attributes:
    language: code of the language.
    confidence: how likely it is among the languages of the service, of 100.
  """

  language: str
  confidence: float


class LanguageDetector:
  """Detects which of some languages a text is in."""

  def __init__(self, codes: Iterable[str]) -> None:
    """Loads nothing yet.

    Args:
      codes: codes of the languages, such as `de` or `zh-Hant`. Languages that
        the detector does not know are never found.
    """
    # Of variants of a language, the first.
    self._codes: dict[str, str] = {}
    for code in codes:
      self._codes.setdefault(code.partition("-")[0].lower(), code)

  def detect(self, text: str) -> list[DetectedLanguage]:
    """Returns the languages, the likeliest first; may take a second at first.

    Without a letter in a text, all are equally likely.
    """
    if self._identifier is None:
      return []
    return [
      DetectedLanguage(self._codes[code], round(100 * float(share), 1))
      for code, share in self._identifier.rank(text)
    ]

  @functools.cached_property
  def _identifier(self) -> LanguageIdentifier | None:
    """Chooses among the languages; None if it knows none of them."""
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    known = [code for code in self._codes if code in identifier.labels]
    if not known:
      return None
    identifier.set_languages(known)
    return identifier


def name_of(code: str) -> str:
  """Returns a language's English name; of an unknown one, its code."""
  try:
    return babel.Locale.parse(code, sep="-").get_display_name("en") or code
  except (babel.UnknownLocaleError, ValueError):
    return code
