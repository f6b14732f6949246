import pytest

from official_transformer.errors import InputError
from official_transformer.text.text_form import TextForm


@pytest.mark.parametrize(
  ("form", "text", "expected"),
  [
    (TextForm(), "Cafe\u0301 \uff21\ufb01 STRASSE", None),
    (TextForm("nfc"), "Cafe\u0301 \ufb01", "Caf\u00e9 \ufb01"),
    (TextForm("nfkc"), "Cafe\u0301 \uff21\ufb01", "Caf\u00e9 Afi"),
    (TextForm("none", True), "\u00c9A \u0130", "\u00e9a i\u0307"),
    # What only the normal form shows to be capitals.
    (TextForm("nfkc", True), "\u2121 \uff21", "tel a"),
  ],
)
def test_forms(form, text, expected):
  expected = text if expected is None else expected
  assert form.apply(text) == expected
  assert form.apply(expected) == expected
  assert form.is_plain == (form == TextForm())


def test_an_unknown_form():
  with pytest.raises(InputError, match="'nfd'; it is one of none, nfc, nfkc"):
    TextForm("nfd")
