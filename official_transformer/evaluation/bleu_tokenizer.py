"""Chooses sacreBLEU's tokenizer for the language of references.

Its default, 13a, splits at blanks: of Chinese, Japanese, Thai and others that
have none, it makes one token of a sentence, and nearly all n-grams are lost.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import NamedTuple

from sacrebleu.metrics import BLEU

from official_transformer.text.scripts import WITHOUT_BLANKS, main_script

# Chosen by the script of the references.
AUTO = "auto"
DEFAULT = "13a"
TOKENIZERS = (AUTO, *BLEU.TOKENIZERS)
# By script: sacreBLEU's choice for the language, and the extra of sacreBLEU's
# that it needs, if any.
_BY_SCRIPT = {
  "han": ("zh", ""),
  "japanese": ("ja-mecab", "ja"),
  "korean": ("ko-mecab", "ko"),
}
# Tokenizes characters: for other scripts without blanks, and if the extra is
# missing.
_WITHOUT_WORDS = "char"


class TokenizerChoice(NamedTuple):
  """A tokenizer, and why it was taken.

  Attributes:
    name: sacreBLEU's name of the tokenizer.
    reason: why it was chosen automatically; empty if it was asked for, or is
      the default.
  """

  name: str
  reason: str = ""


def choose_tokenizer(asked: str, references: Iterable[str]) -> TokenizerChoice:
  """Returns the tokenizer of references and translations.

  Args:
    asked: one of `TOKENIZERS`, of which `problem_of` knows nothing.
    references: lines of one language.
  """
  if asked != AUTO:
    return TokenizerChoice(asked)
  characters: collections.Counter[str] = collections.Counter()
  for line in references:
    characters.update(line)
  script = main_script(characters)
  if script in WITHOUT_BLANKS and script not in _BY_SCRIPT:
    return TokenizerChoice(
      _WITHOUT_WORDS,
      f"the references are {script.title()}, which has no blanks between "
      "words: BLEU is of characters",
    )
  if script not in _BY_SCRIPT:
    return TokenizerChoice(DEFAULT)
  name, extra = _BY_SCRIPT[script]
  language = "Chinese" if script == "han" else script.title()
  found = f"the references are {language}"
  if extra and problem_of(name):
    return TokenizerChoice(
      _WITHOUT_WORDS,
      f"{found}: BLEU is of characters, since {name}, which others report, is "
      f"not installed (pip install 'sacrebleu[{extra}]')",
    )
  return TokenizerChoice(name, f"{found}: BLEU is tokenized by {name}")


def problem_of(name: str) -> str | None:
  """Returns why a tokenizer cannot be used, if so."""
  try:
    BLEU(tokenize=name)
  except RuntimeError as error:  # A package is missing.
    return " ".join(str(error).split())
  except OSError as error:  # Its model cannot be downloaded.
    return f"its model is not here, and not to be had ({error})"
  return None
