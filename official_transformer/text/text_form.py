"""The form that text is brought into before a tokenizer sees it.

It is a part of the data, as the vocabulary is: what a model was trained on in
one form is translated and scored in that form too.
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
    normalize: to which of Unicode's normal forms, `nfc` or `nfkc`; `none`
      leaves it as it is.
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
    """Whether text stays as it is."""
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
