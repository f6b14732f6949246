"""The length penalty and patience of a search, without TensorFlow."""

from __future__ import annotations

from typing import Any


def length_penalty(length: Any, alpha: float) -> Any:
  """Returns `((5 + length) / 6)^alpha` (Wu et al. 2016, equation 14).

  It must never fall with the length: the search ends early on that condition.

  Args:
    length: tokens, EOS included; a number or a float tensor.
    alpha: strength of the normalisation; 0 is none.
  """
  return ((5.0 + length) / 6.0) ** alpha


def finishes_for_patience(beam_size: int, patience: float) -> int:
  """Returns how many hypotheses of a sentence have to end; at least 1."""
  return max(int(beam_size * patience + 0.5), 1)
