"""The form that text is brought into before a tokenizer sees it.

The form belongs to the data, like the vocabulary: text that a model translates
or scores is brought into the form of its training text.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import Any

from official_transformer.errors import InputError

NORMALIZATIONS = ("none", "nfc", "nfkc")


@dataclasses.dataclass(frozen=True)
class TextForm:
  """The normalisation and the case of all text.

  Attributes:
    normalize: Unicode normal form, `nfc` or `nfkc`; `none` does not normalise.
    lowercase: whether capitals become small letters.

  Raises:
    InputError: if there is no such form.
  """

  normalize: str = "none"
  lowercase: bool = False

  def __post_init__(self) -> None:
    if self.normalize not in NORMALIZATIONS:
      raise InputError(
        f"normalize is {self.normalize!r:.50}; it is one of "
        f"{', '.join(NORMALIZATIONS)}"
      )

  @property
  def is_plain(self) -> bool:
    """Whether the form changes no text."""
    return self == TextForm()

  def apply(self, text: str) -> str:
    """Returns the text in this form; it may be several lines."""
    text = self._normalized(text)
    if self.lowercase:
      # A small letter may be several characters in no normal order.
      text = self._normalized(text.lower())
    return text

  def _normalized(self, text: str) -> str:
    if self.normalize == "nfc":
      return unicodedata.normalize("NFC", text)
    if self.normalize == "nfkc":
      return unicodedata.normalize("NFKC", text)
    return text

  def __str__(self) -> str:
    case = "lowercase" if self.lowercase else "case kept"
    return f"normalize {self.normalize}, {case}"

  def to_json(self) -> dict[str, Any]:
    """Returns the fields for data.json and model.json."""
    return dataclasses.asdict(self)
